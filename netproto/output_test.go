package netproto

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/holdfast-queue/holdfast/broker"
)

// sendAll has the loop send messages to all connections that have said something, each to all of
// them before the next.
func (p *lines) sendAll(s *Server, messages ...*Message) {
	_ = s.config.Loop.Do(func(*broker.Tx) error {
		for _, m := range messages {
			for _, peer := range p.peers {
				peer.Send(m)
			}
		}
		return nil
	})
}

// dialLines makes so many connections that take little into their sockets.
func dialLines(t *testing.T, s *Server, n int) (all []*socket) {
	t.Helper()
	for range n {
		c := dial(t, s)
		_ = c.SetReadBuffer(32 << 10)
		send(t, c, "hello\n")
		wantRead(t, c, "hello\n")
		all = append(all, c)
	}
	return all
}

func TestMessagesOfAnySizeArriveInOrder(t *testing.T) {
	s, p := serveLines(t, Config{})
	all := dialLines(t, s, 3)
	rng := rand.New(rand.NewPCG(1, 2))
	var want []byte
	for range 50 {
		var messages []*Message
		for range 1 + rng.IntN(10) {
			m := NewMessage(bytes.Repeat([]byte{byte(rng.Uint32())}, rng.IntN(4*maxCopied)))
			messages, want = append(messages, m), m.Append(want)
		}
		p.sendAll(s, messages...)
	}
	for _, c := range all {
		wantRead(t, c, string(want))
		send(t, c, "after\n")
		wantRead(t, c, "after\n")
	}
	s.waitBegun(t, 0)
}

func TestAMessageIsSharedAndCountsOnce(t *testing.T) {
	const size = 16 << 20 // more than the sockets take
	s, p := serveLines(t, Config{})
	all := dialLines(t, s, 3)
	m := NewMessage(make([]byte, size))
	p.sendAll(s, m)
	s.waitBegun(t, size)
	_ = s.config.Loop.Do(func(*broker.Tx) error {
		for c := range s.config.Loop.conns {
			if len(c.before) != 1 || c.before[0] != m {
				t.Error("a connection has a message of its own")
			}
		}
		return nil
	})
	_ = all[0].Close()
	s.waitConns(t, 2)
	s.waitBegun(t, size)
	wantRead(t, all[1], string(m.bytes))
	_ = all[2].Close()
	s.waitConns(t, 1)
	s.waitBegun(t, 0)
}

func TestRepliesFarBeyondTheBoundAreNotKeptEvenForPeersThatRead(t *testing.T) {
	s, p := serveLines(t, Config{Buffers: NewBuffers(1 << 20)})
	dialLines(t, s, 1)
	p.sendAll(s, NewMessage(make([]byte, DefaultMaxBuffers+64<<20)))
	s.waitConns(t, 0)
}

func TestWhoMakesTheServerKeepTheMostIsClosed(t *testing.T) {
	s, p := serveLines(t, Config{Buffers: NewBuffers(1 << 20)})
	all := dialLines(t, s, 3)
	_ = s.config.Loop.Do(func(*broker.Tx) error {
		for i, n := range []int{300 << 10, 600 << 10, 200 << 10} {
			p.peers[i].Hold(n)
		}
		return nil
	})
	wantEnd(t, all[1])
	s.waitBegun(t, 500<<10)
	for _, c := range []*socket{all[0], all[2]} {
		send(t, c, "lives\n")
		wantRead(t, c, "lives\n")
	}
}

func TestAReplyThatIsMadeIsSparedAndEndsNobodyElse(t *testing.T) {
	s, p := serveLines(t, Config{Buffers: NewBuffers(1 << 20)})
	all := dialLines(t, s, 3)
	_ = s.config.Loop.Do(func(*broker.Tx) error {
		p.peers[0].Owe(2 << 20)
		p.peers[1].Hold(100 << 10)
		return nil
	})
	for _, c := range all {
		send(t, c, "lives\n")
		wantRead(t, c, "lives\n")
	}
	_ = s.config.Loop.Do(func(*broker.Tx) error {
		p.peers[2].Hold(1 << 20)
		return nil
	})
	wantEnd(t, all[2])
	for _, c := range all[:2] {
		send(t, c, "lives\n")
		wantRead(t, c, "lives\n")
	}
}

func TestRepliesThatAreReadAreNotSparedWhereTheMemoryIsShort(t *testing.T) {
	buffers := NewBuffers(64 << 20)
	left := leastBuffers + 4<<20
	buffers.Within(func() int { return left }) // called in the loop
	s, p := serveLines(t, Config{Buffers: buffers})
	all := dialLines(t, s, 4)
	owe := func(peer, bytes int) {
		_ = s.config.Loop.Do(func(*broker.Tx) error {
			p.peers[peer].Owe(bytes)
			return nil
		})
	}
	lives := func(c *socket) {
		t.Helper()
		send(t, c, "lives\n")
		wantRead(t, c, "lives\n")
	}
	owe(0, leastBuffers+2<<20)
	lives(all[0])
	_ = s.config.Loop.Do(func(*broker.Tx) error {
		left = -1 << 20
		return nil
	})
	owe(1, 1<<20)
	lives(all[1])
	wantEnd(t, all[0])
	owe(2, leastBuffers-2<<20) // so much is left in any case
	lives(all[2])
	_ = s.config.Loop.Do(func(*broker.Tx) error {
		left = 8 << 20
		return nil
	})
	owe(3, 2<<20)
	owe(3, 9<<20) // more than was left, which nobody has measured again
	lives(all[3])
	wantEnd(t, all[2])
}
