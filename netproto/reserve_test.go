package netproto

import (
	"bytes"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
)

// sized is a protocol of requests that announce how many bytes follow their first line, which is
// the reply.
type sized struct {
	most int // bytes that were reserved at a time
}

func (p *sized) Name() string { return "sized" }

func (p *sized) Delivery() broker.Selection { return broker.Selection{} }

func (p *sized) Open(peer *Peer) Session { return sizedSession{p, peer} }

type sizedSession struct {
	*sized
	peer *Peer
}

func (s sizedSession) Serve(_ *broker.Tx, buf []byte) (n int, stop Stop, err error) {
	s.most = max(s.most, s.peer.c.server.config.Buffers.reserved)
	for {
		line, rest, whole := bytes.Cut(buf[n:], []byte("\n"))
		if !whole {
			return n, Incomplete, nil
		}
		size, _ := strconv.Atoi(string(line))
		if len(rest) < size {
			s.peer.Announce(len(line) + 1 + size)
			return n, Incomplete, nil
		}
		s.peer.Out = append(append(s.peer.Out, line...), '\n')
		n += len(line) + 1 + size
	}
}

const (
	longSize    = 5 << 20
	longBuffers = 24 << 20 // room for three of them
)

// long is the beginning of a long request, and the rest.
func long() (begin, rest string) {
	return strconv.Itoa(longSize) + "\nbegin", strings.Repeat("x", longSize-len("begin"))
}

func TestLongRequestsAreAllServedWhereThereIsRoomForFew(t *testing.T) {
	p := &sized{}
	s := serve(t, Config{Protocol: p, Buffers: NewBuffers(longBuffers)})
	begin, rest := long()
	var all sync.WaitGroup
	for range 12 {
		c := dial(t, s)
		all.Go(func() { // ends with the reply, or the connection
			_, _ = io.WriteString(c, begin+rest+begin+rest)
			got := make([]byte, 2*len("5242880\n"))
			if _, err := io.ReadFull(c, got); err != nil {
				t.Errorf("no reply: %v", err)
			}
		})
	}
	all.Wait()
	var most int
	_ = s.config.Loop.Do(func(*broker.Tx) error { most = p.most; return nil })
	if most < longSize || most > longBuffers {
		t.Errorf("%d bytes were reserved, of %d", most, longBuffers)
	}
	s.waitBegun(t, 0)
}

// newLoopAtRest is a loop whose clock moves only with pass: nobody is late because the machine is
// slow.
func newLoopAtRest(t *testing.T) (l *Loop, pass func(time.Duration)) {
	t.Helper()
	var now atomic.Int64
	l = newLoop(t, LoopConfig{Clock: now.Load})
	return l, func(d time.Duration) {
		for step := standsAfter / 2; d > 0; d -= step { // else it may seem to be a turn that takes long
			now.Add(min(step, d).Milliseconds())
			_ = l.Do(func(*broker.Tx) error { return nil }) // a turn, which looks at deadlines
		}
	}
}

// A turn that takes long ends no lease, but where each does so leases end all the same.
func TestTheSteadyClockStandsForATurnThatTakesLongAndNotForMany(t *testing.T) {
	var now atomic.Int64
	l := newLoop(t, LoopConfig{Clock: now.Load})
	turn := func(ms int64) (steady int64) {
		_ = l.Do(func(tx *broker.Tx) error { now.Add(ms); steady = tx.Steady(); return nil })
		return steady
	}
	turn(0)
	begun := turn(60_000)
	if passed := turn(0) - begun; passed != 0 {
		t.Errorf("behind a turn of a minute %d ms have passed", passed)
	}
	now.Add(8 * 60_000)
	begun = turn(0)
	for range 1000 {
		turn(300)
	}
	if passed := turn(0) - begun; passed < 1000*300*8/10 || passed == 1000*300 {
		t.Errorf("in 1000 turns of 300 ms the clock goes on for %d ms", passed)
	}
}

func TestHalfSentLongRequestsHoldNobodyUpForEver(t *testing.T) {
	loop, pass := newLoopAtRest(t)
	s := serve(t, Config{Protocol: &sized{}, Loop: loop, Buffers: NewBuffers(longBuffers)})
	buffers := s.config.Buffers
	wait := func(waiting int) { // until so many wait, and three are read
		t.Helper()
		waitFor(t, func() (ok bool) {
			_ = loop.Do(func(*broker.Tx) error {
				read := 0
				for c := range loop.conns {
					if c.frame.in != nil {
						read++
					}
				}
				ok = read == 3 && len(buffers.waiting) == waiting
				return nil
			})
			return ok
		})
	}
	begin, rest := long()
	for range 6 {
		send(t, dial(t, s), begin)
	}
	wait(3)
	c := dial(t, s)
	send(t, c, "0\n")
	wantRead(t, c, "0\n")
	go func() { _, _ = io.WriteString(c, begin+rest) }() // ends with the test
	wait(4)
	pass(DefaultFrameTimeout) // those that are read end
	wait(1)
	pass(DefaultFrameTimeout) // and those that waited
	wantRead(t, c, strconv.Itoa(longSize)+"\n")
	pass(lingerTime)
	s.waitConns(t, 1)
	_ = c.Close()
	s.waitBegun(t, 0)
	_ = loop.Do(func(*broker.Tx) error {
		if buffers.reserved != 0 || len(buffers.waiting) > 0 {
			t.Errorf("%d bytes are reserved, and %d wait, after all", buffers.reserved, len(buffers.waiting))
		}
		return nil
	})
}

func TestALongRequestMayTakeAsLongAsItComesOn(t *testing.T) {
	loop, pass := newLoopAtRest(t)
	s := serve(t, Config{Protocol: &sized{}, Loop: loop})
	begin, rest := long()
	c := dial(t, s)
	send(t, c, begin)
	for sent := len(begin); len(rest) > frameBytes; rest = rest[frameBytes:] {
		send(t, c, rest[:frameBytes])
		sent += frameBytes
		waitFor(t, func() (read bool) {
			_ = loop.Do(func(*broker.Tx) error {
				for c := range loop.conns {
					read = len(c.in) == sent
				}
				return nil
			})
			return read
		})
		pass(DefaultFrameTimeout * 2 / 3)
	}
	send(t, c, rest)
	wantRead(t, c, strconv.Itoa(longSize)+"\n")
}
