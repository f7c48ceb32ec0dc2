package netproto

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/broker"
)

// waitBegun waits until the buffers of requests that have begun have so many bytes.
func (s *Server) waitBegun(t *testing.T, want int) {
	t.Helper()
	waitFor(t, func() (ok bool) {
		_ = s.config.Loop.Do(func(*broker.Tx) error {
			ok = s.config.Buffers.sum == want
			return nil
		})
		return ok
	})
}

func TestTheLargestOfTooManyUnfinishedRequestsIsClosed(t *testing.T) {
	c := Config{Loop: newLoop(t, LoopConfig{}), Buffers: NewBuffers(3 << 20)}
	s, _ := serveLines(t, c)
	other, _ := serveLines(t, c) // another door shares the sum
	small, large, last := dial(t, s), dial(t, other), dial(t, s)
	send(t, small, strings.Repeat("s", 200<<10))
	s.waitBegun(t, 256<<10-maxReadBuffer)
	send(t, large, strings.Repeat("l", 1100<<10))
	s.waitBegun(t, (256+2048)<<10-2*maxReadBuffer)
	send(t, last, strings.Repeat("x", 600<<10))
	wantEnd(t, large)
	send(t, small, "\n")
	wantRead(t, small, strings.Repeat("s", 200<<10)+"\n")
	send(t, last, "\n")
	wantRead(t, last, strings.Repeat("x", 600<<10)+"\n")
	_ = small.Close()
	_ = last.Close()
	s.waitBegun(t, 0)
}

func TestARequestThatIsTooLongForAllBuffersClosesItsOwnConnection(t *testing.T) {
	s, _ := serveLines(t, Config{Buffers: NewBuffers(1 << 20)})
	c := dial(t, s)
	go func() { _, _ = c.Write(make([]byte, 4<<20)) }() // ends with the connection
	wantEnd(t, c)
}

func TestALargeBufferBehindARequestThatWaitsIsClosed(t *testing.T) {
	s, p := serveWaits(t, Config{Buffers: NewBuffers(2 << 20)})
	c := dial(t, s)
	send(t, c, strings.Repeat("x", 600<<10)+"\nwait\nhalf a line")
	wantRead(t, c, strings.Repeat("x", 600<<10)+"\n")
	p.until(t, 1, 2)
	s.waitBegun(t, broker.AwaitedMemory)
	other := dial(t, s)
	send(t, other, strings.Repeat("y", 200<<10))
	s.waitBegun(t, broker.AwaitedMemory+256<<10-maxReadBuffer)
	_ = s.config.Loop.Do(func(*broker.Tx) error { // as if one read had brought all
		for c := range s.config.Loop.conns {
			if c.blocked() {
				c.in = append(make([]byte, 0, 2<<20), c.in...)
				s.config.Buffers.count(c)
			}
		}
		return nil
	})
	wantEnd(t, c)
	send(t, other, "\n")
	wantRead(t, other, strings.Repeat("y", 200<<10)+"\n")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestNamesThatAConnectionWaitsForCount(t *testing.T) {
	s, p := serveLines(t, Config{})
	c := dialLines(t, s, 1)[0]
	const names = 100
	_ = s.config.Loop.Do(func(tx *broker.Tx) error {
		for i := range names {
			if err := tx.Subscribe(p.peers[0].Consumer(), fmt.Append(nil, i)); err != nil {
				t.Error(err)
			}
		}
		return nil
	})
	send(t, c, "a request\n")
	wantRead(t, c, "a request\n")
	s.waitBegun(t, names*broker.AwaitedMemory)
	_ = c.Close()
	s.waitConns(t, 0)
	s.waitBegun(t, 0)
}
