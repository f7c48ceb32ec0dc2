// Package pinpriq speaks the binary protocol of the pinpriq document: push, pop,
// subscribe, ready and unsubscribe over TCP, integers big endian. PROTOCOL.md in this
// folder draws every byte and says how the document's open questions are read.
package pinpriq

import (
	"encoding/binary"
	"errors"
	"fmt"
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
	MaxPackets   = 0xffff // packets in one reply

	pushHeader   = 6 // op, queue name length, TTL, priority
	packetHeader = 4 // key length, payload length
	nameHeader   = 3 // op, queue name length
	replyHeader  = 2 // number of packets

	// MaxRequest is the longest request: a push whose three fields are all full.
	MaxRequest = pushHeader + packetHeader + MaxKey + MaxPayload + MaxQueueName
)

var (
	// ErrShort means that the bytes so far are the beginning of a frame; more must be read.
	ErrShort = errors.New("frame is not complete")
	// ErrUnknownOp means that a frame began with a byte that is no request. There is no
	// way back into step, so the connection must be closed (PROTOCOL.md, "Bad input").
	ErrUnknownOp = errors.New("unknown request byte")
	// ErrTooLong means that a field is longer than its u16 length can say.
	ErrTooLong = errors.New("field too long")
)

// Packet is a key and a payload (pinpriq document, "packet"). Both may be empty; packets
// of a queue whose keys are equal, empty ones included, are popped together.
type Packet struct {
	Key     []byte
	Payload []byte
}

// Request is one decoded request. Queue, Key and Payload alias the bytes it was parsed from.
type Request struct {
	Op       Op
	Queue    []byte // all but OpReady
	Priority uint8  // OpPush: 1 is best, 0 is never selected
	TTL      uint16 // OpPush: milliseconds, 0 never expires
	Packet   Packet // OpPush
}

// Parse decodes the request at the start of buf into r and returns how many bytes it took.
// It returns ErrShort when buf holds only a beginning, ErrUnknownOp when it cannot be one.
func (r *Request) Parse(buf []byte) (int, error) {
	if len(buf) == 0 {
		return 0, ErrShort
	}
	switch op := Op(buf[0]); op {
	case OpReady:
		*r = Request{Op: op}
		return 1, nil
	case OpPop, OpSubscribe, OpUnsubscribe:
		return r.parseName(op, buf)
	case OpPush:
		return r.parsePush(buf)
	default:
		return 0, fmt.Errorf("%w 0x%02x: expected one of 0x70 0x50 0x73 0x75 0x41", ErrUnknownOp, buf[0])
	}
}

func (r *Request) parseName(op Op, buf []byte) (int, error) {
	if len(buf) < nameHeader {
		return 0, ErrShort
	}
	n := nameHeader + int(binary.BigEndian.Uint16(buf[1:]))
	if len(buf) < n {
		return 0, ErrShort
	}
	*r = Request{Op: op, Queue: buf[nameHeader:n:n]}
	return n, nil
}

func (r *Request) parsePush(buf []byte) (int, error) {
	if len(buf) < pushHeader+packetHeader {
		return 0, ErrShort
	}
	key := pushHeader + packetHeader
	payload := key + int(binary.BigEndian.Uint16(buf[6:]))
	queue := payload + int(binary.BigEndian.Uint16(buf[8:]))
	n := queue + int(binary.BigEndian.Uint16(buf[1:]))
	if len(buf) < n {
		return 0, ErrShort
	}
	r.Op = OpPush
	r.Queue = buf[queue:n:n]
	r.TTL = binary.BigEndian.Uint16(buf[3:])
	r.Priority = buf[5]
	r.Packet = Packet{Key: buf[key:payload:payload], Payload: buf[payload:queue:queue]}
	return n, nil
}

// Append encodes r behind dst. It returns ErrTooLong when a field does not fit its length.
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
		if err := checkLength("key", r.Packet.Key, MaxKey); err != nil {
			return dst, err
		}
		if err := checkLength("payload", r.Packet.Payload, MaxPayload); err != nil {
			return dst, err
		}
		dst = append(dst, byte(OpPush))
		dst = binary.BigEndian.AppendUint16(dst, uint16(len(r.Queue)))
		dst = binary.BigEndian.AppendUint16(dst, r.TTL)
		dst = append(dst, r.Priority)
		dst = AppendPacket(dst, r.Packet.Key, r.Packet.Payload)
		return append(dst, r.Queue...), nil
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

// AppendCount encodes the head of a reply or delivery: how many packets follow.
func AppendCount(dst []byte, packets int) []byte {
	return binary.BigEndian.AppendUint16(dst, uint16(packets))
}

// AppendPacket encodes one packet. Both lengths must be at most 65,535.
func AppendPacket(dst, key, payload []byte) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(key)))
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(payload)))
	dst = append(dst, key...)
	return append(dst, payload...)
}

// ParseReply decodes the reply or delivery at the start of buf: it appends its packets, which
// alias buf, to dst and returns how many bytes it took. Incomplete bytes give ErrShort and dst
// as it was.
func ParseReply(buf []byte, dst []Packet) ([]Packet, int, error) {
	if len(buf) < replyHeader {
		return dst, 0, ErrShort
	}
	count := int(binary.BigEndian.Uint16(buf))
	out, n := dst, replyHeader
	for range count {
		if len(buf)-n < packetHeader {
			return dst, 0, ErrShort
		}
		key := n + packetHeader
		payload := key + int(binary.BigEndian.Uint16(buf[n:]))
		end := payload + int(binary.BigEndian.Uint16(buf[n+2:]))
		if len(buf) < end {
			return dst, 0, ErrShort
		}
		out = append(out, Packet{Key: buf[key:payload:payload], Payload: buf[payload:end:end]})
		n = end
	}
	return out, n, nil
}
