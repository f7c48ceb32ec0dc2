package netproto

import (
	"errors"
	"io"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"weak"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// tags is a protocol whose sessions change something with each request, and reply with how many
// batches were on disk then. So a reply may leave when there are more. A request is one letter.
type tags struct {
	applied  int64
	replies  int
	sessions []*tagSession
	tx       *broker.Tx // of the present turn
	rand     *rand.Rand
}

// requests are those that a session takes.
const requests = "uuuwwwdskot"

// any is one of the peers.
func (p *tags) any() *Peer { return p.sessions[p.rand.IntN(len(p.sessions))].peer }

type tagSession struct {
	all    *tags
	peer   *Peer
	pushes int // bytes of the push that waits; 0: it is a pop
}

func (p *tags) Name() string               { return "tags" }
func (p *tags) Delivery() broker.Selection { return broker.Selection{} }
func (p *tags) Open(peer *Peer) Session {
	s := &tagSession{all: p, peer: peer}
	p.sessions = append(p.sessions, s)
	return s
}

// Hear does what sessions may do at any time to others, and what would let others go on.
func (p *tags) Hear(int64, []broker.Event) bool {
	if len(p.sessions) == 0 || p.tx == nil {
		return false
	}
	switch peer := p.any(); p.rand.IntN(8) {
	case 0:
		peer.Kill()
	case 1:
		p.tx.Unpark(peer.Consumer())
	case 2:
		p.timeOut(peer.Consumer())
	}
	return false
}

func (p *tags) timeOut(c *broker.Conn) {
	if c.Parked() {
		p.tx.TimeOut(c)
	}
}

func (s *tagSession) Close(*broker.Tx) {
	s.all.sessions = slices.DeleteFunc(s.all.sessions, func(o *tagSession) bool { return o == s })
}

func (s *tagSession) Serve(tx *broker.Tx, buf []byte) (n int, stop Stop, err error) {
	for n < len(buf) && !s.peer.Consumer().Parked() {
		s.request(tx, buf[n])
		n++
	}
	if s.peer.Consumer().Parked() {
		return n, Blocked, nil
	}
	return n, Incomplete, nil
}

func (s *tagSession) request(tx *broker.Tx, what byte) {
	s.all.tx = tx
	switch what {
	case 'u', 'w':
		s.pushes = 0
		if what == 'u' {
			s.pushes = 1 + s.all.rand.IntN(9)
		}
		s.Again(tx, []byte("q"))
	case 'k':
		s.all.any().Kill()
	case 'o':
		tx.Unpark(s.all.any().Consumer())
	case 't':
		s.all.timeOut(s.all.any().Consumer())
	case 'd':
		if _ = tx.Subscribe(s.peer.Consumer(), []byte("q")); !s.peer.Consumer().Parked() {
			_ = tx.Atomic(func() error { return tx.Ready(s.peer.Consumer(), 1) })
		}
	default:
		_ = s.call(tx, func() error { return nil })
	}
}

// call makes a call that changes something, and replies.
func (s *tagSession) call(tx *broker.Tx, fn func() error) error {
	return tx.Atomic(func() error {
		if err := fn(); err != nil {
			return err
		}
		s.reply(tx)
		return nil
	})
}

// reply changes something, so that the batch is not empty, and replies.
func (s *tagSession) reply(tx *broker.Tx) {
	if err := tx.SetString([]byte("k"), []byte("v"), 0); err == nil {
		s.peer.Out = append(strconv.AppendInt(s.peer.Out, s.all.applied, 10), '\n')
	}
}

func (s *tagSession) Again(tx *broker.Tx, queue []byte) {
	err := s.call(tx, func() (err error) {
		switch {
		case queue == nil:
		case s.pushes > 0:
			_, err = tx.Push(broker.PushRequest{Queue: queue, Priority: 1, Payload: make([]byte, s.pushes)})
		default:
			_, err = tx.Pop(queue, broker.Selection{MustFind: true})
		}
		return err
	})
	if errors.Is(err, broker.ErrFull) || err == broker.ErrNothing {
		_ = tx.Park(s.peer.Consumer(), broker.Parking{Queues: [][]byte{[]byte("q")}, Push: s.pushes > 0})
	}
}

func (s *tagSession) Deliver([]broker.Packet) {
	s.peer.Out = append(strconv.AppendInt(s.peer.Out, s.all.applied, 10), '\n')
}

// wire is a link in memory, which looks at what leaves.
type wire struct {
	t    *testing.T
	all  *tags
	in   []byte
	line []byte
}

func (w *wire) start(*conn) error { return nil }
func (w *wire) read(buf []byte) (n int, err error) {
	n = copy(buf, w.in)
	w.in = w.in[n:]
	return n, nil
}

func (w *wire) write(data []byte) (int, error) {
	for _, b := range data {
		if b != '\n' {
			w.line = append(w.line, b)
			continue
		}
		if made, _ := strconv.ParseInt(string(w.line), 10, 64); made >= w.all.applied {
			w.t.Errorf("a reply left before batch %d was on disk, of which it tells", made)
		}
		w.all.replies++
		w.line = w.line[:0]
	}
	return len(data), nil
}

func (w *wire) watch(watch)           {}
func (w *wire) drained() bool         { return true }
func (w *wire) drain()                {}
func (w *wire) discard() (int, error) { return 0, io.EOF }
func (w *wire) closeWrite() error     { return nil }
func (w *wire) close()                {}

// counted is a disk that counts the batches that it has.
type counted struct {
	broker.Disk
	all *tags
}

func (d counted) Apply(b *broker.Batch) error {
	err := d.Disk.Apply(b)
	d.all.applied++
	return err
}

func TestWhatLeavesBelongsToABatchThatIsOnDisk(t *testing.T) {
	for seed := range uint64(10) {
		all := &tags{rand: rand.New(rand.NewPCG(seed, 1))}
		store, state := openStore(t)
		disk := counted{store, all}
		loop, err := StartLoop(broker.New(disk, state, broker.Options{}), disk, LoopConfig{Goroutines: goroutines()})
		if err != nil {
			t.Fatal(err)
		}
		server := NewServer(nil, Config{Protocol: all, Loop: loop})
		do := func(fn func(tx *broker.Tx) error) {
			if err := loop.Do(fn); err != nil {
				t.Fatal(err)
			}
		}
		do(func(tx *broker.Tx) error {
			s := broker.DefaultSettings()
			s.BoundBytes, s.Full = 10, content.FullBlock
			return tx.Atomic(func() error { return tx.SetSettings([]byte("q"), s) })
		})
		for range 500 {
			do(func(tx *broker.Tx) error {
				for len(all.sessions) < 8 {
					c := &conn{loop: loop, server: server, link: &wire{t: t, all: all}, remote: netip.MustParseAddrPort("127.0.0.1:1")}
					if err := server.add(c); err != nil {
						return err
					}
					c.start()
				}
				for range 1 + all.rand.IntN(4) {
					c := all.any().c
					w := c.link.(*wire)
					w.in = append(w.in, requests[all.rand.IntN(len(requests))])
					c.readable = true
					loop.ready = c.enlist(loop.ready)
				}
				return nil
			})
		}
		if err := errors.Join(loop.Close(), store.Close()); err != nil {
			t.Error(err)
		}
		if all.replies < 500 {
			t.Errorf("only %d replies", all.replies)
		}
	}
}

func TestWhatNoBatchProvesIsToldOnlyWhileTheQueuesAreHeld(t *testing.T) {
	store, state := openStore(t)
	var held atomic.Bool
	held.Store(true)
	loop, err := StartLoop(broker.New(store, state, broker.Options{}), store, LoopConfig{Goroutines: goroutines(), Held: held.Load})
	if err != nil {
		t.Fatal(err)
	}
	look := func(*broker.Tx) error { return nil }
	if err := loop.Do(look); err != nil {
		t.Errorf("a look while they are held: %v", err)
	}
	err = loop.Do(func(tx *broker.Tx) error {
		held.Store(false) // in the turn of the push, so that no turn before it ends the loop
		return tx.Atomic(func() error { return tx.SetSettings([]byte("q"), broker.DefaultSettings()) })
	})
	if err != nil {
		t.Errorf("a change: %v", err)
	}
	if err := loop.Do(look); !errors.Is(err, broker.ErrClosed) {
		t.Errorf("a look when they are not held: %v", err)
	}
	if err := loop.Close(); !errors.Is(err, ErrNotHeld) {
		t.Errorf("the loop ended with %v", err)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}

// roomless is a disk without room.
type roomless struct{ broker.Disk }

func (roomless) Apply(*broker.Batch) error { return broker.ErrDiskFull }

func TestAFullDiskLetsNothingLeaveWhenTheQueuesAreNotHeld(t *testing.T) {
	store, state := openStore(t)
	var lost atomic.Bool
	disk := roomless{store}
	held := func() bool { return !lost.Load() }
	loop, err := StartLoop(broker.New(disk, state, broker.Options{}), disk, LoopConfig{Goroutines: goroutines(), Held: held})
	if err != nil {
		t.Fatal(err)
	}
	look := make(chan error, 1)
	err = loop.Do(func(tx *broker.Tx) error {
		lost.Store(true)
		loop.answers = append(loop.answers, answer{to: look}) // of a look in the same turn
		return tx.Atomic(func() error { return tx.SetSettings([]byte("q"), broker.DefaultSettings()) })
	})
	if !errors.Is(err, broker.ErrClosed) {
		t.Errorf("a change: %v", err)
	}
	if err := <-look; !errors.Is(err, broker.ErrClosed) {
		t.Errorf("a look: %v", err)
	}
	if err := errors.Join(loop.Close(), store.Close()); !errors.Is(err, ErrNotHeld) {
		t.Errorf("the loop ended with %v", err)
	}
}

func TestSystemALoopThatHasEndedKeepsNothingOfTheQueues(t *testing.T) {
	store, state := openStore(t)
	machine := broker.New(store, state, broker.Options{})
	kept := weak.Make(machine)
	loop, err := StartLoop(machine, store, LoopConfig{Goroutines: goroutines()})
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, Config{Protocol: desk{}, Loop: loop})
	for range 3 { // one of which ends itself
		c := dial(t, s)
		send(t, c, "push\nhello\n")
		wantRead(t, c, "pushed\nhello\n")
		defer c.Close()
	}
	_ = dial(t, s).Close()
	if err := errors.Join(loop.Close(), store.Close()); err != nil {
		t.Fatal(err)
	}
	s.Review() // who watches users still knows the server
	machine, state = nil, nil
	waitFor(t, func() bool {
		runtime.GC()
		return kept.Value() == nil
	})
	runtime.KeepAlive(s)
}
