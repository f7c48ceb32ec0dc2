package broker_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/broker"
)

func TestATakeThatTheReplyCannotHoldReadsNothing(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	large := strings.Repeat("x", 1<<20)
	for range 80 {
		h.pushEnd("q", broker.Oldest, large)
	}
	h.restart() // nothing is in the cache
	read := 0
	h.store.reads = func(ids int) { read += ids }
	h.together(func(tx *broker.Tx) error {
		for range 4 {
			if _, err := tx.Pop([]byte("q"), broker.Selection{Count: 15}); err != nil {
				return err
			}
		}
		read = 0
		for range 3 {
			if _, err := tx.Pop([]byte("q"), broker.Selection{Count: 15}); !errors.Is(err, broker.ErrReplyTooLarge) {
				t.Errorf("got %v, want ErrReplyTooLarge", err)
			}
		}
		if _, err := tx.Peek([]byte("q"), 15); !errors.Is(err, broker.ErrReplyTooLarge) {
			t.Errorf("a peek gave %v", err)
		}
		return nil
	})
	if read > 0 {
		t.Errorf("%d packets were read for nothing", read)
	}
}

func TestAnAtomicReadsLittleAheadThatItDoesNotTake(t *testing.T) {
	const queues, each = 30, 600
	for _, round := range []bool{true, false} { // one packet of each queue, or all of one after the other
		h := newHarness(t)
		for i := range queues {
			h.pushEnd(fmt.Sprint(i), broker.Oldest, slices.Repeat([]string{"v"}, each)...)
		}
		h.restart()
		read := 0
		h.store.reads = func(ids int) { read += ids }
		taken := 0
		h.together(func(tx *broker.Tx) error {
			for i := range queues {
				for range map[bool]int{true: 1, false: each}[round] {
					if _, err := tx.Pop([]byte(fmt.Sprint(i)), broker.Selection{}); err != nil {
						return err
					}
					if taken++; taken == broker.MaxChanged {
						return nil
					}
				}
			}
			return nil
		})
		if most := 2*taken + 5000; read > most {
			t.Errorf("%d packets were read for %d", read, taken)
		}
		h.close()
	}
}

func TestAPushOfATransactionDropsABoundedNumber(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	h.change("q", func(s *broker.Settings) { s.BoundBytes, s.Full = 200_000, broker.FullDrop })
	for range 20_000 {
		h.push("q", 9, 0, "", "0123456789")
	}
	done := 0
	h.together(func(tx *broker.Tx) error {
		for range 30 {
			_, err := tx.Push(broker.PushRequest{Queue: []byte("q"), Priority: 1, Payload: make([]byte, 9000)})
			switch {
			case err == nil:
				done++
			case !errors.Is(err, broker.ErrTooManyChanged):
				return err
			}
		}
		return nil
	})
	if want := broker.MaxChanged / 900; done != want {
		t.Errorf("%d pushes that drop 900 packets each were carried out, want %d", done, want)
	}
}

func TestASubscriberOfManyQueuesHasItsPacketsInSeveralTurns(t *testing.T) {
	const queues, each = 400, 20
	h := newHarness(t)
	defer h.close()
	r := &inbox{}
	c := h.b.Attach(r, broker.Selection{})
	var names []string
	for i := range queues {
		names = append(names, fmt.Sprint(i))
		for range each {
			h.push(names[i], 1, 0, "", "v")
		}
	}
	h.subscribe(c, queues*each, names...)
	if got := len(r.got); got == 0 || got == queues*each {
		t.Errorf("%d of %d packets are delivered in one turn, want some", got, queues*each)
	}
	h.push(names[0], 9, 0, "", "last")
	h.push("other", 1, 0, "", "v")
	other := &inbox{} // is not held up
	h.subscribe(h.b.Attach(other, broker.Selection{}), 1, "other")
	h.comesTrue(func() bool { return len(other.got) == 1 })
	if len(r.got) == queues*each {
		t.Error("who has much to get was served before who has little")
	}
	h.comesTrue(func() bool { return len(r.got) == queues*each })
	h.do(func(tx *broker.Tx) error { return tx.Ready(c, 1) })
	if got := r.got[len(r.got)-1][0]; len(r.got) != queues*each+1 || got != "last" {
		t.Errorf("%d packets are delivered, the last is %q", len(r.got), got)
	}
}

func TestFiltersAreAskedAnewOnlyWhereSettingsMayLetThemTake(t *testing.T) {
	const lanes = 1000
	w := newWork(t)
	defer w.close()
	for i := range lanes {
		w.addTagged("q", fmt.Sprint("class ", i), "x")
	}
	waits := w.b.Attach(&inbox{}, groups)
	w.do(func(tx *broker.Tx) error {
		return tx.Park(waits, broker.Parking{Queues: [][]byte{[]byte("q")}, Filter: filtered("class eq none")})
	})
	for _, s := range []struct {
		what   string
		change func(s *broker.Settings)
		asks   bool
	}{
		{"a lease", func(s *broker.Settings) { s.Lease = 5 }, false},
		{"a pause", pauseOut, false},
		{"a lease in a pause", func(s *broker.Settings) { s.Lease = 6 }, false},
		{"the end of a pause", noPause, true},
		{"an order", func(s *broker.Settings) { s.Orders = []broker.Order{classes} }, true},
		{"the end of the order", func(s *broker.Settings) { s.Orders = nil }, true},
	} {
		w.together(func(tx *broker.Tx) error {
			settings, _, _ := tx.Settings([]byte("q"))
			s.change(&settings)
			passed := tx.Passed()
			err := tx.SetSettings([]byte("q"), settings)
			if asks := tx.Passed()-passed >= lanes; asks != s.asks {
				t.Errorf("%s lets filters be asked about all sets of tags: %v, want %v", s.what, asks, s.asks)
			}
			return err
		})
	}
}

// settledBy is what a push counts that brings tags, with what those who wait take of it.
func (w *work) settledBy(tags string) (n int) {
	w.do(func(tx *broker.Tx) error {
		before := tx.Settled()
		r := broker.PushRequest{Queue: []byte("q"), Priority: 1, Payload: []byte("x"), Tags: tagged(tags)}
		err := tx.Atomic(func() error { return pushError(tx.Push(r)) })
		n = tx.Settled() - before
		return err
	})
	return n
}

// waitFor lets a pop with a filter wait.
func (w *work) waitFor(f *broker.Filter) {
	c := w.b.Attach(&inbox{}, broker.Selection{})
	boxOf(c).waits(func(tx *broker.Tx, _ bool) { _, _ = tx.Pop([]byte("q"), broker.Selection{Filter: f}) })
	w.do(func(tx *broker.Tx) error {
		return tx.Park(c, broker.Parking{Queues: [][]byte{[]byte("q")}, Filter: f})
	})
}

func TestAPushAsksOfManyWhoWaitForTheirOwnOnlyThoseItMayBeFor(t *testing.T) {
	const many = 1000
	for _, terms := range []string{"tenant eq %d size lt 5", "tenant eq %d type eq job size lt 5", "type eq job tenant eq %d size lt 5", ""} {
		w := newWork(t)
		defer w.close()
		if terms == "" {
			w.shareBy("tag:tenant")
		}
		for i := range many {
			f := &broker.Filter{Share: fmt.Append(nil, i)}
			if terms != "" {
				f = filtered(fmt.Sprintf(terms, i))
			}
			w.waitFor(f)
		}
		if n := w.settledBy("size 9 tenant other type job"); n < many { // no limit of the queue has kept anything from them
			t.Errorf("%q: the first push counts %d, though %d have just begun to wait", terms, n, many)
		}
		for _, tenant := range []string{"other", "8", "7", "07"} {
			if n := w.settledBy("size 9 type job tenant " + tenant); n > 10 {
				t.Errorf("%q: a push for %s counts %d, want that of one who waits", terms, tenant, n)
			}
		}
	}
}

func TestAPushIsLookedAtOnceWhereNobodyWaitsForAValueOfItsOwn(t *testing.T) {
	w := newWork(t)
	defer w.close()
	w.waitFor(filtered("size lt 5"))
	if n := w.settledBy("size 9"); n != 1 {
		t.Errorf("a push counts %d, want 1 term", n)
	}
	w.subscribe(w.b.Attach(&inbox{}, narrow), 9, "q")
	w.push("q", 1, 0, "", wide)
	if n := w.settledBy("size 9"); n < 4 { // what it counts without one is 3
		t.Errorf("beside a wide packet, that somebody passes over, a push counts %d", n)
	}
}

func TestATransactionWritesThirtyTwoMiBAgain(t *testing.T) {
	const size, many = 1_000_000, 40
	const most = broker.MaxChanged / (1 + size>>11)
	q, other := []byte("q"), []byte("other")
	for name, row := range map[string]struct {
		prepare func(w *work, jobs []job)
		change  func(tx *broker.Tx, j job) error
	}{
		"MovePackets": {nil, func(tx *broker.Tx, j job) error { _, err := tx.MovePackets(q, []broker.ID{j.ID}, other); return err }},
		"SetPriority": {nil, func(tx *broker.Tx, j job) error { _, err := tx.SetPriority(q, j.ID, 7); return err }},
		"MoveEnd": {nil, func(tx *broker.Tx, _ job) error {
			_, err := tx.MoveEnd(q, broker.Oldest, other, broker.Newest)
			return err
		}},
		"Nack": {claimAll, nackDead},
		"Ack": {claimAll, func(tx *broker.Tx, j job) error {
			_, err := tx.Ack(q, []broker.Receipt{{ID: j.ID, Token: j.Token}})
			return err
		}},
		"Redrive": {func(w *work, jobs []job) {
			claimAll(w, jobs)
			for _, j := range jobs {
				w.do(func(tx *broker.Tx) error { return nackDead(tx, j) })
			}
		}, func(tx *broker.Tx, j job) error { _, err := tx.RedrivePacket(other, j.ID); return err }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWork(t)
			defer w.close()
			w.change("q", func(s *broker.Settings) { s.DeadLetter, s.Retain = other, 1000 })
			jobs, done := make([]job, many), 0
			for i := range jobs {
				jobs[i].ID = w.add(broker.PushRequest{Payload: make([]byte, size)})
			}
			if row.prepare != nil {
				row.prepare(w, jobs)
			}
			w.together(func(tx *broker.Tx) error {
				for _, j := range jobs {
					switch err := row.change(tx, j); {
					case err == nil:
						done++
					case !errors.Is(err, broker.ErrTooManyChanged):
						return err
					}
				}
				return nil
			})
			if done != most {
				t.Errorf("%d packets were written again, want %d", done, most)
			}
		})
	}
}

// claimAll claims the packets of q.
func claimAll(w *work, jobs []job) {
	for i := range jobs {
		jobs[i] = w.claimOne()
	}
}

func nackDead(tx *broker.Tx, j job) error {
	_, err := tx.Nack([]byte("q"), broker.Receipt{ID: j.ID, Token: j.Token}, broker.Nack{Dead: true})
	return err
}

func TestCallsThatWriteManyAgainAreBoundedByTheirBytes(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	const n, most = 80, broker.MaxChanged / (1 + 1_000_000>>11)
	ids := make([]broker.ID, n)
	h.do(func(tx *broker.Tx) (err error) {
		for i := range ids {
			if ids[i], err = tx.Push(broker.PushRequest{Queue: []byte("q"), Priority: 1, Payload: make([]byte, 1_000_000)}); err != nil {
				return err
			}
		}
		return nil
	})
	move := func(tx *broker.Tx, n int) error {
		_, err := tx.MovePackets([]byte("q"), ids[:n], []byte("other"))
		return err
	}
	insert := func(tx *broker.Tx, at int) error { _, err := tx.InsertAt([]byte("q"), at, nil); return err }
	for _, call := range []func(tx *broker.Tx, n int) error{insert, move} {
		for i, want := range []error{broker.ErrTooManyChanged, nil} {
			h.together(func(tx *broker.Tx) error {
				if err := call(tx, most+1-i); !errors.Is(err, want) {
					t.Errorf("%d packets gave %v, want %v", most+1-i, err, want)
				}
				return nil
			})
		}
	}
}

func TestATransactionThatHasBroughtTooMuchRunsNoFurtherCommand(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	h.change("q", func(s *broker.Settings) {
		s.Orders = []broker.Order{{Tag: "t", Values: []string{strings.Repeat("v", broker.MaxReason)}}}
	})
	h.together(func(tx *broker.Tx) (err error) {
		for i := 1; err == nil; i++ {
			if i > broker.MaxOpen/broker.MaxReason {
				t.Fatal("the limit is passed")
			}
			err = tx.Atomic(func() error { _, err := tx.SetExpiry([]byte("q"), startTime+int64(i)*1000); return err })
		}
		if !errors.Is(err, broker.ErrTooMuchOpen) {
			t.Errorf("a call behind the limit gave %v", err)
		}
		return nil
	})
}

func TestACostThatARateCannotPayInAYearIsRefused(t *testing.T) {
	for _, r := range []struct{ rate, shareRate string }{{"1/1d", ""}, {"", "1/1d"}} {
		for end, call := range map[string]func(w *work, j job) error{
			"ack": (*work).ack, "nack": func(w *work, j job) error { _, err := w.nack(j, broker.Nack{}); return err },
		} {
			w := newWork(t)
			w.rated("key", r.rate, r.shareRate, 1)
			w.tenant("a")
			j := w.claimOne()
			for _, c := range []struct {
				cost int64
				want error
			}{{367, broker.ErrTooDear}, {broker.MaxCost, broker.ErrTooDear}, {366, nil}} {
				j.cost = c.cost
				if err := call(w, j); !errors.Is(err, c.want) {
					t.Errorf("%s of a cost of %d at %+v: %v, want %v", end, c.cost, r, err, c.want)
				}
			}
		}
	}
}
