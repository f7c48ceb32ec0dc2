package crash

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"

	"github.com/holdfast-queue/holdfast/netproto/pinpriq"
)

// kind says how a queue of the load is used and judged.
type queueKind uint8

const (
	private  queueKind = iota // one connection pushes and pops: modelled exactly
	shared                    // all push and pop
	standing                  // all push, nobody pops: grows until it is drained
	expiring                  // all push with a time to live, few pop
	fed                       // all push, subscribers take
)

// groupKeys is how many keys per queue make groups; all other packets have a key of their own.
const groupKeys = 8

// queue is one queue of the load.
type queue struct {
	name string
	kind queueKind
}

// queueSet lists the queues of a load. Queues are known by their place in it.
type queueSet struct {
	all    []queue
	byKind [fed + 1][]int
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
		s.add(fed, fmt.Sprintf("fed-%d", i))
	}
	return s
}

func (s *queueSet) add(kind queueKind, name string) int {
	s.all = append(s.all, queue{name, kind})
	n := len(s.all) - 1
	s.byKind[kind] = append(s.byKind[kind], n)
	return n
}

// slackClass is where a pop of the queue without a reply counts: a subscriber's readiness may be
// spent on any of its queues, so those count together.
func (s *queueSet) slackClass(q int) int {
	if s.all[q].kind == fed {
		return s.byKind[fed][0]
	}
	return q
}

func pick(rng *rand.Rand, of []int) int { return of[rng.IntN(len(of))] }

// randomPriority favours few levels, so that there are ties. 0 only suits a packet of a group.
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

// randomSize is mostly some tens of bytes; at times more than a packet's record holds by itself,
// and rarely the most that one can have.
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

// randomTTL is in milliseconds: gone within the load, or there for longer than any cycle takes.
func randomTTL(rng *rand.Rand) int {
	if rng.IntN(2) == 0 {
		return 20 + rng.IntN(600)
	}
	return 40_000 + rng.IntN(25_000)
}

// farTTL is in milliseconds: for ever, or about the longest that there is, so that a packet which nobody
// took is there at the next judgement. What is popped of these must stay away like any other.
func farTTL(rng *rand.Rand) int {
	if rng.IntN(4) > 0 {
		return 0
	}
	return 60_000 + rng.IntN(5_000)
}

// link is a connection to the server, for one goroutine.
type link struct {
	conn    net.Conn
	in      *bufio.Reader
	request pinpriq.Request
	out     []byte
	key     []byte
	packet  []byte
}

func dial(addr string) (*link, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return &link{conn: conn, in: bufio.NewReaderSize(conn, 64<<10)}, nil
}

// add appends a request to what send will write. The requests of the load keep to the protocol's
// lengths, so it cannot fail.
func (l *link) add(op pinpriq.Op, queue string) {
	l.request = pinpriq.Request{Op: op, Queue: []byte(queue)}
	l.out, _ = l.request.Append(l.out)
}

func (l *link) addPush(queue string, id ID, key keyOf, prio uint8, ttl, size int) {
	l.key = key.append(l.key[:0])
	l.packet = appendPayload(l.packet[:0], id, size)
	l.request = pinpriq.Request{
		Op: pinpriq.OpPush, Queue: []byte(queue), Priority: prio, TTL: uint16(ttl),
		Packet: pinpriq.Packet{Key: l.key, Payload: l.packet},
	}
	l.out, _ = l.request.Append(l.out)
}

// send writes what was added.
func (l *link) send() error {
	_, err := l.conn.Write(l.out)
	l.out = l.out[:0]
	return err
}

// errCut means that the connection ended inside a reply.
var errCut = errors.New("connection ended in the middle of a reply")

// receive reads one reply or delivery and calls fn with each packet; the bytes are valid during
// the call. It returns io.EOF only if the stream ended between two replies.
func (l *link) receive(fn func(key, payload []byte)) error {
	var head [4]byte
	if _, err := io.ReadFull(l.in, head[:2]); err != nil {
		return cut(err)
	}
	for range binary.BigEndian.Uint16(head[:]) {
		if _, err := io.ReadFull(l.in, head[:]); err != nil {
			return errors.Join(errCut, err)
		}
		key, payload := int(binary.BigEndian.Uint16(head[:])), int(binary.BigEndian.Uint16(head[2:]))
		if cap(l.packet) < key+payload {
			l.packet = make([]byte, key+payload)
		}
		b := l.packet[:key+payload]
		if _, err := io.ReadFull(l.in, b); err != nil {
			return errors.Join(errCut, err)
		}
		fn(b[:key], b[key:])
	}
	return nil
}

func cut(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errCut
	}
	return err
}
