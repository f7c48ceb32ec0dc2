package netproto

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// desk is a protocol of lines: "push" brings a packet to the queue "q", and "push later" one that
// is ready in 200 ms. "pop" takes one, "wait" does so when there is one, and "try" for 20 ms. Any
// other line is echoed, and touches no data.
type desk struct{}

func (desk) Name() string               { return "desk" }
func (desk) Delivery() broker.Selection { return broker.Selection{} }
func (desk) Open(p *Peer) Session       { return &deskSession{peer: p} }

type deskSession struct {
	peer  *Peer
	until int64
}

func (s *deskSession) Serve(tx *broker.Tx, buf []byte) (n int, stop Stop, err error) {
	for !s.peer.Consumer().Parked() {
		line, _, ok := bytes.Cut(buf[n:], []byte("\n"))
		if !ok {
			return n, Incomplete, nil
		}
		if string(line) == "push" && tx.Space().Wait > 0 {
			return n, Later, nil
		}
		n += len(line) + 1
		switch string(line) {
		case "push":
			s.push(tx, 0)
		case "push later":
			s.push(tx, 200)
		case "pop":
			s.pop(tx, "none")
		case "wait", "try":
			if s.until = 0; string(line) == "try" {
				s.until = tx.Steady() + 20
			}
			s.Again(tx, []byte("q"))
		default:
			s.say(nil, string(line))
		}
	}
	return n, Blocked, nil
}

// say answers, or tells that a call was refused.
func (s *deskSession) say(err error, text string) {
	if err != nil {
		text = err.Error()
	}
	s.peer.Out = append(append(s.peer.Out, text...), '\n')
}

func (s *deskSession) push(tx *broker.Tx, delay int64) {
	err := tx.Atomic(func() error {
		_, err := tx.Push(broker.PushRequest{Queue: []byte("q"), Priority: 1, Delay: delay})
		return err
	})
	s.say(err, "pushed")
}

// pop takes a packet and answers, with nothing if there is none and that is "".
func (s *deskSession) pop(tx *broker.Tx, nothing string) (found bool) {
	err := tx.Atomic(func() error {
		f, err := tx.Pop([]byte("q"), broker.Selection{})
		found = len(f.Packets) > 0
		return err
	})
	switch {
	case found:
		s.say(nil, "got")
	case nothing != "":
		s.say(err, nothing)
	}
	return found
}

func (s *deskSession) Again(tx *broker.Tx, queue []byte) {
	expired := queue == nil
	nothing := ""
	if expired {
		nothing = "nothing came"
	}
	if !s.pop(tx, nothing) && !expired {
		if err := tx.Park(s.peer.Consumer(), broker.Parking{Queues: [][]byte{[]byte("q")}, Until: s.until}); err != nil {
			s.say(err, "")
		}
	}
}

// hooked is a store whose commits a test looks at or fails, and whose disk it fills.
type hooked struct {
	*storage.Store
	loop   *Loop
	before func() error // called first by each Apply, in the loop; an error fails it
	level  atomic.Uint32
	wait   atomic.Int64 // of those who bring data
	turns  atomic.Int64
	lost   atomic.Pointer[error] // storage.Space.Lost
}

func (s *hooked) Apply(b *content.Batch) error {
	if s.before != nil {
		if err := s.before(); err != nil {
			return err
		}
	}
	return s.Store.Apply(b)
}

func (s *hooked) Space() storage.Space {
	s.turns.Add(1)
	space := storage.Space{Level: storage.Level(s.level.Load()), Wait: time.Duration(s.wait.Load())}
	if lost := s.lost.Load(); lost != nil {
		space.Lost = *lost
	}
	return space
}

// serveDesk serves the protocol desk on a hooked store. Close of the loop must give want.
func serveDesk(t *testing.T, want error) (*Server, *hooked) {
	t.Helper()
	store, state := openStore(t)
	s := &hooked{Store: store}
	var err error
	if s.loop, err = StartLoop(broker.New(s, state, broker.Options{}), s, LoopConfig{Goroutines: goroutines()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.loop.Close(); !errors.Is(err, want) {
			t.Errorf("Close of the loop gave %v, want %v", err, want)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return serve(t, Config{Protocol: desk{}, Loop: s.loop}), s
}

// hook sets what Apply calls first.
func (s *hooked) hook(t *testing.T, before func() error) {
	t.Helper()
	if err := s.loop.Do(func(*broker.Tx) error { s.before = before; return nil }); err != nil {
		t.Fatal(err)
	}
}

// waitParked waits until so many requests wait.
func (s *hooked) waitParked(t *testing.T, want int) {
	t.Helper()
	waitFor(t, func() bool {
		parked := 0
		_ = s.loop.Do(func(*broker.Tx) error {
			for c := range s.loop.conns {
				if c.consumer.Parked() {
					parked++
				}
			}
			return nil
		})
		return parked == want
	})
}

// talk is a client that sends lines and reads them.
type talk struct {
	t *testing.T
	c *socket
	r *bufio.Reader
}

func talkTo(t *testing.T, s *Server) *talk {
	t.Helper()
	c := dial(t, s)
	return &talk{t, c, bufio.NewReader(c)}
}

func (k *talk) send(line string) {
	k.t.Helper()
	if _, err := fmt.Fprintln(k.c, line); err != nil {
		k.t.Fatal(err)
	}
}

func (k *talk) want(line string) {
	k.t.Helper()
	if got, err := k.r.ReadString('\n'); got != line+"\n" {
		k.t.Fatalf("got %q, %v, want %q", got, err, line)
	}
}

func TestWhileTheStorageIsBehindPushesWaitAndTheLoopRests(t *testing.T) {
	s, store := serveDesk(t, nil)
	pushes, pops, gone := talkTo(t, s), talkTo(t, s), talkTo(t, s)
	pops.send("push")
	pops.want("pushed")
	store.wait.Store(int64(time.Hour))
	pushes.send("hello\npush\nworld")
	pushes.want("hello")
	gone.send("push")
	if err := gone.c.TCPConn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() (late bool) {
		_ = store.loop.Do(func(*broker.Tx) error {
			late = len(store.loop.late) == 2 && store.loop.late[0].hungUp != store.loop.late[1].hungUp
			return nil
		})
		return late
	})
	pushes.send("more") // which is not read
	pops.send("hello\npop\npop")
	pops.want("hello")
	pops.want("got")
	pops.want("none")
	before := store.turns.Load()
	const looks = 1000
	for range looks {
		_ = store.loop.Do(func(*broker.Tx) error { return nil })
	}
	if n := store.turns.Load() - before; n > looks+looks/10 {
		t.Errorf("%d turns in %d that were asked for", n, looks)
	}
	store.wait.Store(int64(time.Millisecond))
	pops.send("hello")
	pops.want("hello")
	store.wait.Store(0) // the loop looks by itself
	pushes.want("pushed")
	pushes.want("world")
	pushes.want("more")
	gone.want("pushed")
}

func TestDoAnswersWhenWhatItChangedIsOnDisk(t *testing.T) {
	_, store := serveDesk(t, nil)
	var full atomic.Bool
	full.Store(true)
	store.hook(t, func() error {
		if full.Load() {
			return fmt.Errorf("no room: %w", storage.ErrFull)
		}
		return nil
	})
	answer := make(chan error, 1)
	posted := make(chan struct{})
	go func() { // ends with the commit
		answer <- store.loop.Do(func(tx *broker.Tx) error {
			close(posted)
			return tx.Atomic(func() error {
				_, err := tx.Push(broker.PushRequest{Queue: []byte("q"), Priority: 1})
				return err
			})
		})
	}()
	<-posted
	for range 10 { // looks are answered meanwhile
		_ = store.loop.Do(func(*broker.Tx) error { return nil })
	}
	select {
	case err := <-answer:
		t.Errorf("Do returned %v before the commit", err)
	default:
	}
	full.Store(false)
	if err := <-answer; err != nil {
		t.Error(err)
	}
	store.hook(t, nil)
}

func TestNoReplyLeavesBeforeWhatItReportsIsOnDisk(t *testing.T) {
	s, store := serveDesk(t, nil)
	pushes, waits := talkTo(t, s), talkTo(t, s)
	waits.send("wait")
	store.waitParked(t, 1)
	commits, held := 0, 0
	store.hook(t, func() error {
		commits++
		for c := range store.loop.conns {
			if len(c.peer.Out) > 0 {
				held++
			}
			if c.free > 0 || c.sent > 0 {
				t.Error("a reply has left before the commit")
			}
		}
		return nil
	})
	pushes.send("push\npush")
	pushes.want("pushed")
	pushes.want("pushed")
	waits.want("got")
	store.hook(t, nil)
	if commits == 0 || held < 2 {
		t.Errorf("%d replies were held up by %d commits, want those of both clients", held, commits)
	}
}

func TestACallThatChangesNothingIsAnsweredWithoutACommit(t *testing.T) {
	s, store := serveDesk(t, nil)
	k := talkTo(t, s)
	store.hook(t, func() error {
		t.Error("something is committed")
		return nil
	})
	for range 3 {
		k.send("pop")
		k.want("none")
	}
	store.hook(t, nil)
}

func TestAFailedCommitEndsTheLoopAndAnswersNothing(t *testing.T) {
	broken := errors.New("device is gone")
	s, store := serveDesk(t, broken)
	k, other := talkTo(t, s), talkTo(t, s)
	other.send("wait")
	store.waitParked(t, 1)
	store.hook(t, func() error { return broken })
	k.send("push")
	<-store.loop.Failed()
	for _, k := range []*talk{k, other} {
		if got, err := k.r.ReadString('\n'); got != "" || err == nil {
			t.Errorf("got %q, %v, want the end of the connection", got, err)
		}
	}
	if err := store.loop.Do(func(*broker.Tx) error { return nil }); !errors.Is(err, broker.ErrClosed) {
		t.Errorf("a call after the failure gave %v, want ErrClosed", err)
	}
}

func TestALostFolderEndsTheLoopAndAnswersNothing(t *testing.T) {
	lost := errors.New("the lock was removed")
	s, store := serveDesk(t, lost)
	k := talkTo(t, s)
	k.send("pop")
	k.want("none")
	store.hook(t, func() error { return errors.New("a batch was written") })
	store.lost.Store(&lost)
	k.send("push")
	<-store.loop.Failed()
	if got, err := k.r.ReadString('\n'); got != "" || err == nil {
		t.Errorf("got %q, %v, want the end of the connection", got, err)
	}
}

func TestAFullDiskIsTriedAgainUntilThereIsRoom(t *testing.T) {
	s, store := serveDesk(t, nil)
	pushes, other, waits := talkTo(t, s), talkTo(t, s), talkTo(t, s)
	waits.send("try")
	waits.want("nothing came")
	var full atomic.Bool
	var tries atomic.Int32
	full.Store(true)
	store.hook(t, func() error {
		if tries.Add(1); full.Load() {
			return fmt.Errorf("no room: %w", storage.ErrFull)
		}
		return nil
	})
	pushes.send("push")
	waitFor(t, func() bool { return tries.Load() > 0 })
	pushes.send("hello") // its answer comes behind that of the push
	other.send("hello")
	other.want("hello")
	other.send("pop")
	other.want(broker.ErrStopped.Error())
	waitFor(t, func() bool { return tries.Load() > 2 })
	full.Store(false)
	pushes.want("pushed")
	pushes.want("hello")
	other.send("pop")
	other.want("got")
	pushes.send("hello again")
	pushes.want("hello again")
	store.hook(t, nil)
}

func TestACloseSaysThatTheLastBatchFoundNoRoom(t *testing.T) {
	s, store := serveDesk(t, storage.ErrFull)
	k := talkTo(t, s)
	var tries atomic.Int32
	store.hook(t, func() error {
		tries.Add(1)
		return storage.ErrFull
	})
	k.send("push")
	waitFor(t, func() bool { return tries.Load() > 0 })
}

func TestACloseTriesTheBatchAgainThatFoundNoRoom(t *testing.T) {
	s, store := serveDesk(t, nil)
	k := talkTo(t, s)
	var tries atomic.Int32
	store.hook(t, func() error {
		if tries.Add(1) == 1 {
			return storage.ErrFull
		}
		return nil // there is room again, before the next try is due
	})
	k.send("push")
	waitFor(t, func() bool { return tries.Load() > 0 })
	if err := store.loop.Close(); err != nil {
		t.Error(err)
	}
}

func TestATimeOutIsKeptWithoutAnyCall(t *testing.T) {
	s, _ := serveDesk(t, nil)
	k := talkTo(t, s)
	for range 3 {
		k.send("try")
		k.want("nothing came")
	}
}

func TestWhoWaitsIsServedWhenSpaceIsFreedWithoutAnotherCall(t *testing.T) {
	s, store := serveDesk(t, nil)
	pushes, waits := talkTo(t, s), talkTo(t, s)
	waits.send("wait")
	store.waitParked(t, 1)
	store.hook(t, func() error { store.level.Store(uint32(storage.Stop)); return nil }) // before it is ready
	pushes.send("push later")
	pushes.want("pushed")
	store.hook(t, nil)
	var due int64
	waitFor(t, func() (passed bool) {
		_ = store.loop.Do(func(tx *broker.Tx) error {
			if due == 0 {
				due = tx.Now() + 200
			}
			passed = tx.Now() > due
			return nil
		})
		return passed
	})
	pushes.send("pop")
	pushes.want(broker.ErrStopped.Error())
	store.level.Store(uint32(storage.Normal))
	waits.want("got")
}

// names is a protocol whose session brings a packet to one queue after the other and takes it,
// until each turn's batch is full.
type names struct{}

func (names) Name() string               { return "names" }
func (names) Delivery() broker.Selection { return broker.Selection{} }
func (names) Open(p *Peer) Session       { return &namesSession{peer: p} }

type namesSession struct {
	peer   *Peer
	queues int
}

func (s *namesSession) Serve(tx *broker.Tx, buf []byte) (n int, stop Stop, err error) {
	const length = 60_000
	for ; s.queues*length < broker.MaxNameBytes*5/4; s.queues++ {
		if tx.Full() {
			return 0, More, nil
		}
		queue := append(make([]byte, length), strconv.Itoa(s.queues)...)
		err := tx.Atomic(func() error {
			if _, err := tx.Push(broker.PushRequest{Queue: queue, Priority: 1}); err != nil {
				return err
			}
			_, err := tx.Pop(queue, broker.Selection{})
			return err
		})
		if err != nil {
			return 0, Incomplete, err
		}
	}
	s.peer.Out = append(s.peer.Out, "done\n"...)
	return len(buf), Incomplete, nil
}

func TestEmptyQueuesEndAlsoWhileClientsFillEachBatch(t *testing.T) {
	s := serve(t, Config{Protocol: names{}})
	c := dial(t, s)
	send(t, c, "all\n")
	wantRead(t, c, "done\n")
}

// order is a protocol that notes in which order requests are served. The reply to "long" ends a
// turn, as does the time that "slow" takes. At the first request something is done.
type order struct {
	first  func()
	served []string
	clock  atomic.Int64
	slow   atomic.Int64 // requests
}

func (o *order) Name() string               { return "order" }
func (o *order) Delivery() broker.Selection { return broker.Selection{} }
func (o *order) Open(p *Peer) Session       { return orderSession{o, p} }

type orderSession struct {
	o    *order
	peer *Peer
}

func (s orderSession) Serve(_ *broker.Tx, buf []byte) (n int, stop Stop, err error) {
	if len(s.o.served) == 0 {
		s.o.first()
	}
	s.o.served = append(s.o.served, string(buf))
	switch string(buf) {
	case "long":
		s.peer.Send(NewMessage(make([]byte, maxTurnReplies+1)))
	case "slow":
		s.o.clock.Add(maxTurn.Milliseconds())
		s.o.slow.Add(1)
	default:
		s.peer.Out = append(s.peer.Out, buf...)
	}
	return len(buf), Incomplete, nil
}

// askAtOnce has so many new clients ask for something, beside others. All have come before one is
// served.
func askAtOnce(t *testing.T, s *Server, others, clients int, what string) (all []net.Conn) {
	loop := s.config.Loop
	for range clients {
		all = append(all, dial(t, s))
	}
	begun := 0
	waitFor(t, func() bool {
		_ = loop.Do(func(*broker.Tx) error { begun = len(loop.conns); return nil })
		return begun == others+clients
	})
	_ = loop.Do(func(*broker.Tx) error {
		for c := range loop.conns { // a slow machine may have taken long to let one in
			c.mean, c.known = 0, false
		}
		for _, c := range all {
			send(t, c, what)
		}
		waitFor(t, func() bool { // a goroutine may run late
			loop.mu.Lock()
			defer loop.mu.Unlock()
			return !loop.config.Goroutines || len(loop.told) >= clients
		})
		return nil
	})
	return all
}

func TestARequestIsNotServedBehindAllLongOnesThatWereAskedForBefore(t *testing.T) {
	if goroutines() {
		t.Skip("a goroutine reads what has come, and may run late")
	}
	for _, what := range []string{"long", "slow"} {
		const asked = 20
		o := &order{}
		s := serve(t, Config{Protocol: o, Loop: newLoop(t, LoopConfig{Clock: o.clock.Load})})
		c := dial(t, s)
		o.first = func() { send(t, c, "short") }
		askAtOnce(t, s, 1, asked, what)
		wantRead(t, c, "short")
		var served []string
		waitFor(t, func() bool {
			_ = s.config.Loop.Do(func(*broker.Tx) error { served = o.served; return nil })
			return len(served) == asked+1
		})
		if served[asked] == "short" {
			t.Errorf("%s ones: the request was served last of all", what)
		}
	}
}

func TestWhoWasLeftIsServedThoughNothingElseComes(t *testing.T) {
	o := &order{first: func() {}}
	s := serve(t, Config{Protocol: o, Loop: newLoop(t, LoopConfig{Clock: o.clock.Load})})
	askAtOnce(t, s, 0, 3, "slow")
	waitFor(t, func() bool { return o.slow.Load() == 3 })
}
