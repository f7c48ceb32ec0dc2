package crash

import (
	"fmt"
	"math/rand/v2"

	"github.com/holdfast-queue/holdfast/netproto/pinpriq"
)

// queueKind says how a queue of the load is used and checked.
type queueKind uint8

const (
	private    queueKind = iota // one worker pushes and pops: modelled exactly
	shared                      // all push and pop
	standing                    // all push, nobody pops: grows until it is drained
	expiring                    // all push with a time to live, few pop
	subscribed                  // all push, subscribers take
)

// groupKeys is how many keys of a queue make groups. All other packets have a key of their own.
const groupKeys = 8

// queue is one queue of the load.
type queue struct {
	name string
	kind queueKind
}

// queueSet is the queues of a load. A queue is known by its place in all.
type queueSet struct {
	all    []queue
	byKind [subscribed + 1][]int
	own    [][]int // the private ones, by worker
}

func newQueueSet(workers int) *queueSet {
	s := &queueSet{own: make([][]int, workers)}
	for w := range workers {
		for i := range 2 {
			s.own[w] = append(s.own[w], s.add(private, fmt.Sprintf("private-%d-%d", w, i)))
		}
	}
	for i := range 4 {
		s.add(shared, fmt.Sprintf("shared-%d", i))
	}
	for i := range 2 {
		s.add(standing, fmt.Sprintf("standing-%d", i))
		s.add(expiring, fmt.Sprintf("expiring-%d", i))
		s.add(subscribed, fmt.Sprintf("subscribed-%d", i))
	}
	return s
}

func (s *queueSet) add(kind queueKind, name string) int {
	s.all = append(s.all, queue{name, kind})
	n := len(s.all) - 1
	s.byKind[kind] = append(s.byKind[kind], n)
	return n
}

// slackClass is the queue at which a pop without a reply counts. A subscriber may get a delivery
// from any of its queues, so these count together.
func (s *queueSet) slackClass(q int) int {
	if s.all[q].kind == subscribed {
		return s.byKind[subscribed][0]
	}
	return q
}

func pick(rng *rand.Rand, of []int) int { return of[rng.IntN(len(of))] }

// randomPriority favours few levels, so that there are ties. Only a packet of a group may have 0.
func randomPriority(rng *rand.Rand, grouped bool) uint8 {
	switch n := rng.IntN(20); {
	case n < 3 && grouped:
		return 0
	case n == 19:
		return 255
	default:
		return uint8(1 + n%6)
	}
}

// randomSize is mostly some tens of bytes, at times more than a packet's record holds by itself,
// and rarely the most that a packet can have.
func randomSize(rng *rand.Rand) int {
	switch n := rng.IntN(1000); {
	case n == 0:
		return pinpriq.MaxPayload
	case n < 20:
		return 1000 + rng.IntN(4000)
	default:
		return payloadHeader + rng.IntN(150)
	}
}

// randomTTL is in milliseconds: it ends within the load, or after any cycle.
func randomTTL(rng *rand.Rand) int {
	if rng.IntN(2) == 0 {
		return 20 + rng.IntN(600)
	}
	return 40_000 + rng.IntN(25_000)
}

// farTTL is in milliseconds: 0 for ever, or about the longest that there is. So a packet that
// nobody took is there at the next check, and one that was popped must stay away like any other.
func farTTL(rng *rand.Rand) int {
	if rng.IntN(4) > 0 {
		return 0
	}
	return 60_000 + rng.IntN(5_000)
}

// pushAcked pushes packets without a group as client part, and returns when they are acknowledged.
// Size is in bytes; 0 means random sizes.
func (r *run) pushAcked(link *link, rng *rand.Rand, part, q, count, size int) error {
	sent := make([]ID, count)
	for i := range sent {
		p := r.ledger.add(part, packet{sent: r.ledger.now(), queue: int16(q), prio: randomPriority(rng, false), ttl: r.ttl}, true)
		bytes := size
		if bytes == 0 {
			bytes = 20 + rng.IntN(2000)
		}
		link.addPush(r.queues.all[q].name, &p, bytes)
		sent[i] = p.id
	}
	link.add(pinpriq.OpPop, "a queue without packets") // its reply acknowledges the pushes
	if err := link.send(); err != nil {
		return err
	}
	if err := link.receive(func(_, _ []byte) {}); err != nil {
		return err
	}
	for _, id := range sent {
		r.ledger.ack(id, r.ledger.now())
	}
	return nil
}
