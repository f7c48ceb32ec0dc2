package crash

import (
	"io"
	"math/rand/v2"
	"net"
	"time"

	"github.com/holdfast-queue/holdfast/netproto/pinpriq"
)

// slowReader asks for a backup while the load goes on, and then takes little of it or nothing. So
// the server's iterator stays open until the end. It belongs to its goroutine while work runs,
// which ends with the connection or the server, and otherwise to the harness.
type slowReader struct {
	r    *run
	rng  *rand.Rand
	read int // bytes
}

const (
	// fillPackets of the largest size are more than what is between iterator and client: the 2 MB
	// or so that a backup reads ahead, and the system's buffers of a connection.
	fillPackets = 384
	// readPause is the time between two reads, and readAtOnce the most that one read takes.
	readPause  = 20 * time.Millisecond
	readAtOnce = 4 << 10
	// readBuffer is the system's buffer at the client's end of the connection.
	readBuffer = 8 << 10
)

func newSlowReader(r *run) *slowReader {
	return &slowReader{r: r, rng: rand.New(rand.NewPCG(r.Seed, r.rng.Uint64()))}
}

// fill pushes so many packets that a backup is long.
func (s *slowReader) fill() error {
	link, err := s.r.server.dialToCheck(pinpriqListener)
	if err != nil {
		return err
	}
	defer link.conn.Close()
	q := pick(s.rng, s.r.queues.byKind[standing])
	return s.r.pushAcked(link, s.rng, len(s.r.workers), q, fillPackets, pinpriq.MaxPayload)
}

func (s *slowReader) work() {
	if err := s.follow(); err != nil && endKind(s.r.end.Load()) == notYet { // a clean stop cuts a backup, too
		s.r.broken("a slow reader", err)
	}
}

// follow asks for the backup at some moment of the load. Until the server is gone it takes a little
// now and then, or only the beginning.
func (s *slowReader) follow() error {
	for after := s.rng.Int64N(20_000); s.r.pushed.Load() < after; {
		if !s.pause() {
			return nil
		}
	}
	link, err := s.r.server.dial(adminListener)
	if err != nil {
		return err
	}
	conn := link.conn
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
