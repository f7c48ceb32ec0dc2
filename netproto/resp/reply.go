package resp

import (
	"slices"
	"strconv"

	"github.com/holdfast-queue/holdfast/broker"
)

// The methods below append one reply, or the head of one, to the literal bytes of the session.

// simple replies with a word of the protocol: no line break.
func (s *session) simple(text string) {
	s.peer.Out = append(s.peer.Out, '+')
	s.peer.Out = append(s.peer.Out, text...)
	s.peer.Out = append(s.peer.Out, "\r\n"...)
}

func (s *session) ok() { s.simple("OK") }

// error replies with an error, whose first word is its kind: "ERR syntax error". Line breaks become
// spaces.
func (s *session) error(text string) {
	s.peer.Out = append(s.peer.Out, '-')
	from := len(s.peer.Out)
	s.peer.Out = append(s.peer.Out, text...)
	for i := from; i < len(s.peer.Out); i++ {
		if s.peer.Out[i] == '\r' || s.peer.Out[i] == '\n' {
			s.peer.Out[i] = ' '
		}
	}
	s.peer.Out = append(s.peer.Out, "\r\n"...)
}

func (s *session) int(n int64) { s.head(':', n) }

// bool replies with 1 or 0, as commands do that are older than RESP3.
func (s *session) bool(yes bool) {
	if yes {
		s.int(1)
	} else {
		s.int(0)
	}
}

func (s *session) bulk(b []byte) {
	if s.fits(len(b)) {
		s.peer.Out = appendBulk(s.peer.Out, b)
	}
}

// bulkString replies with one or more bulks.
func (s *session) bulkString(all ...string) {
	for _, b := range all {
		if s.fits(len(b)) {
			s.peer.Out = appendBulk(s.peer.Out, b)
		}
	}
}

// verbatim replies with a text for people.
func (s *session) verbatim(text string) {
	if !s.resp3 {
		s.bulkString(text)
		return
	}
	if s.fits(len(text)) {
		s.head('=', int64(len(text)+len("txt:")))
		s.peer.Out = append(s.peer.Out, "txt:"...)
		s.peer.Out = append(s.peer.Out, text...)
		s.peer.Out = append(s.peer.Out, "\r\n"...)
	}
}

// null replies that there is no value.
func (s *session) null() { s.peer.Out = appendNull(s.peer.Out, s.resp3) }

// nullArray replies that there is no array.
func (s *session) nullArray() { s.peer.Out = appendNullArray(s.peer.Out, s.resp3) }

// array begins an array: n replies follow.
func (s *session) array(n int) { s.head('*', int64(n)) }

// set begins a set: n replies follow.
func (s *session) set(n int) { s.begin('~', n, n) }

// mapHeader begins a map of n pairs: 2n replies follow.
func (s *session) mapHeader(n int) { s.begin('%', n, 2*n) }

// push begins what the client did not ask for: n replies follow.
func (s *session) push(n int) { s.begin('>', n, n) }

// begin begins a kind of RESP3 of n entries, which is an array of many in RESP2.
func (s *session) begin(kind byte, n, many int) {
	if s.resp3 {
		s.head(kind, int64(n))
	} else {
		s.array(many)
	}
}

func (s *session) head(kind byte, n int64) {
	if s.fits(0) {
		s.peer.Out = appendHead(s.peer.Out, kind, n)
	}
}

func appendHead(dst []byte, kind byte, n int64) []byte {
	dst = append(dst, kind)
	dst = strconv.AppendInt(dst, n, 10)
	return append(dst, "\r\n"...)
}

func appendBulk[B []byte | string](dst []byte, b B) []byte {
	dst = appendHead(dst, '$', int64(len(b)))
	dst = append(dst, b...)
	return append(dst, "\r\n"...)
}

func appendNull(dst []byte, resp3 bool) []byte {
	if resp3 {
		return append(dst, "_\r\n"...)
	}
	return append(dst, "$-1\r\n"...)
}

func appendNullArray(dst []byte, resp3 bool) []byte {
	if resp3 {
		return append(dst, "_\r\n"...)
	}
	return append(dst, "*-1\r\n"...)
}

// replyForm says how packets become a reply.
type replyForm uint8

const (
	formBulk  replyForm = iota // the packet as a bulk; none: null
	formArray                  // an array of bulks; none: the null array
	formList                   // an array of bulks; none: the empty array

	// The packets of these have details.
	formPackets // an array of maps; none: the empty array
	formPopped  // the same, of packets that are in no queue any more
	formFields  // each packet as a map; none: nothing at all
	formPacket  // the packet as a map that says why it is not delivered; none: the null array
)

// sizeOf is about how many bytes the bulks of packets have.
func sizeOf(packets []broker.Packet) (size int) {
	const head = 16
	for i := range packets {
		size += head + len(packets[i].Payload)
	}
	return size
}

// packets replies with what a call has found.
func (s *session) packets(f broker.Found, form replyForm) {
	n := len(f.Packets)
	switch {
	case form == formBulk && n == 0:
		s.null()
	case n == 0 && (form == formArray || form == formPacket):
		s.nullArray()
	case form == formArray, form == formList, form == formPackets, form == formPopped:
		s.array(n)
	}
	if n > 1 {
		s.peer.Out = slices.Grow(s.peer.Out, sizeOf(f.Packets))
	}
	for i := range f.Packets {
		if form >= formPackets {
			s.peer.Out = appendPacket(s.peer.Out, s.resp3, form, &f.Packets[i], &f.Details[i])
		} else {
			s.peer.Out = appendBulk(s.peer.Out, f.Packets[i].Payload)
		}
	}
}
