package broker_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/broker"
)

// waiter is a take that waits, and what comes of it.
type waiter interface {
	// Ready takes from the queue, which has something.
	Ready(tx *broker.Tx, queue []byte)
	// Expired is called at the deadline, and Closed when the queues are drained.
	Expired(tx *broker.Tx)
	Closed(tx *broker.Tx)
}

// wait makes c wait until one of some queues has what a selection takes. Made again the request
// looks at each of them, as those of sessions do.
func wait(tx *broker.Tx, c *broker.Conn, w waiter, s broker.Selection, until int64, queues ...[]byte) error {
	s.MustFind = true
	_, claims := w.(*classWaiter)
	if p, is := w.(*patient); is {
		claims = p.claims
	}
	p := broker.Parking{Queues: queues, Filter: s.Filter, Until: until, Claims: claims}
	s = broker.Claiming(s, claims)
	boxOf(c).waits(func(tx *broker.Tx, expired bool) {
		_ = tx.Atomic(func() error {
			for _, q := range queues {
				n, err := tx.Takeable(q, s)
				if n > 0 && err == nil {
					w.Ready(tx, q)
					return nil
				} else if errors.Is(err, broker.ErrNoShares) {
					w.Closed(tx)
					return nil
				}
			}
			if expired {
				w.Expired(tx)
			} else if tx.Park(c, p) != nil {
				w.Closed(tx)
			}
			return nil
		})
	})
	return tx.Park(c, p)
}

// waitPush makes c wait until a push has its turn. done gets what that gave in the end.
func waitPush(tx *broker.Tx, c *broker.Conn, queue []byte, until int64, push func(tx *broker.Tx) error, done func(err error, expired bool)) error {
	p := broker.Parking{Queues: [][]byte{queue}, Push: true, Until: until}
	boxOf(c).waits(func(tx *broker.Tx, expired bool) {
		_ = tx.Atomic(func() error {
			err := push(tx)
			refused := errors.Is(err, broker.ErrFull) || errors.Is(err, broker.ErrPaused)
			if !refused || expired || tx.Park(c, p) != nil {
				done(err, refused && expired)
			}
			return nil
		})
	})
	return tx.Park(c, p)
}

// blocked is a blocked pop of a test: it takes the oldest packet, or moves it to another queue.
type blocked struct {
	c  *broker.Conn
	to string // moves there, if not ""
	t  *testing.T
}

func (w *blocked) Ready(tx *broker.Tx, queue []byte) {
	boxOf(w.c).say("from " + string(queue))
	err := reply(w.c)(tx.Pop(queue, broker.Selection{End: broker.Oldest}))
	if err == nil && w.to != "" {
		err = pushError(tx.Push(broker.PushRequest{Queue: []byte(w.to), Priority: 1, Payload: []byte("moved")}))
	}
	if err != nil {
		w.t.Errorf("a waiter that is ready cannot take: %v", err)
	}
}

func (w *blocked) Expired(*broker.Tx) { boxOf(w.c).say("nothing came") }

func (w *blocked) Closed(*broker.Tx) { boxOf(w.c).say("nothing will come") }

// wait makes a new consumer wait, and returns it with what it gets.
func (h *harness) wait(to string, until int64, queues ...string) (*broker.Conn, *inbox) {
	h.t.Helper()
	r := &inbox{}
	c := h.b.Attach(r, broker.Selection{})
	names := make([][]byte, len(queues))
	for i, q := range queues {
		names[i] = []byte(q)
	}
	h.do(func(tx *broker.Tx) error {
		return wait(tx, c, &blocked{c: c, to: to, t: h.t.(*testing.T)}, broker.Selection{}, until, names...)
	})
	return c, r
}

func wantGot(t *testing.T, what string, r *inbox, want string) {
	t.Helper()
	if got := fmt.Sprint(r.got); got != want {
		t.Errorf("%s got %s, want %s", what, got, want)
	}
}

func TestWaitersAndSubscribersAreOneLineInOrderOfArrival(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	_, first := h.wait("", 0, "other", "q")
	second := &inbox{}
	h.subscribe(h.b.Attach(second, groups), 1, "q")
	_, third := h.wait("", 0, "q")
	for _, p := range []string{"1", "2", "3", "4"} {
		h.push("q", 1, 0, p, p)
	}
	h.push("other", 1, 0, "x", "x")
	h.barrier()
	wantGot(t, "the first", first, "[[from q] [1]]")
	wantGot(t, "the subscriber", second, "[[2]]")
	wantGot(t, "the third", third, "[[from q] [3]]")
	if n := h.b.Stats().Packets; n != 2 {
		t.Fatalf("%d packets are queued, want the fourth and the other one: a wait takes one", n)
	}
}

func TestAWaitWithAFilterIsServedOnlyWithWhatThatAccepts(t *testing.T) {
	w := newWork(t)
	defer w.close()
	class := func(filter string) *classWaiter {
		k := &classWaiter{box: &workbox{}, s: broker.Selection{End: broker.Oldest, Filter: filtered(filter), WithDetails: true}}
		k.c = w.b.Attach(k.box, broker.Selection{})
		w.do(func(tx *broker.Tx) error {
			return wait(tx, k.c, k, k.s, 0, []byte("q"))
		})
		return k
	}
	high, low := class("class ge performance"), class("class lt performance")
	check := func(when, wantHigh, wantLow string) {
		t.Helper()
		w.barrier()
		for k, want := range map[*classWaiter]string{high: wantHigh, low: wantLow} {
			got := ""
			for _, reply := range k.box.replies {
				got += fmt.Sprint(payloadsOf(reply))
			}
			if got != want || k.c.Parked() != (want == "") {
				t.Errorf("%s: %q was served %q, want %q", when, k.s.Filter.Terms, got, want)
			}
		}
	}
	w.addTagged("q", "", "none")
	w.addTagged("q", "other high", "other")
	check("without the tag", "", "")
	w.addTagged("q", "class standard", "standard") // by bytes it is more than performance
	check("by bytes", "[standard]", "")
	high = class("class gt standard")
	w.addTagged("q", "class high", "high") // and this is less
	check("by bytes", "", "[high]")
	low = class("class eq low")
	w.declare("q", broker.Settings{}, classes)
	check("by the order", "", "")
	w.addTagged("q", "class performance", "performance")
	check("by the order", "[performance]", "")
}

// One is a pop, and one a claim, for which there is no room.
func TestWhoWaitsForAShareIsToldOnceThereIsNone(t *testing.T) {
	for _, claims := range []bool{false, true} {
		w := newWork(t)
		defer w.close()
		w.limited("key", 1, 0)
		p := &patient{c: w.b.Attach(&inbox{}, broker.Selection{}), claims: claims, queues: [][]byte{[]byte("q")}}
		p.takes.Filter = &broker.Filter{Share: []byte("a")}
		w.do(func(tx *broker.Tx) error { return wait(tx, p.c, p, p.takes, 0, p.queues...) })
		w.tenant("b")
		w.claimOne()
		for _, by := range []string{"tag:tenant", ""} {
			if w.barrier(); len(p.ends) > 0 {
				t.Fatalf("before share-by %q a wait ended with %q", by, p.ends)
			}
			w.limited(by, 1, 0)
		}
		w.tenant("b")
		if w.barrier(); !slices.Equal(p.ends, []string{"told"}) {
			t.Errorf("a wait for a share of a queue that has none ended with %q", p.ends)
		}
	}
}

func TestAWaitEndsAtItsDeadlineAndNotBefore(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	c, r := h.wait("", startTime+1000, "q")
	_, longer := h.wait("", startTime+3000, "q")
	h.now.Store(startTime + 999)
	h.barrier()
	if !c.Parked() || len(r.got) > 0 {
		t.Fatal("the wait ended a millisecond early")
	}
	h.now.Store(startTime + 1000)
	h.barrier()
	wantGot(t, "the waiter", r, "[[nothing came]]")
	if c.Parked() {
		t.Fatal("the consumer still waits after its deadline")
	}
	h.push("q", 1, 0, "a", "a")
	h.barrier()
	wantGot(t, "the one that waits longer", longer, "[[from q] [a]]")
}

func TestADeadlineIsKeptWithoutAnyCall(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	_, r := h.wait("", startTime+20, "q")
	h.b.round()
	if next := h.b.Next(); next != 20 {
		t.Fatalf("the next turn is due in %d ms, want 20", next)
	}
	h.now.Add(20)
	h.b.round()
	wantGot(t, "the waiter", r, "[[nothing came]]")
}

func TestAWaiterThatHungUpTakesNothing(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	c, gone := h.wait("", startTime+1000, "q")
	_, next := h.wait("", 0, "q")
	h.do(func(tx *broker.Tx) error { tx.Detach(c); return nil })
	h.push("q", 1, 0, "a", "a")
	h.now.Store(startTime + 2000)
	h.barrier()
	wantGot(t, "the waiter that hung up", gone, "[]")
	wantGot(t, "the next", next, "[[from q] [a]]")
}

func TestUnparkEndsAWaitWithoutAReply(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	c, r := h.wait("", startTime+1000, "q")
	h.do(func(tx *broker.Tx) error {
		if !tx.Unpark(c) || tx.Unpark(c) {
			t.Error("Unpark must be true once")
		}
		return nil
	})
	h.push("q", 1, 0, "a", "a")
	h.now.Store(startTime + 2000)
	h.barrier()
	wantGot(t, "the waiter", r, "[]")
}

func TestAWaiterThatMovesAPacketWakesTheNextOfAChain(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	const links = 2000 // a recursion would not hurt yet, but be seen in the order
	inboxes := make([]*inbox, links)
	for i := range inboxes {
		_, inboxes[i] = h.wait(fmt.Sprint("q", i+1), 0, fmt.Sprint("q", i))
	}
	h.push("q0", 1, 0, "", "first")
	h.barrier()
	wantGot(t, "the first link", inboxes[0], "[[from q0] [first]]")
	wantGot(t, "the last link", inboxes[links-1], fmt.Sprintf("[[from q%d] [moved]]", links-1))
	if n := h.b.Stats().Packets; n != 1 {
		t.Fatalf("%d packets are queued, want the one at the end of the chain", n)
	}
}

func TestWaitersGetWhatAnAtomicRunLeavesAndNotWhatItTakesBack(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	_, r := h.wait("", 0, "q")
	popped := &inbox{}
	c := h.b.Attach(popped, groups)
	err := atomicCall(h.b, func(tx *broker.Tx) error {
		for _, p := range []string{"1", "2", "3"} {
			if err := pushError(tx.Push(broker.PushRequest{Queue: []byte("q"), Priority: 1, Payload: []byte(p)})); err != nil {
				return err
			}
		}
		return reply(c)(tx.Pop([]byte("q"), broker.Selection{End: broker.Oldest}))
	})
	if err != nil {
		t.Fatal(err)
	}
	h.barrier()
	wantGot(t, "the run", popped, "[[1]]")
	wantGot(t, "the waiter", r, "[[from q] [2]]")
}

func TestAWaiterIsServedByTheNextBatchIfTheOpenOneIsFull(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	h.b.hold(func() { h.push("other", 1, 0, "a", "opens a commit") })
	_, r := h.wait("", 0, "q")
	h.do(func(tx *broker.Tx) error {
		for !tx.Full() {
			if _, err := tx.Push(broker.PushRequest{Queue: []byte("filler"), Priority: 1, Payload: make([]byte, 1000)}); err != nil {
				return err
			}
		}
		return pushError(tx.Push(broker.PushRequest{Queue: []byte("q"), Priority: 1, Payload: []byte("late")}))
	})
	h.b.release()
	h.barrier()
	wantGot(t, "the waiter", r, "[[from q] [late]]")
}

func TestAWaitingConsumerCanNeitherWaitAgainNorForTooManyQueues(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	c, _ := h.wait("", 0, "q")
	if err := h.b.Do(func(tx *broker.Tx) error { return tx.Park(c, broker.Parking{}) }); err != broker.ErrWaiting {
		t.Errorf("a second wait gave %v", err)
	}
	c = h.b.Attach(&inbox{}, groups)
	names := make([][]byte, broker.MaxSubscriptions+1)
	if err := h.b.Do(func(tx *broker.Tx) error { return tx.Park(c, broker.Parking{Queues: names}) }); err != broker.ErrTooManySubscriptions {
		t.Errorf("too many queues gave %v", err)
	}
}

func TestAWaiterGetsWhatATrimLeavesOfWhatCameInOneRun(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	_, r := h.wait("", 0, "q")
	values := make([]string, 5000)
	for i := range values {
		values[i] = fmt.Sprint(i)
	}
	err := atomicCall(h.b, func(tx *broker.Tx) error {
		if err := pushEnd(tx, "q", broker.Newest, values...); err != nil {
			return err
		}
		return tx.Trim([]byte("q"), 0, 2)
	})
	if err != nil {
		t.Fatal(err)
	}
	h.barrier()
	wantGot(t, "the waiter", r, "[[from q] [4998]]")
}

func TestWaitsEndThoughTheClockOfTheWallIsSetBack(t *testing.T) {
	w := newWork(t)
	defer w.close()
	w.set(broker.Settings{Bound: 1})
	w.add(broker.PushRequest{})
	takes, pushes := &inbox{}, &inbox{}
	w.do(func(tx *broker.Tx) error {
		c := w.b.Attach(takes, broker.Selection{})
		return wait(tx, c, &blocked{c: c, t: t}, broker.Selection{}, tx.Steady()+20, []byte("empty"))
	})
	w.do(func(tx *broker.Tx) error {
		c := w.b.Attach(pushes, broker.Selection{})
		p := broker.PushRequest{Queue: []byte("q"), Priority: 1, Block: true}
		return waitPush(tx, c, p.Queue, tx.Steady()+20, func(tx *broker.Tx) error { return pushError(tx.Push(p)) }, func(_ error, expired bool) {
			if expired {
				pushes.say("nothing came")
			}
		})
	})
	w.now.Add(-3_600_000)
	w.steady.Add(19)
	w.barrier()
	wantGot(t, "the one that takes", takes, "[]")
	w.steady.Add(1)
	w.barrier()
	wantGot(t, "the one that takes", takes, "[[nothing came]]")
	wantGot(t, "the one that pushes", pushes, "[[nothing came]]")
}

func TestNamesThatAreAwaitedAreBoundedForAllTogether(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	h.b.AwaitAtMost(3)
	awaited := func(want int) {
		t.Helper()
		if err := h.b.Do(func(tx *broker.Tx) error {
			if got := tx.Awaited(); got != want {
				t.Errorf("%d names are awaited, want %d", got, want)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	park := func(names ...string) (*broker.Conn, error) {
		c, p := h.b.Attach(&inbox{}, groups), broker.Parking{}
		for _, name := range names {
			p.Queues = append(p.Queues, []byte(name))
		}
		return c, h.b.Do(func(tx *broker.Tx) error { return tx.Park(c, p) })
	}
	first, err := park("a", "b")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := park("c", "b", "d"); err != broker.ErrTooManyAwaited {
		t.Errorf("a fourth name gave %v", err)
	}
	awaited(2)
	subscriber := h.b.Attach(&inbox{}, groups)
	h.subscribe(subscriber, 0, "b", "c")
	awaited(3)
	if err := h.b.Do(func(tx *broker.Tx) error { return tx.Subscribe(subscriber, []byte("d")) }); err != broker.ErrTooManyAwaited {
		t.Errorf("a subscription of a fourth name gave %v", err)
	}
	h.push("d", 1, 0, "", "who pushes finds room") // and RENAME moves those who wait to another queue of their name
	h.do(func(tx *broker.Tx) error {
		return tx.Atomic(func() error { _, err := tx.Rename([]byte("d"), []byte("c")); return err })
	})
	awaited(3)
	h.do(func(tx *broker.Tx) error { tx.Detach(first); return nil })
	awaited(2)
	h.do(func(tx *broker.Tx) error { return tx.Unsubscribe(subscriber, []byte("c")) })
	h.do(func(tx *broker.Tx) error { tx.Detach(subscriber); return nil })
	awaited(0)
}

func TestLongNamesThatAreAwaitedLeaveRoomForOthers(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	var conns []*broker.Conn
	var refused error
	for i := 0; i < 3 && refused == nil; i++ {
		c := h.b.Attach(&inbox{}, groups)
		conns = append(conns, c)
		refused = h.b.Do(func(tx *broker.Tx) error {
			for n := range 1024 {
				name := bytes.Repeat([]byte{'n'}, 65_535)
				copy(name, fmt.Sprint(i, " ", n, " "))
				if err := tx.Subscribe(c, name); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if refused != broker.ErrTooManyAwaited {
		t.Errorf("subscriptions of 192 MiB of names gave %v", refused)
	}
	h.push(strings.Repeat("x", 60_000), 1, 0, "", "finds room")
	h.do(func(tx *broker.Tx) error {
		for _, c := range conns {
			tx.Detach(c)
		}
		if got := tx.AwaitedBytes(); got != 0 {
			t.Errorf("%d bytes of names count after all have gone", got)
		}
		return nil
	})
}

// patient is a blocked pop, or a claim, of which the test knows how it ended.
type patient struct {
	c      *broker.Conn
	queues [][]byte
	takes  broker.Selection
	claims bool
	ends   []string
}

// takeable is Takeable for what it takes. Of a queue without shares it may wait for one.
func (p *patient) takeable(tx *broker.Tx, queue []byte) (int, error) {
	n, err := tx.Takeable(queue, broker.Claiming(p.takes, p.claims))
	if errors.Is(err, broker.ErrNoShares) && p.takes.Filter.Share != nil {
		return 0, nil
	}
	return n, err
}

// isRefused says that a queue with some packets has no shares, of which it waits for one.
func (p *patient) isRefused(tx *broker.Tx, some int) bool {
	return slices.ContainsFunc(p.queues, func(q []byte) bool {
		n, _ := tx.Takeable(q, broker.Selection{})
		_, err := tx.Takeable(q, p.takes)
		return errors.Is(err, broker.ErrNoShares) && n >= some
	})
}

func (p *patient) Ready(tx *broker.Tx, queue []byte) {
	if n, err := p.takeable(tx, queue); n == 0 || err != nil {
		p.ends = append(p.ends, "woken for nothing")
	}
	if p.claims {
		_ = reply(p.c)(tx.Claim(queue, broker.ClaimRequest{Selection: p.takes, Lease: 30}))
	} else {
		_ = reply(p.c)(tx.Pop(queue, p.takes))
	}
	p.ends = append(p.ends, "served")
}

func (p *patient) Expired(*broker.Tx) { p.ends = append(p.ends, "expired") }

func (p *patient) Closed(tx *broker.Tx) {
	if p.ends = append(p.ends, "told"); !tx.Drained(p.queues) && !p.isRefused(tx, 0) {
		p.ends = append(p.ends, "told too early")
	}
}
