package crash

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"net"

	"github.com/holdfast-queue/holdfast/netproto/pinpriq"
)

// link is a connection to the server, for one goroutine. It speaks pinpriq and barbershop.
type link struct {
	conn    net.Conn
	in      *bufio.Reader
	request pinpriq.Request
	out     []byte // what send will write
	key     []byte
	packet  []byte
}

// add appends a request of pinpriq to what send will write. Requests of the load keep to the
// lengths of the protocol, so it cannot fail.
func (l *link) add(op pinpriq.Op, queue string) {
	l.request = pinpriq.Request{Op: op, Queue: []byte(queue)}
	l.out, _ = l.request.Append(l.out)
}

// addPush appends the push of a packet with a payload of so many bytes.
func (l *link) addPush(queue string, p *packet, size int) {
	l.key = p.key.append(l.key[:0])
	l.packet = appendPayload(l.packet[:0], p.id, size)
	l.request = pinpriq.Request{
		Op: pinpriq.OpPush, Queue: []byte(queue), Priority: p.prio, TTL: uint16(p.ttl),
		Packet: pinpriq.Packet{Key: l.key, Payload: l.packet},
	}
	l.out, _ = l.request.Append(l.out)
}

// addLine appends a line of barbershop.
func (l *link) addLine(line string) { l.out = append(append(l.out, line...), '\r', '\n') }

// send writes what was added.
func (l *link) send() error {
	_, err := l.conn.Write(l.out)
	l.out = l.out[:0]
	return err
}

// receive reads one reply or delivery of pinpriq and calls fn with each packet, whose bytes are
// valid during the call. It returns io.EOF only if the stream ended between two replies.
func (l *link) receive(fn func(key, payload []byte)) error {
	var head [4]byte
	if _, err := io.ReadFull(l.in, head[:2]); err != nil {
		return err
	}
	for range binary.BigEndian.Uint16(head[:]) {
		if err := l.rest(head[:]); err != nil {
			return err
		}
		key, payload := int(binary.BigEndian.Uint16(head[:])), int(binary.BigEndian.Uint16(head[2:]))
		if cap(l.packet) < key+payload {
			l.packet = make([]byte, key+payload)
		}
		b := l.packet[:key+payload]
		if err := l.rest(b); err != nil {
			return err
		}
		fn(b[:key], b[key:])
	}
	return nil
}

// rest reads bytes inside a reply, where the stream must not end.
func (l *link) rest(b []byte) error {
	_, err := io.ReadFull(l.in, b)
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// receiveLine reads one line of barbershop without its end, valid until the next call.
func (l *link) receiveLine() ([]byte, error) {
	line, err := l.in.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(line[:len(line)-1], []byte{'\r'}), nil
}
