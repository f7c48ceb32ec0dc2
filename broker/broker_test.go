package broker_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/storage"
)

// gate lets a test decide when a commit goes on and how it ends.
type gate struct {
	entered chan struct{}
	leave   chan error
}

func (h *harness) gate() *gate {
	g := &gate{entered: make(chan struct{}), leave: make(chan error)}
	h.store.mu.Lock()
	h.store.before = func() error {
		g.entered <- struct{}{}
		return <-g.leave
	}
	h.store.mu.Unlock()
	return g
}

// ungate ends the gate: commits after it do not stop.
func (h *harness) ungate() {
	h.store.mu.Lock()
	h.store.before = nil
	h.store.mu.Unlock()
}

// close ends the broker. Its last batch, with the counters, passes any gate.
func (h *harness) close() {
	h.ungate()
	_ = h.b.Close()
}

func TestReplyWaitsUntilWhatItReportsIsOnDisk(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	g := h.gate()
	r := &inbox{flushed: make(chan struct{}, 4)}
	c := h.b.Attach(r, groups)
	h.push("q", 1, 0, "a", "first")
	<-g.entered // the push is being committed
	h.pop(c, "nothing here")
	select {
	case <-r.flushed:
		t.Fatal("an empty pop was answered before the push ahead of it was on disk")
	default:
	}
	g.leave <- nil
	<-r.flushed
	if len(h.store.packets) != 1 {
		t.Fatalf("store holds %d packets when the reply was handed out, want 1", len(h.store.packets))
	}
}

func TestPushAndPopInOneBatchTouchNoDisk(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	g := h.gate()
	r := &inbox{}
	c := h.b.Attach(r, groups)
	h.push("q", 1, 0, "a", "on disk")
	<-g.entered // what follows goes into one batch
	for i := range 100 {
		h.push("q", 1, 0, fmt.Sprint(i), "passes through")
		h.pop(c, "q")
	}
	h.ungate()
	g.leave <- nil
	h.barrier()
	if h.store.written != 1 {
		t.Fatalf("%d packets were written, want only the one of the first batch", h.store.written)
	}
	if n := len(r.got); n != 100 || r.got[0][0] != "passes through" {
		t.Fatalf("got %d replies, want 100", n)
	}
}

func TestFailedCommitEndsTheBrokerAndAnswersNothing(t *testing.T) {
	h := newHarness(t)
	g := h.gate()
	r := &inbox{}
	c := h.b.Attach(r, groups)
	h.push("q", 1, 0, "a", "x")
	h.pop(c, "other")
	<-g.entered
	broken := errors.New("device is gone")
	g.leave <- broken
	<-h.b.Failed()
	if err := h.b.Do(func(tx *broker.Tx) error { return tx.Pop(c, []byte("q"), groups, 0) }); !errors.Is(err, broker.ErrClosed) {
		t.Fatalf("call after the failure gave %v, want ErrClosed", err)
	}
	if err := h.b.Close(); !errors.Is(err, broken) {
		t.Fatalf("Close gave %v, want the failure", err)
	}
	if len(r.got) != 0 {
		t.Fatalf("%d replies were handed out, want none", len(r.got))
	}
}

func TestFullDiskIsTriedAgainUntilThereIsRoom(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	g := h.gate()
	h.push("q", 1, 0, "a", "x")
	for range 2 {
		<-g.entered
		g.leave <- fmt.Errorf("no room: %w", storage.ErrFull)
	}
	<-g.entered
	c := h.b.Attach(&inbox{}, groups)
	pop := func() error {
		return h.b.Do(func(tx *broker.Tx) error { return tx.Pop(c, []byte("other"), groups, 0) })
	}
	if err := pop(); !errors.Is(err, broker.ErrStopped) {
		t.Fatalf("a call while the batch waits for room gave %v, want that it is refused", err)
	}
	h.ungate()
	g.leave <- nil
	waitFor(t, func() bool { return pop() == nil })
	h.barrier()
	if len(h.store.packets) != 1 {
		t.Fatal("the batch was not written after room was made")
	}
}

// waitFor polls a condition that another goroutine brings about.
func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("condition did not come true in 20 s")
		}
	}
}

func TestLowSpaceRefusesPushesAndLaterEverything(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	r := &inbox{}
	c := h.b.Attach(r, groups)
	h.push("q", 1, 0, "a", "x")
	push := func() error {
		return h.b.Do(func(tx *broker.Tx) error {
			return pushError(tx.Push(broker.PushRequest{Queue: []byte("q"), Priority: 1}))
		})
	}
	pop := func() error {
		return h.b.Do(func(tx *broker.Tx) error { return tx.Pop(c, []byte("q"), groups, 0) })
	}
	level := func(l storage.Level) {
		h.store.mu.Lock()
		h.store.level = l
		h.store.mu.Unlock()
		h.now.Add(1000)
	}
	level(storage.NoPush)
	h.barrier()
	if err := push(); !errors.Is(err, broker.ErrNoSpace) {
		t.Fatalf("push under the first watermark gave %v", err)
	}
	if err := pop(); err != nil {
		t.Fatalf("pop under the first watermark gave %v", err)
	}
	level(storage.Stop)
	if err := pop(); !errors.Is(err, broker.ErrStopped) {
		t.Fatalf("pop under the second watermark gave %v", err)
	}
	level(storage.Normal)
	if err := push(); err != nil {
		t.Fatalf("push after space was freed gave %v", err)
	}
}

func TestSubscribersAreServedWhenSpaceIsFreedWithoutAnotherCall(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	r := &inbox{flushed: make(chan struct{}, 1)}
	c := h.b.Attach(r, groups)
	h.push("q", 1, 0, "a", "x")
	level := func(l storage.Level) {
		h.store.mu.Lock()
		h.store.level = l
		h.store.mu.Unlock()
	}
	level(storage.Stop)
	waitFor(t, func() bool {
		err := h.b.Do(func(tx *broker.Tx) error { return tx.Pop(h.b.Attach(&inbox{}, groups), []byte("none"), groups, 0) })
		return errors.Is(err, broker.ErrStopped)
	})
	h.subscribe(c, 1, "q")
	level(storage.Normal)
	select {
	case <-r.flushed:
	case <-time.After(20 * time.Second):
		t.Fatal("the subscriber got nothing 20 s after space was freed")
	}
}

func TestPayloadsThatLeftTheCacheAreReadBack(t *testing.T) {
	h := newHarness(t) // a cache of 64 KiB
	defer h.close()
	const n = 2000
	payload := func(i int) string { return fmt.Sprintf("%d:%s", i, strings.Repeat("x", 200)) }
	for i := range n {
		h.push("q", 1, 0, fmt.Sprint(i), payload(i))
	}
	h.barrier()
	reads := 0
	h.store.mu.Lock()
	h.store.reads = func(int) { reads++ }
	h.store.mu.Unlock()
	r := &inbox{}
	c := h.b.Attach(r, groups)
	for i := range n {
		h.pop(c, "q")
		if i%10 == 0 {
			h.barrier() // batches of ten
		}
	}
	h.barrier()
	for i := range n {
		if len(r.got[i]) != 1 || r.got[i][0] != payload(n-1-i) {
			t.Fatalf("pop %d gave %.20q, want %.20q", i, r.got[i], payload(n-1-i))
		}
	}
	if reads == 0 || reads > n/20 {
		t.Fatalf("store was asked %d times for %d payloads: want few reads, each with its neighbours", reads, n)
	}
}

func TestSubscriberThatDoesNotReadIsPausedUntilItHasReadOn(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	slow, fast := &inbox{}, &inbox{}
	slow.unwritten = broker.MaxOutstandingBytes + 1
	cs, cf := h.b.Attach(slow, groups), h.b.Attach(fast, groups)
	for _, c := range []*broker.Conn{cs, cf} {
		h.do(func(tx *broker.Tx) error {
			if err := tx.Subscribe(c, []byte("q")); err != nil {
				return err
			}
			return tx.Ready(c, 2)
		})
	}
	for i := range 3 {
		h.push("q", 1, 0, fmt.Sprint(i), fmt.Sprint(i))
	}
	h.barrier()
	if len(slow.got) != 0 || len(fast.got) != 2 {
		t.Fatalf("slow subscriber got %v and the other %v, want none and two", slow.got, fast.got)
	}
	if !cs.Paused() {
		t.Fatal("slow subscriber is not paused")
	}
	h.do(func(*broker.Tx) error { slow.unwritten = 0; return nil })
	h.b.Resume(cs)
	h.barrier()
	if len(slow.got) != 1 || slow.got[0][0] != "2" {
		t.Fatalf("resumed subscriber got %v, want the packet that was left", slow.got)
	}
}

func TestDetachedConsumerIsFinishedAfterItsLastReply(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	r := &inbox{}
	c := h.b.Attach(r, groups)
	h.push("q", 1, 0, "a", "x")
	h.do(func(tx *broker.Tx) error {
		if err := tx.Subscribe(c, []byte("p")); err != nil {
			return err
		}
		if err := tx.Ready(c, 1); err != nil {
			return err
		}
		if err := tx.Pop(c, []byte("q"), groups, 0); err != nil {
			return err
		}
		tx.Detach(c)
		return nil
	})
	h.push("p", 1, 0, "b", "for nobody")
	h.barrier()
	if !r.finished || len(r.got) != 1 {
		t.Fatalf("finished=%v after %d replies, want true after 1", r.finished, len(r.got))
	}
	if s := h.b.Stats(); s.Packets != 1 {
		t.Fatalf("%d packets are queued, want the one that nobody was left to take", s.Packets)
	}
}

func TestMassExpiryFitsIntoBatches(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	h.store.limits.MaxOps = 3000
	h.restart()
	const n = 10_000
	for i := range n {
		h.push("q", 1, time.Millisecond, fmt.Sprint(i), "x")
	}
	h.barrier()
	h.now.Add(2)
	h.barrier()
	h.barrier() // the expiries that fitted into no earlier batch are in this one's at the latest
	if len(h.store.packets) != 0 {
		t.Fatalf("%d expired packets are on disk, want none", len(h.store.packets))
	}
}

func TestOversizedPacketIsRefusedWithItsLimit(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	err := h.b.Do(func(tx *broker.Tx) error {
		return pushError(tx.Push(broker.PushRequest{Queue: []byte("q"), Priority: 1, Payload: bytes.Repeat([]byte{1}, broker.MaxRecord)}))
	})
	if !errors.Is(err, broker.ErrTooLarge) {
		t.Fatalf("got %v, want ErrTooLarge", err)
	}
}

func TestEmptiedQueuesAreEvicted(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	c := h.b.Attach(&inbox{}, groups)
	for i := range 5000 {
		name := fmt.Sprint("queue", i)
		h.push(name, 1, 0, "k", "x")
		h.barrier()
		h.pop(c, name)
	}
	h.barrier()
	if n := len(h.store.queues); n > 1100 {
		t.Fatalf("store keeps the definitions of %d empty queues, want about a thousand", n)
	}
	h.restart()
	if s := h.b.Stats(); s.Packets != 0 {
		t.Fatalf("%d packets after the restart, want none", s.Packets)
	}
}

func TestGroupIsPoppedWholeUpToTheProtocolsCount(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	const n = broker.MaxGroup + 10
	for i := range n {
		h.push("q", uint32(i%2), 0, "same key", fmt.Sprint(i))
	}
	r := &inbox{}
	c := h.b.Attach(r, groups)
	h.pop(c, "q")
	h.barrier()
	h.pop(c, "q")
	h.barrier()
	if len(r.got) != 2 || len(r.got[0]) != broker.MaxGroup || len(r.got[1]) != 0 {
		t.Fatalf("pops gave %d replies, the first of %d packets; want %d packets and then none: what is left has priority 0",
			len(r.got), len(r.got[0]), broker.MaxGroup)
	}
	if got := len(h.store.packets); got != 10 {
		t.Fatalf("%d packets are left, want the ten that the count had no room for", got)
	}
}

// subscribe makes c a subscriber of the queues with so many readies.
func (h *harness) subscribe(c *broker.Conn, readies uint32, queues ...string) {
	h.t.Helper()
	h.do(func(tx *broker.Tx) error {
		for _, q := range queues {
			if err := tx.Subscribe(c, []byte(q)); err != nil {
				return err
			}
		}
		return tx.Ready(c, readies)
	})
}

func TestManyQueuesLeftAtOnceFitIntoBatches(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	h.store.limits = storage.Limits{MaxOps: 800, MaxBytes: 38400}
	h.restart()
	consumers := make([]*broker.Conn, 6)
	for i := range consumers {
		consumers[i] = h.b.Attach(&inbox{}, groups)
		for k := range 1000 {
			name := fmt.Sprint(i, "/", k)
			h.push(name, 1, 0, "k", "x")
			h.pop(consumers[i], name)
			h.subscribe(consumers[i], 0, name)
		}
	}
	h.barrier()
	h.do(func(tx *broker.Tx) error {
		for _, c := range consumers {
			tx.Detach(c)
		}
		return nil
	})
	for range 1000 {
		h.barrier()
	}
	if n := len(h.store.queues); n > 1100 {
		t.Fatalf("store keeps the definitions of %d queues that nobody uses", n)
	}
}

func TestMassExpiryOfQueuesFitsIntoBatches(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	h.store.limits = storage.Limits{MaxOps: 800, MaxBytes: 38400}
	h.restart()
	for i := range 4000 {
		h.push(fmt.Sprint("queue", i), 1, time.Millisecond, "k", "x")
	}
	h.barrier()
	h.now.Add(2)
	for i := range 2000 {
		h.push("other", 1, 0, fmt.Sprint(i), "x")
	}
	h.barrier()
	if n := len(h.store.packets); n != 2000 {
		t.Fatalf("%d packets are on disk, want the 2000 that live", n)
	}
}

// fillBatch pushes to a queue of its own until the open batch takes no more: the pusher then waits.
// The returned channel is closed when it got through.
func (h *harness) fillBatch() (through chan struct{}) {
	through = make(chan struct{})
	waiting := make(chan struct{})
	go func() {
		defer close(through)
		for i := range 2 * h.store.limits.MaxOps {
			if i == h.store.limits.MaxOps-10 {
				close(waiting)
			}
			_ = h.b.Do(func(tx *broker.Tx) error {
				return pushError(tx.Push(broker.PushRequest{Queue: []byte("filler"), Key: []byte(fmt.Sprint(i)), Priority: 1}))
			})
		}
	}()
	<-waiting
	return through
}

func TestNothingExpiredIsDeliveredAfterAStall(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	g := h.gate()
	h.push("q", 1, 0, "a", "first")
	<-g.entered // the next batch fills up meanwhile
	r := &inbox{}
	c := h.b.Attach(r, groups)
	h.push("q", 1, 10*time.Millisecond, "b", "short-lived")
	through := h.fillBatch()
	h.now.Add(5000)
	h.ungate()
	g.leave <- nil
	<-through
	h.subscribe(c, 5, "q")
	h.barrier()
	for _, reply := range r.got {
		if reply[0] == "short-lived" {
			t.Fatal("a packet was delivered 5 s after its 10 ms")
		}
	}
	if len(r.got) != 1 {
		t.Fatalf("got %q, want the packet that does not expire", r.got)
	}
}

func TestResumedSubscriberGetsFromAllItsQueuesAlthoughTheBatchIsFull(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	r := &inbox{unwritten: broker.MaxOutstandingBytes + 1}
	c := h.b.Attach(r, groups)
	h.subscribe(c, 10, "a", "b")
	h.push("a", 1, 0, "1", "a1")
	h.push("b", 1, 0, "2", "b1")
	h.push("b", 1, 10*time.Millisecond, "3", "expires")
	h.push("b", 1, 0, "4", "b2")
	h.barrier()
	if !c.Paused() || len(r.got) != 0 {
		t.Fatalf("paused %v, got %q before the resume", c.Paused(), r.got)
	}
	g := h.gate()
	h.push("q", 1, 0, "a", "opens a commit")
	<-g.entered
	through := h.fillBatch()
	h.now.Add(5000)
	resumed := make(chan struct{})
	go func() { // ends when the next batch is open
		defer close(resumed)
		_ = h.b.Do(func(*broker.Tx) error { r.unwritten = 0; return nil })
		h.b.Resume(c)
	}()
	h.ungate()
	g.leave <- nil
	<-through
	<-resumed
	h.barrier()
	if got := fmt.Sprint(r.got); got != "[[b2] [b1] [a1]]" {
		t.Fatalf("resumed subscriber got %v, want b2, b1 and a1", got)
	}
}

func TestRepliesOfOneBatchAreBounded(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	g := h.gate()
	h.push("q", 1, 0, "a", "x")
	<-g.entered
	const pops = 200_000
	r := &inbox{}
	c := h.b.Attach(r, groups)
	done := make(chan struct{})
	var answered atomic.Int64
	go func() {
		defer close(done)
		for range pops {
			_ = h.b.Do(func(tx *broker.Tx) error { return tx.Pop(c, []byte("nothing"), groups, 0) })
			answered.Add(1)
		}
	}()
	select {
	case <-done:
		t.Fatalf("%d pops were taken in behind one commit", pops)
	case <-time.After(time.Second): // long enough to take all of them in, if nothing stopped it
	}
	if n := answered.Load(); n > 70_000 {
		t.Fatalf("%d pops were taken in behind one commit", n)
	}
	h.ungate()
	g.leave <- nil
	<-done
	h.barrier()
	if len(r.got) != pops {
		t.Fatalf("%d replies, want %d", len(r.got), pops)
	}
}

func TestRedundantSubscribeAtTheLimitIsIgnored(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	c := h.b.Attach(&inbox{}, groups)
	for i := range broker.MaxSubscriptions {
		h.subscribe(c, 0, fmt.Sprint(i))
	}
	h.subscribe(c, 0, "17")
	err := h.b.Do(func(tx *broker.Tx) error { return tx.Subscribe(c, []byte("one more")) })
	if !errors.Is(err, broker.ErrTooManySubscriptions) {
		t.Fatalf("one subscription too many gave %v", err)
	}
}

func TestDefinitionsOfEmptyQueuesDoNotPileUpOverRestarts(t *testing.T) {
	h := newHarness(t)
	defer func() { _ = h.b.Close() }()
	for round := range 4 {
		c := h.b.Attach(&inbox{}, groups)
		for i := range 1000 {
			name := fmt.Sprint(round, "/", i)
			h.push(name, 1, 0, "k", "x")
			h.barrier()
			h.pop(c, name)
		}
		h.barrier()
		h.restart()
	}
	for range 200 {
		h.barrier()
	}
	if n := len(h.store.queues); n > 1100 {
		t.Fatalf("store keeps the definitions of %d empty queues, want about a thousand", n)
	}
}

// pushError is the error of a Push whose id does not matter.
func pushError(_ broker.ID, err error) error { return err }
