package resp

import (
	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto/resp/wire"
)

// The methods below append one reply, or the head of one, to the literal bytes of the session.
// Those of whole replies return nil, so that a handler ends with one.

// simple replies with a word of the protocol: no line break.
func (s *session) simple(text string) error {
	s.peer.Out = append(s.peer.Out, '+')
	s.peer.Out = append(s.peer.Out, text...)
	s.peer.Out = append(s.peer.Out, "\r\n"...)
	return nil
}

func (s *session) ok() error { return s.simple("OK") }

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

func (s *session) int(n int64) error { return s.head(':', n) }

// bool replies with 1 or 0, as commands do that are older than RESP3.
func (s *session) bool(yes bool) error {
	if yes {
		return s.int(1)
	}
	return s.int(0)
}

func (s *session) bulk(b []byte) error {
	if s.fits(len(b)) {
		s.peer.Out = wire.AppendBulk(s.peer.Out, b)
	}
	return nil
}

// bulkString replies with one or more bulks.
func (s *session) bulkString(all ...string) error {
	for _, b := range all {
		if s.fits(len(b)) {
			s.peer.Out = wire.AppendBulk(s.peer.Out, b)
		}
	}
	return nil
}

// verbatim replies with a text for people.
func (s *session) verbatim(text string) error {
	if s.fits(len(text)) {
		s.peer.Out = s.appendTextHead(s.peer.Out, len(text))
		s.peer.Out = append(s.peer.Out, text...)
		s.peer.Out = append(s.peer.Out, "\r\n"...)
	}
	return nil
}

// appendTextHead appends what stands before the n bytes of a text for people.
func (s *session) appendTextHead(dst []byte, n int) []byte {
	if !s.resp3 {
		return wire.AppendHead(dst, '$', int64(n))
	}
	return append(wire.AppendHead(dst, '=', int64(n+len("txt:"))), "txt:"...)
}

// null replies that there is no value, and nullArray that there is no array. RESP3 has one null.
func (s *session) null() error { return s.nullOf("$-1\r\n") }

func (s *session) nullArray() error { return s.nullOf("*-1\r\n") }

func (s *session) nullOf(resp2 string) error {
	if s.resp3 {
		resp2 = "_\r\n"
	}
	s.peer.Out = append(s.peer.Out, resp2...)
	return nil
}

// done replies OK to a call that returns nothing else than an error, count with the number that a
// call returns, and did whether it has done something.
func (s *session) done(err error) error {
	if err != nil {
		return err
	}
	return s.ok()
}

func (s *session) count(n int, err error) error {
	if err != nil {
		return err
	}
	return s.int(int64(n))
}

func (s *session) did(yes bool, err error) error {
	if err != nil {
		return err
	}
	return s.bool(yes)
}

// array begins an array: n replies follow.
func (s *session) array(n int) error { return s.head('*', int64(n)) }

// set begins a set: n replies follow.
func (s *session) set(n int) error { return s.begin('~', n, n) }

// mapHeader begins a map of n pairs: 2n replies follow.
func (s *session) mapHeader(n int) error { return s.begin('%', n, 2*n) }

// push begins what the client did not ask for: n replies follow.
func (s *session) push(n int) error { return s.begin('>', n, n) }

// begin begins a kind of RESP3 of n entries, which is an array of many in RESP2.
func (s *session) begin(kind byte, n, many int) error {
	if s.fits(0) {
		s.peer.Out = wire.AppendBegin(s.peer.Out, s.resp3, kind, n, many)
	}
	return nil
}

func (s *session) head(kind byte, n int64) error {
	if s.fits(0) {
		s.peer.Out = wire.AppendHead(s.peer.Out, kind, n)
	}
	return nil
}

// mapWriter appends the pairs of a map, and counts them.
type mapWriter struct {
	dst   []byte
	pairs int
}

// pair begins a pair, whose value the caller appends, if there is to be one.
func (w *mapWriter) pair(name string, applies bool) bool {
	if applies {
		w.pairs++
		w.dst = wire.AppendBulk(w.dst, name)
	}
	return applies
}

func appendNumber(w *mapWriter, name string, n int64, applies bool) {
	if w.pair(name, applies) {
		w.dst = wire.AppendHead(w.dst, ':', n)
	}
}

func appendText[B []byte | string](w *mapWriter, name string, text B, applies bool) {
	if w.pair(name, applies) {
		w.dst = wire.AppendBulk(w.dst, text)
	}
}

// smallValue is the size of a value that a transaction may read whatever it has looked at, as of a
// counter.
const smallValue = 4096

// read returns a value.
func (s *session) read(tx *broker.Tx, v broker.Value) ([]byte, error) {
	if s.inExec && v.Size > smallValue && !tx.MayLook() {
		return nil, broker.ErrTooManyLooks
	}
	return tx.Bytes(v)
}

// found replies with the value that a call has found, or with null.
func (s *session) found(v broker.Value, ok bool, err error) error {
	if err != nil {
		return err
	}
	return s.value(s.tx, v, ok)
}

// value replies with a string or the value of a field, or with null if there is none.
func (s *session) value(tx *broker.Tx, v broker.Value, ok bool) error {
	if s.overLimit {
		return broker.ErrReplyTooLarge // before a command drops the value
	}
	value, err := s.read(tx, v)
	switch {
	case err != nil:
	case ok:
		if s.bulk(value); s.overLimit {
			err = broker.ErrReplyTooLarge
		}
	default:
		s.null()
	}
	return err
}
