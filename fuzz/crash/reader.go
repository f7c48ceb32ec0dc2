package crash

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/holdfast-queue/holdfast/netproto/pinpriq"
)

// slowReader is a client that asks for a backup while the load goes on, and then takes little of it or
// nothing: the server's iterator stays open until the end. It belongs to the harness until start, then to
// its goroutine, which ends with the connection or the server, then to the harness again.
type slowReader struct {
	r    *run
	rng  *rand.Rand
	read int // bytes
}

const (
	// fillPackets of the largest size are more than what is on its way between iterator and client:
	// the 2 MB or so that a backup reads ahead, and the system's buffers of a connection.
	fillPackets = 384
	// readPause is between two looks of a slow reader, and readAtOnce what it takes at most each time.
	readPause  = 20 * time.Millisecond
	readAtOnce = 4 << 10
	// readBuffer is the client's end of the connection.
	readBuffer = 8 << 10
)

func newSlowReader(r *run) *slowReader {
	return &slowReader{r: r, rng: rand.New(rand.NewPCG(r.Seed, r.rng.Uint64()))}
}

// fill pushes so much that a backup is long.
func (s *slowReader) fill() error {
	link, err := dial(s.r.server.Addr())
	if err != nil {
		return err
	}
	defer link.conn.Close()
	if err := link.conn.SetDeadline(time.Now().Add(deadline)); err != nil {
		return err
	}
	q := pick(s.rng, s.r.queues.byKind[standing])
	sent := make([]ID, fillPackets)
	for i := range sent {
		e := entry{sent: s.r.ledger.now(), queue: int16(q), prio: randomPriority(s.rng, false)}
		id, key := s.r.ledger.add(s.r.Workers, e, true)
		sent[i] = id
		link.addPush(s.r.queues.all[q].name, id, key, e.prio, 0, pinpriq.MaxPayload)
		if err := link.send(); err != nil {
			return err
		}
	}
	link.add(pinpriq.OpPop, "a queue without packets") // its reply acknowledges the pushes
	if err := link.send(); err != nil {
		return err
	}
	if err := link.receive(func(_, _ []byte) {}); err != nil {
		return err
	}
	for _, id := range sent {
		s.r.ledger.ack(id, s.r.ledger.now())
	}
	return nil
}

// start begins to read in a goroutine.
func (s *slowReader) start(all *sync.WaitGroup) error {
	addr, err := s.r.server.Admin(deadline)
	if err != nil {
		return fmt.Errorf("connect a slow reader: %w", err)
	}
	all.Go(func() {
		if err := s.follow(addr); err != nil && endKind(s.r.end.Load()) == notYet { // a clean stop cuts a backup, too
			s.r.broken("a slow reader", err)
		}
	})
	return nil
}

// follow asks for the backup at some moment of the load and takes it until the server is gone: a little
// now and then, or only the beginning.
func (s *slowReader) follow(addr string) error {
	for after := s.rng.Int64N(20_000); s.r.pushed.Load() < after; {
		if !s.pause() {
			return nil
		}
	}
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.(*net.TCPConn).SetReadBuffer(readBuffer); err != nil {
		return err
	}
	if _, err := io.WriteString(conn, "GET /backup HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"); err != nil {
		return err
	}
	stalls := s.rng.IntN(2) == 0
	for b := make([]byte, readAtOnce); s.pause(); {
		if stalls && s.read > 0 {
			continue
		}
		n, err := conn.Read(b[:1+s.rng.IntN(readAtOnce)])
		s.read += n
		if err != nil {
			return err
		}
	}
	return nil
}

// pause waits a little. It returns false when the server is gone.
func (s *slowReader) pause() bool {
	select {
	case <-s.r.server.Exited():
		return false
	case <-time.After(readPause):
		return true
	}
}
