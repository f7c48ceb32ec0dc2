package soak

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"

	"github.com/holdfast-queue/holdfast/cmd/loadgen"
)

const (
	payloadBytes = 128
	keyBytes     = 8
	levels       = 250 // priorities that are used

	firstNumber = 1 << 40 // of the packets that are not part of the filling
)

// traffic is what all connections did; they add to it, anybody reads it.
type traffic struct {
	pushed, popped atomic.Int64 // packets, asked for and received
}

// churn is one connection: each request is a push and a pop, so that the backlog stays as large as
// it is. A swapping one has two queues. It pushes to one and pops the other until that is empty,
// and then changes their places: every packet lives as long as the backlog is deep, and the oldest
// part of the disk is always dying. Any other pushes with random priorities to the queue that it
// pops: most of the backlog never moves, and what is new dies young.
//
// It is a loadgen.Protocol, used by one goroutine.
type churn struct {
	all      *traffic
	rng      *rand.Rand
	to, from string
	swapping bool
	empty    bool // the queue that it pops was found empty by the last window
	owed     int  // pops that found nothing: to be made up for, or the backlog would grow
	part     struct {
		packets int // still to come in the reply that is being read
		skip    int // bytes still to come of the packet that is being read
	}
}

func queueName(conn int, second bool) string {
	if second {
		return fmt.Sprintf("soak.%d.b", conn)
	}
	return fmt.Sprintf("soak.%d.a", conn)
}

// newChurn makes the connection of a number; every second one swaps.
func newChurn(all *traffic, conn int) *churn {
	c := &churn{all: all, rng: rand.New(rand.NewPCG(1, uint64(conn))), swapping: conn%2 == 1}
	c.from, c.to = queueName(conn, false), queueName(conn, c.swapping)
	return c
}

// Append implements loadgen.Protocol. The frames are those of the pinpriq document.
func (c *churn) Append(dst []byte, first uint64, n int) []byte {
	if c.empty && c.swapping {
		c.to, c.from = c.from, c.to
	}
	c.empty = false
	pushes := 0
	for i := range uint64(n) {
		if c.owed > 0 {
			c.owed--
		} else {
			dst = c.push(dst, firstNumber+first+i)
			pushes++
		}
		dst = append(dst, 'P')
		dst = binary.BigEndian.AppendUint16(dst, uint16(len(c.from)))
		dst = append(dst, c.from...)
	}
	c.all.pushed.Add(int64(pushes))
	return dst
}

func (c *churn) push(dst []byte, number uint64) []byte {
	dst = append(dst, 'p')
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(c.to)))
	dst = append(dst, 0, 0, byte(1+c.rng.IntN(levels))) // TTL 0: it never expires
	dst = binary.BigEndian.AppendUint16(dst, keyBytes)
	dst = binary.BigEndian.AppendUint16(dst, payloadBytes)
	dst = binary.BigEndian.AppendUint64(dst, number)
	for range payloadBytes / 8 {
		dst = binary.BigEndian.AppendUint64(dst, c.rng.Uint64())
	}
	return append(dst, c.to...)
}

var errGroup = errors.New("a pop gave more than one packet although every key is another")

// Consume implements loadgen.Protocol.
func (c *churn) Consume(dst, src []byte) ([]byte, loadgen.Progress, error) {
	p := loadgen.Progress{}
	const head = 4 // key length and payload length
	for {
		if c.part.packets > 0 && c.part.skip == 0 {
			if len(src)-p.Used < head {
				break
			}
			lengths := src[p.Used:]
			c.part.skip = int(binary.BigEndian.Uint16(lengths)) + int(binary.BigEndian.Uint16(lengths[2:]))
			p.Used += head
		}
		if c.part.packets > 0 {
			n := min(c.part.skip, len(src)-p.Used)
			p.Used += n
			if c.part.skip -= n; c.part.skip > 0 {
				break
			}
			c.part.packets = 0
			p.Packets++
			p.Done++
			continue
		}
		if len(src)-p.Used < 2 {
			break
		}
		count := int(binary.BigEndian.Uint16(src[p.Used:]))
		p.Used += 2
		switch count {
		case 0:
			p.Done++
			p.Empty++
		case 1:
			c.part.packets = 1
		default:
			return dst, p, errGroup
		}
	}
	if p.Empty > 0 {
		c.owed += p.Empty
		c.empty = true
	}
	c.all.popped.Add(int64(p.Packets))
	return dst, p, nil
}
