package resp

import (
	"strconv"

	"github.com/holdfast-queue/holdfast/broker"
)

// The methods below append one reply, or the head of one, to the literal bytes of the session.

// simple replies with a word of the protocol: no line break.
func (s *session) simple(text string) {
	s.out = append(s.out, '+')
	s.out = append(s.out, text...)
	s.out = append(s.out, "\r\n"...)
}

func (s *session) ok() { s.simple("OK") }

// error replies with an error, whose first word is its kind: "ERR syntax error". Line breaks become
// spaces.
func (s *session) error(text string) {
	s.out = append(s.out, '-')
	from := len(s.out)
	s.out = append(s.out, text...)
	for i := from; i < len(s.out); i++ {
		if s.out[i] == '\r' || s.out[i] == '\n' {
			s.out[i] = ' '
		}
	}
	s.out = append(s.out, "\r\n"...)
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
		s.out = appendBulk(s.out, b)
	}
}

// bulkString replies with one or more bulks.
func (s *session) bulkString(all ...string) {
	for _, b := range all {
		if s.fits(len(b)) {
			s.out = appendBulk(s.out, b)
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
		s.out = append(s.out, "txt:"...)
		s.out = append(s.out, text...)
		s.out = append(s.out, "\r\n"...)
	}
}

// null replies that there is no value.
func (s *session) null() { s.out = appendNull(s.out, s.resp3) }

// nullArray replies that there is no array.
func (s *session) nullArray() { s.out = appendNullArray(s.out, s.resp3) }

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
		s.out = appendHead(s.out, kind, n)
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
	formNone  replyForm = iota // nothing is sent
	formBulk                   // the packet as a bulk; none: null
	formArray                  // an array of bulks; none: the null array
	formList                   // an array of bulks; none: the empty array

	// The packets of these have details.
	formPackets // an array of maps; none: the empty array
	formFields  // each packet as a map; none: nothing at all
	formPacket  // the packet as a map; none: the null array
	formWhy     // formPacket that says why it is not delivered
	formAge     // how old the packet is, in milliseconds; none: null
)

const (
	tagRESP3  broker.Tag = 1 << 8
	tagPopped broker.Tag = 1 << 9 // the packets are in no queue any more
)

// tag makes the tag of a reply of packets. It says all that AppendPackets needs, because that runs
// when the session may be elsewhere.
func (s *session) tag(of replyForm) broker.Tag {
	t := broker.Tag(of)
	if s.noReply {
		t = broker.Tag(formNone)
	}
	if s.resp3 {
		t |= tagRESP3
	}
	return t
}

// AppendPackets implements netproto.Session.
func (s *session) AppendPackets(dst []byte, tag broker.Tag, packets []broker.Packet, details []broker.Detail) []byte {
	resp3 := tag&tagRESP3 != 0
	switch replyForm(tag) {
	case formBulk:
		if len(packets) == 0 {
			return appendNull(dst, resp3)
		}
	case formArray:
		if len(packets) == 0 {
			return appendNullArray(dst, resp3)
		}
		dst = appendHead(dst, '*', int64(len(packets)))
	case formList, formPackets:
		dst = appendHead(dst, '*', int64(len(packets)))
	case formPacket, formWhy:
		if len(packets) == 0 {
			return appendNullArray(dst, resp3)
		}
	case formAge:
		if len(packets) == 0 || details[0].State == broker.Damaged {
			return appendNull(dst, resp3)
		}
		return appendHead(dst, ':', max(0, s.protocol.asked.Load()-packets[0].EnqueuedAt))
	case formNone:
		return dst
	}
	if replyForm(tag) >= formPackets {
		for i := range packets {
			dst = appendPacket(dst, tag, &packets[i], &details[i])
		}
		return dst
	}
	for i := range packets {
		dst = appendBulk(dst, packets[i].Payload)
	}
	return dst
}
