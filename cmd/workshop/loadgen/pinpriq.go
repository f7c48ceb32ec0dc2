package loadgen

import (
	"encoding/binary"
	"errors"

	"github.com/holdfast-queue/holdfast/netproto/pinpriq"
)

// BarrierQueue is the queue that barriers pop. A push has no reply, but a pop behind it on the same
// connection is answered only after the push is on disk. So a pop of a queue that is always empty
// proves all earlier pushes. The zero byte keeps it apart from any name that a person would choose.
const BarrierQueue = "\x00barrier"

// Bytes of a packet's key, and where they and the priority are in a push
// (netproto/pinpriq/PROTOCOL.md).
const (
	keySize    = 8 // the packet's number, big endian
	priorityAt = 5
	keyAt      = 10
)

var errNotEmpty = errors.New("the barrier queue held a packet, expected it to be empty for ever; delete what was pushed to it")

// PinpriqPush pushes packets with one barrier behind each window. The barrier's answer acknowledges
// the packets of the window.
func PinpriqPush(p Packets) Protocol {
	push, barrier := pinpriqPush(&p), nameFrame(pinpriq.OpPop, BarrierQueue)
	var replies packetReader
	open := 0 // packets that wait for the barrier
	return &driver{
		write: func(dst []byte, first uint64, n int) []byte {
			open += n
			return append(push.all(dst, first, n), barrier...)
		},
		read: func(dst, src []byte) ([]byte, Progress, error) {
			p := replies.read(src)
			if p.Done != p.Empty || replies.packets > 0 {
				return dst, Progress{}, errNotEmpty
			}
			if p.Done > 0 {
				p.Done, p.Packets, p.Empty = open, open, 0
				open = 0
			}
			return dst, p, nil
		},
	}
}

// PinpriqPop pops a queue. A reply may bring a whole group of packets.
func PinpriqPop(queue string) Protocol {
	return &driver{request(nameFrame(pinpriq.OpPop, queue)).all, new(packetReader).consume}
}

// PinpriqPair makes each request a push and a pop of the same queue, whose depth stays the same.
// The pop's reply proves the push.
func PinpriqPair(p Packets) Protocol {
	return &driver{request(pinpriqPush(&p), nameFrame(pinpriq.OpPop, p.Queue)).all, new(packetReader).consume}
}

// PinpriqSubscribe subscribes to a queue and gives the server as many credits as the window is
// deep. It answers each delivery with a new credit. So the window never ends, and there is no
// latency.
func PinpriqSubscribe(queue string) Protocol {
	frame := nameFrame(pinpriq.OpSubscribe, queue)
	var replies packetReader
	return &driver{
		write: func(dst []byte, _ uint64, n int) []byte {
			dst = append(dst, frame...)
			frame = "" // it is sent once
			return appendCredits(dst, n)
		},
		read: func(dst, src []byte) ([]byte, Progress, error) {
			p := replies.read(src)
			dst = appendCredits(dst, p.Done)
			p.Done, p.Empty = 0, 0
			return dst, p, nil
		},
	}
}

func appendCredits(dst []byte, n int) []byte {
	for range n {
		dst = append(dst, byte(pinpriq.OpReady))
	}
	return dst
}

// packetReader counts the packets of pop replies and deliveries. It skips keys and payloads as they
// come in, so a reply may be larger than any buffer.
type packetReader struct {
	packets int // packets of the reply that are still to come
	skip    int // bytes of the packet that are still to come
}

const (
	countSize = 2 // bytes of the count before the packets of a reply
	headSize  = 4 // bytes of the lengths before a packet's key
)

func (r *packetReader) consume(dst, src []byte) ([]byte, Progress, error) {
	return dst, r.read(src), nil
}

// read counts a reply as done when its last packet is complete.
func (r *packetReader) read(src []byte) (p Progress) {
	for {
		rest := src[p.Used:]
		switch {
		case r.skip > 0:
			n := min(r.skip, len(rest))
			p.Used += n
			if r.skip -= n; r.skip > 0 {
				return p
			}
			r.packetEnd(&p)
		case r.packets > 0 && len(rest) >= headSize:
			r.skip = int(binary.BigEndian.Uint16(rest)) + int(binary.BigEndian.Uint16(rest[2:]))
			p.Used += headSize
			if r.skip == 0 {
				r.packetEnd(&p)
			}
		case r.packets == 0 && len(rest) >= countSize:
			r.packets = int(binary.BigEndian.Uint16(rest))
			p.Used += countSize
			if r.packets == 0 {
				p.answer(false)
			}
		default:
			return p
		}
	}
}

func (r *packetReader) packetEnd(p *Progress) {
	p.Packets++
	if r.packets--; r.packets == 0 {
		p.Done++
	}
}

// pinpriqPush makes pushes that never expire. A key is unique, because a pop takes all packets with
// equal keys.
func pinpriqPush(p *Packets) part {
	template := frame(&pinpriq.Request{
		Op: pinpriq.OpPush, Queue: []byte(p.Queue),
		Packet: pinpriq.Packet{Key: make([]byte, keySize), Payload: p.payload()},
	})
	return func(dst []byte, i uint64) []byte {
		at := len(dst)
		dst = append(dst, template...)
		dst[at+priorityAt] = byte(p.priority(i))
		binary.BigEndian.PutUint64(dst[at+keyAt:], p.Base+i)
		return dst
	}
}

func nameFrame(op pinpriq.Op, queue string) string {
	return string(frame(&pinpriq.Request{Op: op, Queue: []byte(queue)}))
}

// frame panics when a name or payload is longer than Packets allows.
func frame(r *pinpriq.Request) []byte {
	b, err := r.Append(nil)
	if err != nil {
		panic(err)
	}
	return b
}
