package loadgen

import (
	"encoding/binary"
	"errors"
)

// The frames of the pinpriq document.
//
//	push   70 | qlen u16 | TTL u16 ms | prio u8 | keylen u16 | payloadlen u16 | key | payload | qname
//	pop    50 | qlen u16 | qname          reply  count u16 | count × (keylen u16 | payloadlen u16 | key | payload)
//	sub    73 | qlen u16 | qname          ready  41
//
// A push has no reply. A pop that follows it on the same connection is answered
// only after the push is on disk, so a pop of a queue that never holds anything
// is a barrier of three bytes and a name, answered by 00 00.

// BarrierQueue is the queue the barriers pop: the zero byte keeps it apart from
// any name a person would choose. Nothing may ever be pushed to it.
const BarrierQueue = "\x00barrier"

const (
	framePush      = 0x70
	framePop       = 0x50
	frameSubscribe = 0x73
	frameReady     = 0x41

	pushHead   = 6  // bytes before the packet
	packetHead = 4  // bytes before the key
	keySize    = 8  // the packet's number, big endian
	prioAt     = 5  // offset of the priority in a push
	keyAt      = 10 // offset of the key in a push
)

var errNotEmpty = errors.New("the barrier queue held a packet, expected it to be empty for ever; delete what was pushed to it")

// PinpriqPush pushes packets with one barrier behind each window, so a window's
// packets are acknowledged together, when they are on disk.
func PinpriqPush(p Packets) Protocol {
	return &pinpriqPush{packets: p, frame: pushFrame(&p), barrier: nameFrame(framePop, BarrierQueue)}
}

type pinpriqPush struct {
	packets Packets
	frame   []byte // template of a push
	barrier []byte
	open    int // packets waiting for the barrier of the one window under way
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
	used, replies, empty, _ := c.replies.read(src)
	if replies != empty || c.replies.packets > 0 {
		return dst, Progress{}, errNotEmpty
	}
	p := Progress{Used: used}
	if replies > 0 {
		p.Done, p.Packets = c.open, c.open
		c.open = 0
	}
	return dst, p, nil
}

// PinpriqPop pops a queue; a reply may bring a whole group of packets.
func PinpriqPop(queue string) Protocol {
	return &pinpriqPop{frame: nameFrame(framePop, queue)}
}

type pinpriqPop struct {
	frame   []byte
	replies packetReader
}

func (c *pinpriqPop) Append(dst []byte, _ uint64, n int) []byte {
	for range n {
		dst = append(dst, c.frame...)
	}
	return dst
}

func (c *pinpriqPop) Consume(dst, src []byte) ([]byte, Progress, error) {
	used, replies, empty, packets := c.replies.read(src)
	return dst, Progress{Used: used, Done: replies, Empty: empty, Packets: packets}, nil
}

// PinpriqPair makes each request a push and a pop of the same queue: the depth
// of the queue stays where it is. The pop's reply proves the push.
func PinpriqPair(p Packets) Protocol {
	return &pinpriqPair{
		packets:    p,
		push:       pushFrame(&p),
		pinpriqPop: pinpriqPop{frame: nameFrame(framePop, p.Queue)},
	}
}

type pinpriqPair struct {
	packets Packets
	push    []byte // template of a push
	pinpriqPop
}

func (c *pinpriqPair) Append(dst []byte, first uint64, n int) []byte {
	for i := first; i < first+uint64(n); i++ {
		dst = appendPush(dst, c.push, &c.packets, i)
		dst = append(dst, c.frame...)
	}
	return dst
}

// PinpriqSubscribe subscribes to a queue and keeps as many credits with the
// server as the window is deep: each delivery is answered by a new credit, so
// the window never completes, and no latency is measured.
func PinpriqSubscribe(queue string) Protocol {
	return &pinpriqSubscribe{frame: nameFrame(frameSubscribe, queue)}
}

type pinpriqSubscribe struct {
	frame   []byte // nil once it was sent
	replies packetReader
}

func (c *pinpriqSubscribe) Append(dst []byte, _ uint64, n int) []byte {
	dst = append(dst, c.frame...)
	c.frame = nil
	for range n {
		dst = append(dst, frameReady)
	}
	return dst
}

func (c *pinpriqSubscribe) Consume(dst, src []byte) ([]byte, Progress, error) {
	used, deliveries, _, packets := c.replies.read(src)
	for range deliveries {
		dst = append(dst, frameReady)
	}
	return dst, Progress{Used: used, Packets: packets}, nil
}

// packetReader counts the packets of a stream of pop replies and deliveries. It
// skips keys and payloads as they come in, so a reply larger than any buffer
// needs no memory.
type packetReader struct {
	packets int // still to come in the reply being read
	skip    int // bytes of key and payload still to come of the packet being read
}

// read returns the bytes it used, the replies that were completed, how many of
// them held nothing, and the packets that were completed.
func (r *packetReader) read(src []byte) (used, replies, empty, packets int) {
	for {
		if n := min(r.skip, len(src)-used); n > 0 {
			used += n
			r.skip -= n
			if r.skip > 0 {
				return
			}
			replies, packets = r.packetEnd(replies, packets)
		}
		switch {
		case r.packets > 0 && len(src)-used >= packetHead:
			head := src[used:]
			r.skip = int(binary.BigEndian.Uint16(head)) + int(binary.BigEndian.Uint16(head[2:]))
			used += packetHead
			if r.skip == 0 {
				replies, packets = r.packetEnd(replies, packets)
			}
		case r.packets == 0 && len(src)-used >= 2:
			r.packets = int(binary.BigEndian.Uint16(src[used:]))
			used += 2
			if r.packets == 0 {
				replies, empty = replies+1, empty+1
			}
		default:
			return
		}
	}
}

func (r *packetReader) packetEnd(replies, packets int) (int, int) {
	r.packets--
	if r.packets == 0 {
		replies++
	}
	return replies, packets + 1
}

// pushFrame makes the template of a push: TTL 0, which never expires.
func pushFrame(p *Packets) []byte {
	frame := make([]byte, 0, pushHead+packetHead+keySize+p.Size+len(p.Queue))
	frame = append(frame, framePush)
	frame = binary.BigEndian.AppendUint16(frame, uint16(len(p.Queue)))
	frame = append(frame, 0, 0, 0)
	frame = binary.BigEndian.AppendUint16(frame, keySize)
	frame = binary.BigEndian.AppendUint16(frame, uint16(p.Size))
	frame = append(frame, make([]byte, keySize)...)
	frame = append(frame, p.payload()...)
	return append(frame, p.Queue...)
}

// appendPush appends the push of packet i. Its key is unique because packets
// with equal keys are popped together (pinpriq document, section pop).
func appendPush(dst, frame []byte, p *Packets, i uint64) []byte {
	at := len(dst)
	dst = append(dst, frame...)
	dst[at+prioAt] = byte(p.priority(p.Base + i))
	binary.BigEndian.PutUint64(dst[at+keyAt:], p.Base+i)
	return dst
}

// nameFrame makes a frame of a first byte and a queue name.
func nameFrame(first byte, queue string) []byte {
	frame := binary.BigEndian.AppendUint16([]byte{first}, uint16(len(queue)))
	return append(frame, queue...)
}
