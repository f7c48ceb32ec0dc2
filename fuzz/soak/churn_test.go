package soak

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"

	"github.com/holdfast-queue/holdfast/cmd/workshop/loadgen"
	"github.com/holdfast-queue/holdfast/netproto/pinpriq"
)

const (
	payloadBytes = 128
	keyBytes     = 8
	levels       = 250 // priorities that are used

	firstNumber = 1 << 40 // of the packets that are not part of the filling
)

// traffic is what all connections did. They add to it; anybody may read it.
type traffic struct {
	pushed, popped atomic.Int64 // packets, sent and received
}

// churn is one connection. Each request is a push and a pop, so the backlog keeps its size. A
// swapping connection has two queues. It pushes to one and pops the other until that is empty, and
// then swaps them. So every packet lives as long as the backlog is deep, and the oldest part of the
// disk is always dying. The others push with random priorities to the queue that they pop. There
// most of the backlog never moves, and new packets die young.
//
// It is a loadgen.Protocol, used by one goroutine.
type churn struct {
	loadgen.Protocol // pops; it reads the replies
	all              *traffic
	rng              *rand.Rand
	to, from         []byte
	swapping         bool
	empty            bool // the last window found nothing to pop
	missed           int  // pops that found nothing: so many pushes are left out, or the backlog would grow
	payload          [payloadBytes]byte
}

func queueName(conn int, second bool) string {
	if second {
		return fmt.Sprintf("soak.%d.b", conn)
	}
	return fmt.Sprintf("soak.%d.a", conn)
}

// newChurn makes the connection with that number. Every second one swaps.
func newChurn(all *traffic, conn int) *churn {
	c := &churn{Protocol: loadgen.PinpriqPop(""), all: all, rng: rand.New(rand.NewPCG(1, uint64(conn))), swapping: conn%2 == 1}
	c.from, c.to = []byte(queueName(conn, false)), []byte(queueName(conn, c.swapping))
	return c
}

// Append implements loadgen.Protocol.
func (c *churn) Append(dst []byte, first uint64, n int) []byte {
	if c.empty && c.swapping {
		c.to, c.from = c.from, c.to
	}
	c.empty = false
	pushes := 0
	pop := pinpriq.Request{Op: pinpriq.OpPop, Queue: c.from}
	for i := range uint64(n) {
		if c.missed > 0 {
			c.missed--
		} else {
			dst = c.push(dst, firstNumber+first+i)
			pushes++
		}
		dst, _ = pop.Append(dst) // the names are short enough
	}
	c.all.pushed.Add(int64(pushes))
	return dst
}

func (c *churn) push(dst []byte, number uint64) []byte {
	var key [keyBytes]byte
	binary.BigEndian.PutUint64(key[:], number)
	for i := 0; i < payloadBytes; i += 8 {
		binary.BigEndian.PutUint64(c.payload[i:], c.rng.Uint64())
	}
	push := pinpriq.Request{
		Op: pinpriq.OpPush, Queue: c.to, Priority: uint8(1 + c.rng.IntN(levels)),
		Packet: pinpriq.Packet{Key: key[:], Payload: c.payload[:]},
	}
	dst, _ = push.Append(dst)
	return dst
}

var errGroup = errors.New("a pop gave more than one packet although all keys differ")

// Consume implements loadgen.Protocol.
func (c *churn) Consume(dst, src []byte) ([]byte, loadgen.Progress, error) {
	dst, p, err := c.Protocol.Consume(dst, src)
	if err == nil && p.Packets > p.Done-p.Empty {
		err = errGroup
	}
	if p.Empty > 0 {
		c.missed += p.Empty
		c.empty = true
	}
	c.all.popped.Add(int64(p.Packets))
	return dst, p, err
}
