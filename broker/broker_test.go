package broker_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

func TestPushAndPopInOneBatchTouchNoDisk(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	r := &inbox{}
	c := h.b.Attach(r, groups)
	h.b.hold(func() { h.push("q", 1, 0, "a", "on disk") })
	for i := range 100 { // in one batch
		h.push("q", 1, 0, fmt.Sprint(i), "passes through")
		h.pop(c, "q")
	}
	h.b.release()
	h.barrier()
	if h.store.written != 1 {
		t.Fatalf("%d packets were written, want only the one of the first batch", h.store.written)
	}
	if n := len(r.got); n != 100 || r.got[0][0] != "passes through" {
		t.Fatalf("got %d replies, want 100", n)
	}
}

func TestCallsAreRefusedWhileABatchFindsNoRoom(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	full := true
	h.store.before = func() error {
		if full {
			return fmt.Errorf("no room: %w", storage.ErrFull)
		}
		return nil
	}
	h.push("q", 1, 0, "a", "x")
	h.barrier()
	c := h.b.Attach(&inbox{}, groups)
	pop := func() error {
		return h.b.Do(func(tx *broker.Tx) error { return reply(c)(tx.Pop([]byte("other"), groups)) })
	}
	for range 2 {
		if err := pop(); !errors.Is(err, broker.ErrStopped) {
			t.Fatalf("a call while the batch waits for room gave %v, want that it is refused", err)
		}
	}
	full = false
	if err := pop(); err != nil {
		t.Fatalf("a call after room was made gave %v", err)
	}
	if len(h.store.packets) != 1 {
		t.Fatal("the batch was not written after room was made")
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
		return h.b.Do(func(tx *broker.Tx) error { return reply(c)(tx.Pop([]byte("q"), groups)) })
	}
	level := func(l storage.Level) { h.store.level = l }
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
	h.store.memoryLevel = storage.NoPush
	h.barrier()
	if err := push(); !errors.Is(err, broker.ErrNoMemory) {
		t.Fatalf("push without memory gave %v", err)
	}
	if err := pop(); err != nil {
		t.Fatalf("pop without memory gave %v", err)
	}
	level(storage.Stop)
	if err := push(); !errors.Is(err, broker.ErrStopped) {
		t.Fatalf("push without memory on a full disk gave %v", err)
	}
	level(storage.Normal)
	h.store.memoryLevel = storage.Normal
	h.barrier()
	if err := push(); err != nil {
		t.Fatalf("push after memory was freed gave %v", err)
	}
}

func TestSubscribersAreServedWhenSpaceIsFreedWithoutAnotherCall(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	r := &inbox{}
	c := h.b.Attach(r, groups)
	h.push("q", 1, 0, "a", "x")
	h.store.level = storage.Stop
	h.subscribe(c, 1, "q")
	h.barrier()
	if next := h.b.Next(); len(r.got) > 0 || next > 1000 {
		t.Fatalf("the subscriber of a full disk got %q, and the next turn is due in %d ms", r.got, next)
	}
	h.store.level = storage.Normal
	h.barrier()
	if len(r.got) != 1 {
		t.Fatalf("the subscriber got %q after space was freed", r.got)
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
	h.store.reads = func(int) { reads++ }
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
	slow.unsent = broker.MaxOutstandingBytes + 1
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
	slow.unsent = broker.MaxOutstandingBytes/2 + 1
	if cs.CaughtUp() {
		t.Fatal("slow subscriber has caught up with more than half outstanding")
	}
	if slow.unsent--; !cs.CaughtUp() || cf.CaughtUp() {
		t.Fatal("slow subscriber has not caught up, or the other was paused")
	}
	h.do(func(tx *broker.Tx) error { tx.Resume(cs); return nil })
	h.barrier()
	if len(slow.got) != 1 || slow.got[0][0] != "2" {
		t.Fatalf("resumed subscriber got %v, want the packet that was left", slow.got)
	}
}

func TestADetachedConsumerGetsNothingMore(t *testing.T) {
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
		if err := reply(c)(tx.Pop([]byte("q"), groups)); err != nil {
			return err
		}
		tx.Detach(c)
		return nil
	})
	h.push("p", 1, 0, "b", "for nobody")
	h.barrier()
	if len(r.got) != 1 {
		t.Fatalf("%d replies, want that of the pop before", len(r.got))
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
	for range n / 1000 { // a slice of them goes in each turn
		h.barrier()
	}
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
	h.store.limits = content.Limits{MaxOps: 800, MaxBytes: 38400}
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
	h.store.limits = content.Limits{MaxOps: 800, MaxBytes: 38400}
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

// fillBatch pushes to a queue of its own until the open batch takes no more.
func (h *harness) fillBatch() {
	h.t.Helper()
	full := false
	for i := 0; !full; i++ {
		h.push("filler", 1, 0, fmt.Sprint(i), "")
		h.do(func(tx *broker.Tx) error { full = tx.Full(); return nil })
	}
}

func TestNothingExpiredIsDeliveredAfterAStall(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	h.b.hold(func() { h.push("q", 1, 0, "a", "first") }) // the next batch fills up meanwhile
	r := &inbox{}
	c := h.b.Attach(r, groups)
	h.push("q", 1, 10*time.Millisecond, "b", "short-lived")
	h.fillBatch()
	h.now.Add(5000)
	h.b.release()
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
	r := &inbox{unsent: broker.MaxOutstandingBytes + 1}
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
	h.b.hold(func() { h.push("q", 1, 0, "a", "opens a commit") })
	h.fillBatch()
	h.now.Add(5000)
	r.unsent = 0
	h.do(func(tx *broker.Tx) error { tx.Resume(c); return nil })
	h.b.release()
	h.barrier()
	if got := fmt.Sprint(r.got); got != "[[b2] [b1] [a1]]" {
		t.Fatalf("resumed subscriber got %v, want b2, b1 and a1", got)
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

func TestAPushIsToldWhatKeepsTheStoreFromWriting(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	h.store.level, h.store.why = storage.NoPush, "cannot write windows out: build: no such file or directory"
	h.barrier()
	err := h.b.Do(func(tx *broker.Tx) error {
		return pushError(tx.Push(broker.PushRequest{Queue: []byte("q"), Priority: 1}))
	})
	if !errors.Is(err, broker.ErrNoSpace) || !strings.Contains(err.Error(), h.store.why) || strings.Contains(err.Error(), "disk is nearly full") {
		t.Errorf("the push gave %v", err)
	}
}
