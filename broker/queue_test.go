package broker_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/storage/content"
)

func TestNumbersOfQueuesGoOnFromOneWhenAllWereUsedAndNoneIsTheNumberOfTwo(t *testing.T) {
	h := newHarness(t)
	var names []string
	push := func(n int) {
		for range n {
			name := fmt.Sprint("queue ", len(names))
			names = append(names, name)
			h.push(name, 1, 0, "", name)
		}
		h.restart()
	}
	push(3)
	h.store.control.NextQueue = math.MaxUint32 - 2
	h.restart()
	push(10)
	push(10) // the numbers of those before them are known from the disk only
	if got := h.store.control.NextQueue; got != math.MaxUint32 {
		t.Errorf("the mark of the next queue is %d, and was at most its last", got)
	}
	if len(h.store.queues) != len(names) || h.store.queues[0].Name != nil || h.store.queues[math.MaxUint32].Name != nil {
		t.Errorf("%d queues are defined, want %d, none of the numbers 0 and %d", len(h.store.queues), len(names), uint32(math.MaxUint32))
	}
	state, err := recovery.Restore(h.store, recovery.Options{})
	if err != nil || len(state.Report.Findings) > 0 || state.Report.Packets != len(names) {
		t.Fatalf("%+v, %v", state.Report, err)
	}
	for id, rec := range h.store.packets {
		var p content.Packet
		if err := content.DecodeRecord(rec, &p); err != nil || string(p.Payload) != string(h.store.queues[id.Queue].Name) {
			t.Errorf("the packet of %q lies in %q: %v", p.Payload, h.store.queues[id.Queue].Name, err)
		}
	}
}

// untilQueues lets turns pass until the store holds at most n definitions.
func (h *harness) untilQueues(n int) {
	h.t.Helper()
	h.comesTrue(func() bool { return len(h.store.queues) <= n })
}

func TestAFlushDropsQueuesAlsoWhenTheirNumbersAreUsedAgain(t *testing.T) {
	h := newHarness(t)
	defer func() { h.b.Close() }()
	h.push("low", 1, 0, "", "v")
	h.restart()
	h.store.control.NextQueue = math.MaxUint32
	h.restart()
	h.push("old", 1, 0, "", "v")
	h.push("older", 1, 0, "", "v")
	if err := atomicCall(h.b, func(tx *broker.Tx) error { return tx.Flush(true) }); err != nil {
		t.Fatalf("the flush: %v", err)
	}
	h.push("old", 1, 0, "", "new")
	h.restart()
	if got := h.elements("old"); got != "new" || h.typeOf("low") != broker.TypeNone || h.typeOf("older") != broker.TypeNone {
		t.Errorf("the new queue holds %q, the others are a %v and a %v", got, h.typeOf("low"), h.typeOf("older"))
	}
}

func TestASubscriptionOutlivesAFlushThatGivesItsQueueAUsedNumber(t *testing.T) {
	h := newHarness(t)
	defer func() { h.b.Close() }()
	h.store.control.NextQueue = math.MaxUint32 - 2
	h.restart()
	r := &inbox{}
	c := h.b.Attach(r, groups)
	h.push("first", 1, 0, "k", "v")
	h.b.hold(func() {
		h.together(func(tx *broker.Tx) error { return tx.Flush(true) })
		h.together(func(tx *broker.Tx) error { return tx.Subscribe(c, []byte("q")) }) // it gets the last number
		h.together(func(tx *broker.Tx) error { return tx.Flush(true) })
	})
	h.b.release()
	h.swept()
	h.do(func(tx *broker.Tx) error { return tx.Ready(c, 1) })
	h.push("q", 1, 0, "k", "new")
	h.wantReplies(r, "new")
}

func TestQueuesThatEmptyByThemselvesAreDroppedWithoutACall(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	const n, kept = 5000, 1024
	h.push("in use", 1, 0, "k", "x")
	for i := range n {
		h.push(fmt.Sprint("queue", i), 1, time.Millisecond, "k", "x")
	}
	h.barrier()
	if got := len(h.store.queues); got != n+1 {
		t.Fatalf("%d queues are defined, want %d", got, n+1)
	}
	h.now.Add(2) // all but one have expired
	h.barrier()
	h.untilQueues(kept + 1)
	h.now.Add(10_000)
	h.barrier()
	h.untilQueues(1)
	h.restart()
	if s := h.b.Stats(); s.Packets != 1 || s.Queues != 1 {
		t.Fatalf("%d packets in %d queues are left, want the one", s.Packets, s.Queues)
	}
}

func TestQueuesThatOnlyHadSubscribersAreDroppedWithoutACall(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	consumers := make([]*broker.Conn, 6)
	for i := range consumers {
		consumers[i] = h.b.Attach(&inbox{}, groups)
		for k := range broker.MaxSubscriptions {
			h.subscribe(consumers[i], 0, fmt.Sprint(i, "/", k))
		}
	}
	h.do(func(tx *broker.Tx) error {
		for _, c := range consumers {
			tx.Detach(c)
		}
		return nil
	})
	h.comesTrue(func() bool { return h.b.Stats().Known <= 1024 })
}

func TestQueuesThatABatchEmptiesMayBeDroppedBeforeItIsCommitted(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	h.store.limits = content.Limits{MaxOps: 50000, MaxBytes: 2621440}
	h.restart()
	const n, first = 9000, 5000 // enough that the table of queues is made anew
	for i := range n {
		h.push(fmt.Sprint(i), 1, 0, "k", strings.Repeat("x", 100))
	}
	h.barrier()
	h.b.hold(func() { h.push("0", 1, 0, "k", "opens a commit") })
	c := h.b.Attach(&inbox{}, groups)
	for i := range n {
		h.pop(c, fmt.Sprint((first+i)%n)) // the first is not cached, and its number is above those of the last
	}
	h.b.release()
	h.barrier()
	h.untilQueues(1025)
}
