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
	return &pinpriqPush{packets: p, frame: pushFrame(&p), barrier: nameFrame(pinpriq.OpPop, BarrierQueue)}
}

type pinpriqPush struct {
	packets Packets
	frame   []byte // template of a push
	barrier []byte
	open    int // packets that wait for the barrier
	replies packetReader
}

func (c *pinpriqPush) Append(dst []byte, first uint64, n int) []byte {
	for i := first; i < first+uint64(n); i++ {
		dst = appendPush(dst, c.frame, &c.packets, i)
	}
	c.open += n
	return append(dst, c.barrier...)
}

func (c *pinpriqPush) Consume(dst, src []byte) ([]byte, Progress, error) {
	p := c.replies.read(src)
	if p.Done != p.Empty || c.replies.packets > 0 {
		return dst, Progress{}, errNotEmpty
	}
	if p.Done > 0 {
		p.Done, p.Packets, p.Empty = c.open, c.open, 0
		c.open = 0
	}
	return dst, p, nil
}

// PinpriqPop pops a queue. A reply may bring a whole group of packets.
func PinpriqPop(queue string) Protocol {
	return &pinpriqPop{repeated: nameFrame(pinpriq.OpPop, queue)}
}

type pinpriqPop struct {
	repeated
	replies packetReader
}

func (c *pinpriqPop) Consume(dst, src []byte) ([]byte, Progress, error) {
	return dst, c.replies.read(src), nil
}

// PinpriqPair makes each request a push and a pop of the same queue, whose depth stays the same.
// The pop's reply proves the push.
func PinpriqPair(p Packets) Protocol {
	return &pinpriqPair{packets: p, push: pushFrame(&p), pinpriqPop: pinpriqPop{repeated: nameFrame(pinpriq.OpPop, p.Queue)}}
}

type pinpriqPair struct {
	packets Packets
	push    []byte // template of a push
	pinpriqPop
}

func (c *pinpriqPair) Append(dst []byte, first uint64, n int) []byte {
	for i := first; i < first+uint64(n); i++ {
		dst = appendPush(dst, c.push, &c.packets, i)
		dst = append(dst, c.repeated...)
	}
	return dst
}

// PinpriqSubscribe subscribes to a queue and gives the server as many credits as the window is
// deep. It answers each delivery with a new credit. So the window never ends, and there is no
// latency.
func PinpriqSubscribe(queue string) Protocol {
	return &pinpriqSubscribe{frame: nameFrame(pinpriq.OpSubscribe, queue)}
}

type pinpriqSubscribe struct {
	frame   []byte // nil after it was sent
	replies packetReader
}

func (c *pinpriqSubscribe) Append(dst []byte, _ uint64, n int) []byte {
	dst = append(dst, c.frame...)
	c.frame = nil
	for range n {
		dst = append(dst, byte(pinpriq.OpReady))
	}
	return dst
}

func (c *pinpriqSubscribe) Consume(dst, src []byte) ([]byte, Progress, error) {
	p := c.replies.read(src)
	for range p.Done {
		dst = append(dst, byte(pinpriq.OpReady))
	}
	p.Done, p.Empty = 0, 0
	return dst, p, nil
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

// pushFrame makes the template of a push that never expires.
func pushFrame(p *Packets) []byte {
	return frame(&pinpriq.Request{
		Op: pinpriq.OpPush, Queue: []byte(p.Queue),
		Packet: pinpriq.Packet{Key: make([]byte, keySize), Payload: p.payload()},
	})
}

// appendPush appends the push of packet i. Its key is unique, because a pop takes all packets with
// equal keys.
func appendPush(dst, template []byte, p *Packets, i uint64) []byte {
	at := len(dst)
	dst = append(dst, template...)
	dst[at+priorityAt] = byte(p.priority(p.Base + i))
	binary.BigEndian.PutUint64(dst[at+keyAt:], p.Base+i)
	return dst
}

func nameFrame(op pinpriq.Op, queue string) []byte {
	return frame(&pinpriq.Request{Op: op, Queue: []byte(queue)})
}

// frame panics when a name or payload is longer than Packets allows.
func frame(r *pinpriq.Request) []byte {
	b, err := r.Append(nil)
	if err != nil {
		panic(err)
	}
	return b
}
