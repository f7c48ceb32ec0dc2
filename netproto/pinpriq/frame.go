// Package pinpriq speaks the binary protocol of the pinpriq document: push, pop, subscribe, ready
// and unsubscribe over TCP, with big-endian integers. PROTOCOL.md draws every byte and says how the
// document's open questions are read. frame.go encodes and decodes, server.go is the server's side,
// http.go keeps browsers out, client.go is a client.
package pinpriq

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Op is the first byte of a request (pinpriq document, one section each).
type Op byte

// The five requests a client can send.
const (
	OpPush        Op = 0x70 // push a packet; no reply
	OpPop         Op = 0x50 // pop the best packet and its key group; one reply
	OpSubscribe   Op = 0x73 // subscribe to a queue; no reply, deliveries follow readiness
	OpUnsubscribe Op = 0x75 // unsubscribe from a queue; no reply
	OpReady       Op = 0x41 // ready for one more delivery; no reply
)

// Sizes fixed by the u16 length fields of the document.
const (
	MaxQueueName = 0xffff // bytes of a queue name
	MaxKey       = 0xffff // bytes of a packet's key
	MaxPayload   = 0xffff // bytes of a packet's payload
	MaxTTL       = 0xffff // milliseconds; 0 means that the packet never expires

	pushHeader   = 6 // op, queue name length, TTL, priority
	packetHeader = 4 // key length, payload length
	nameHeader   = 3 // op, queue name length
	replyHeader  = 2 // number of packets
)

var (
	// ErrShort means that the bytes so far are the beginning of a frame.
	ErrShort = errors.New("frame is not complete")
	// ErrUnknownOp means that a frame begins with a byte that is no request. There is no way back
	// into step, so the connection must be closed (PROTOCOL.md, section Bad input).
	ErrUnknownOp = errors.New("unknown request byte")
	// ErrTooLong means that a field is longer than its u16 length can say.
	ErrTooLong = errors.New("field too long")
)

// Packet is a key and a payload. Both may be empty. Packets of a queue with equal keys, empty ones
// included, are popped together.
type Packet struct {
	Key     []byte
	Payload []byte
}

// Request is one decoded request. Its slices alias the bytes that it was parsed from.
type Request struct {
	Op       Op
	Queue    []byte // all but OpReady
	Priority uint8  // OpPush: 1 is best, 0 is never selected
	TTL      uint16 // OpPush: milliseconds, 0 never expires
	Packet   Packet // OpPush
}

// Parse decodes the request at the start of buf into r and returns how many bytes it took. It
// returns ErrShort if buf holds only the beginning of a request, and ErrUnknownOp if no request
// begins like that.
func (r *Request) Parse(buf []byte) (int, error) {
	if len(buf) == 0 {
		return 0, ErrShort
	}
	op, head := Op(buf[0]), nameHeader
	switch op {
	case OpReady:
		*r = Request{Op: op}
		return 1, nil
	case OpPop, OpSubscribe, OpUnsubscribe:
	case OpPush:
		head = pushHeader + packetHeader
	default:
		return 0, fmt.Errorf("%w 0x%02x: expected one of 0x70 0x50 0x73 0x75 0x41", ErrUnknownOp, buf[0])
	}
	if len(buf) < head {
		return 0, ErrShort
	}
	payload, queue := head, head
	if op == OpPush {
		payload = head + int(binary.BigEndian.Uint16(buf[6:]))
		queue = payload + int(binary.BigEndian.Uint16(buf[8:]))
	}
	n := queue + int(binary.BigEndian.Uint16(buf[1:]))
	if len(buf) < n {
		return 0, ErrShort
	}
	*r = Request{Op: op, Queue: buf[queue:n:n]}
	if op == OpPush {
		r.TTL, r.Priority = binary.BigEndian.Uint16(buf[3:]), buf[5]
		r.Packet = Packet{Key: buf[head:payload:payload], Payload: buf[payload:queue:queue]}
	}
	return n, nil
}

// Append appends the encoded request to dst. It returns ErrTooLong if a field does not fit its
// length.
func (r *Request) Append(dst []byte) ([]byte, error) {
	if err := checkLength("queue name", r.Queue, MaxQueueName); err != nil {
		return dst, err
	}
	switch r.Op {
	case OpReady:
		return append(dst, byte(OpReady)), nil
	case OpPop, OpSubscribe, OpUnsubscribe:
		dst = append(dst, byte(r.Op))
		dst = binary.BigEndian.AppendUint16(dst, uint16(len(r.Queue)))
		return append(dst, r.Queue...), nil
	case OpPush:
		frame := append(dst, byte(OpPush))
		frame = binary.BigEndian.AppendUint16(frame, uint16(len(r.Queue)))
		frame = binary.BigEndian.AppendUint16(frame, r.TTL)
		frame = append(frame, r.Priority)
		frame, err := AppendPacket(frame, r.Packet.Key, r.Packet.Payload)
		if err != nil {
			return dst, err
		}
		return append(frame, r.Queue...), nil
	default:
		return dst, fmt.Errorf("%w 0x%02x", ErrUnknownOp, byte(r.Op))
	}
}

func checkLength(what string, b []byte, limit int) error {
	if len(b) > limit {
		return fmt.Errorf("%w: %s has %d bytes, the protocol's limit is %d", ErrTooLong, what, len(b), limit)
	}
	return nil
}

// AppendCount appends the head of a reply or delivery: how many packets follow.
func AppendCount(dst []byte, packets int) []byte {
	return binary.BigEndian.AppendUint16(dst, uint16(packets))
}

// AppendPacket appends one packet. It returns ErrTooLong, and dst as it was, when a length does not
// fit into 16 bits.
func AppendPacket(dst, key, payload []byte) ([]byte, error) {
	if err := checkLength("key", key, MaxKey); err != nil {
		return dst, err
	}
	if err := checkLength("payload", payload, MaxPayload); err != nil {
		return dst, err
	}
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(key)))
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(payload)))
	dst = append(dst, key...)
	return append(dst, payload...), nil
}

// ReadReply reads a reply or a delivery. It returns io.EOF if nothing came, and io.ErrUnexpectedEOF
// if the reply is cut short. Memory follows what arrives, not what is announced.
func ReadReply(in *bufio.Reader) ([]Packet, error) {
	var head [packetHeader]byte
	if _, err := io.ReadFull(in, head[:replyHeader]); err != nil {
		return nil, err
	}
	count := int(binary.BigEndian.Uint16(head[:]))
	packets := make([]Packet, 0, min(count, 64))
	for range count {
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return nil, noEOF(err)
		}
		key, payload := int(binary.BigEndian.Uint16(head[:])), int(binary.BigEndian.Uint16(head[2:]))
		both := make([]byte, key+payload)
		if _, err := io.ReadFull(in, both); err != nil {
			return nil, noEOF(err)
		}
		packets = append(packets, Packet{Key: both[:key:key], Payload: both[key:]})
	}
	return packets, nil
}

// noEOF makes the end of the stream inside a reply an error of its own.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
