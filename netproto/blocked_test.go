package netproto

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdfast-queue/holdfast/broker"
)

// waits is a protocol of lines: "wait" waits for a packet in the queue "q" and answers "got",
// "push" brings one and answers nothing, "drain" drains, any other line is echoed.
type waits struct {
	drain   func()
	blocked atomic.Int32 // connections that wait now
	served  atomic.Int32 // lines
}

func (p *waits) Name() string { return "waits" }

func (p *waits) Delivery() broker.Selection { return broker.Selection{} }

func (p *waits) Open(peer *Peer) Session { return &waitSession{p, peer} }

type waitSession struct {
	p    *waits
	peer *Peer
}

func (s *waitSession) Serve(tx *broker.Tx, buf []byte) (n int, stop Stop, err error) {
	for {
		end := bytes.IndexByte(buf[n:], '\n')
		if end < 0 {
			return n, Incomplete, nil
		}
		line := buf[n : n+end+1]
		n += end + 1
		s.p.served.Add(1)
		switch string(line) {
		case "wait\n":
			s.p.blocked.Add(1)
			if err := s.take(tx); err != nil {
				return n, Incomplete, err
			}
			if s.peer.Consumer().Parked() {
				return n, Blocked, nil
			}
		case "push\n":
			err := tx.Atomic(func() error {
				return pushError(tx.Push(broker.PushRequest{Queue: []byte("q"), Priority: 1}))
			})
			if err != nil {
				return n, Incomplete, err
			}
		case "drain\n":
			s.p.drain()
		default:
			s.peer.Out = append(s.peer.Out, line...)
		}
	}
}

// take takes a packet of the queue, or waits for one.
func (s *waitSession) take(tx *broker.Tx) error {
	return tx.Atomic(func() error {
		queue := []byte("q")
		c, err := tx.QueueCounts(queue)
		if err != nil || c.Selectable == 0 {
			return cmp.Or(err, tx.Park(s.peer.Consumer(), broker.Parking{Queues: [][]byte{queue}}))
		}
		s.p.blocked.Add(-1)
		s.peer.Out = append(s.peer.Out, "got\n"...)
		_, err = tx.Pop(queue, broker.Selection{})
		return err
	})
}

func (s *waitSession) Again(tx *broker.Tx, _ []byte) { _ = s.take(tx) }

func serveWaits(t *testing.T, c Config) (*Server, *waits) {
	p := &waits{}
	c.Protocol = p
	return serve(t, c), p
}

func (p *waits) until(t *testing.T, blocked, served int32) {
	t.Helper()
	waitFor(t, func() bool { return p.blocked.Load() == blocked && p.served.Load() == served })
}

func TestRequestsBehindOneThatWaitsAreServedWhenItHasEndedAndNotBefore(t *testing.T) {
	s, p := serveWaits(t, Config{})
	c, other := dial(t, s), dial(t, s)
	send(t, c, "wait\nfirst\nsec")
	p.until(t, 1, 1)
	send(t, c, "ond\nwait\nthird\n")
	send(t, other, "push\nhello\n")
	wantRead(t, other, "hello\n")
	wantRead(t, c, "got\nfirst\nsecond\n")
	p.until(t, 1, 6)
	send(t, other, "push\n")
	wantRead(t, c, "got\nthird\n")
}

func TestTheNextRequestMayComeAfterTheReply(t *testing.T) {
	s, _ := serveWaits(t, Config{})
	c, other := dial(t, s), dial(t, s)
	for range 100 {
		send(t, c, "wait\n")
		send(t, other, "push\n")
		wantRead(t, c, "got\n")
		send(t, c, "next\n")
		wantRead(t, c, "next\n")
	}
}

func TestAHangUpIsSeenWhileARequestWaits(t *testing.T) {
	for name, behind := range map[string]string{
		"nothing": "", "a request": "one\n", "a part": "on", "more than is read": strings.Repeat("x", maxReadBuffer+20<<10),
	} {
		if goroutines() && len(behind) > maxReadBuffer {
			continue // a goroutine sees the end only behind all that came before
		}
		s, p := serveWaits(t, Config{})
		c := dial(t, s)
		send(t, c, "wait\n"+behind)
		p.until(t, 1, 1)
		_ = c.Close()
		s.waitConns(t, 0)
		other := dial(t, s)
		send(t, other, "push\nwait\n")
		if got := make([]byte, 4); true {
			if _, err := io.ReadFull(other, got); err != nil || string(got) != "got\n" {
				t.Errorf("with %s behind it: the packet went to a connection that had hung up (%q, %v)", name, got, err)
			}
		}
	}
}

func TestTheFrameDeadlineDoesNotRunWhileARequestWaits(t *testing.T) {
	loop, pass := newLoopAtRest(t)
	s, p := serveWaits(t, Config{Loop: loop})
	c, other := dial(t, s), dial(t, s)
	send(t, c, "wait\nhal")
	p.until(t, 1, 1)
	pass(3 * DefaultFrameTimeout)
	send(t, other, "push\n")
	wantRead(t, c, "got\n")
	send(t, c, "f\n")
	wantRead(t, c, "half\n")
}

func TestShutdownEndsAConnectionWhoseRequestWaits(t *testing.T) {
	s, p := serveWaits(t, Config{})
	c := dial(t, s)
	send(t, c, "wait\nbehind\n")
	p.until(t, 1, 1)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(c); err != nil && !errors.Is(err, io.EOF) || len(rest) > 0 {
		t.Fatalf("the client got %q, %v", rest, err)
	}
}

func TestADrainJustBeforeARequestWaitsIsSeen(t *testing.T) {
	s, p := serveWaits(t, Config{})
	_ = s.config.Loop.Do(func(*broker.Tx) error {
		p.drain = func() {
			for c := range s.config.Loop.conns {
				c.phase, c.readable = draining, true
				c.link.drain()
				c.loop.again(c)
			}
		}
		return nil
	})
	c := dial(t, s)
	send(t, c, "half\ndr") // so that the frame deadline runs
	wantRead(t, c, "half\n")
	send(t, c, "ain\nwait\n")
	if rest, err := io.ReadAll(c); err != nil || len(rest) > 0 {
		t.Fatalf("the client got %q, %v", rest, err)
	}
}

// pushError is the error of a Push whose id does not matter.
func pushError(_ broker.ID, err error) error { return err }
