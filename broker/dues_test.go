package broker_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/storage/content"
)

const day = 24 * time.Hour

// A server that starts again and again gives one packet a day: never two. The rate of a queue, and
// the own one of a share, go on; where the rate is that of all shares, a start may have one wait
// for a day more. What is not popped is done at once, so that a share has packets or has none.
func TestASlowRateGoesOnAcrossStarts(t *testing.T) {
	for what, c := range map[string]struct {
		rate func(w *work)
		most int // eights of an hour between two
	}{
		"rate":       {func(w *work) { w.rated("key", "1/1d", "", 0) }, 3},
		"share-rate": {func(w *work) { w.rated("key", "", "1/1d", 0) }, 6},
		"of the share": {func(w *work) {
			w.rated("key", "", "", 0)
			w.rateOf("a", "1/1d")
		}, 3},
	} {
		for _, starts := range []func(w *work){
			func(w *work) { w.restart() },
			func(w *work) { w.killed(func(*broker.Tx) {}); w.restarted() },
		} {
			for _, leaves := range []bool{false, true} {
				w := newWork(t)
				c.rate(w)
				last, least, most := 0, 99, 0
				for i := range 60 {
					w.tenant("a")
					starts(w)
					w.barrier()
					for range 2 {
						for range w.tenants(9, nil) {
							if last > 0 {
								least = min(least, i-last)
							}
							most, last = max(most, i-last), i
						}
					}
					if leaves {
						w.bulk(broker.Purge([]byte("q"), 0))
					}
					w.pass(day / 3)
				}
				if least < 3 || most > c.most {
					t.Errorf("%s, left empty %v: it gave after %d to %d times 8 h", what, leaves, least, most)
				}
			}
		}
	}
}

// A share that rests for its rate alone has no record.
func TestNoShareHasARecordForItsRateAlone(t *testing.T) {
	w := newWork(t)
	w.rated("key", "", "1/1m", 2)
	w.weigh("q", "b", 2)
	for _, key := range []string{"a", "b", "a", "b"} {
		w.tenant(key)
	}
	if w.tenants(9, nil); w.records() != 1 || w.weightOf("q", "b") != 2 {
		t.Errorf("the store has %d records of shares, want the weight", w.records())
	}
}

// What a claim cost, and what it was worth when the rate changed, is known after a start. Where the
// rate is that of all shares, they wait for one gap of it.
func TestAStartKnowsCostsAndChangesOfASlowRate(t *testing.T) {
	for what, c := range map[string]struct {
		change       string
		halves, each int // days
	}{"the same rate": {"1/1d", 10, 2}, "a raised one": {"1/12h", 1, 1}, "one that was fast": {"1/2d", 4, 4}, "none, and the same again": {"", 0, 2}} {
		for _, of := range []string{"queue", "each share", "one share"} {
			w := newWork(t)
			set := func(rate string) {
				switch of {
				case "queue":
					w.rated("key", rate, "", 0)
					return
				case "each share":
					w.rated("key", "", rate, 0)
					return
				}
				w.rated("key", "", "", 0)
				w.do(func(tx *broker.Tx) error {
					return tx.SetShare([]byte("q"), broker.Share{Name: []byte("a"), Weight: 2, Rate: []byte(rate)})
				})
			}
			set("1/1d")
			if what == "one that was fast" {
				set("1/1s")
			}
			w.tenant("a")
			w.tenant("a")
			j := w.claimOne()
			j.cost = 5
			if err := w.ack(j); err != nil {
				t.Fatal(err)
			}
			if set(c.change); c.change == "" {
				set("1/1d")
			}
			w.restart()
			got := 0
			for ; got < 20 && len(w.tenants(1, nil)) == 0; got++ {
				w.pass(day / 2)
			}
			want := c.halves
			if of == "each share" {
				want = c.each
			}
			if got != want {
				t.Errorf("%s, of %s: the next came after %d half days, want %d", what, of, got, want)
			}
		}
	}
}

// A clock that is behind at a start makes no due longer: shares wait for one gap from then on.
func TestAStartMakesNoDueLonger(t *testing.T) {
	for rates, wait := range map[[2]string]time.Duration{{"1/1d", ""}: day / 2, {"", "1/1d"}: day} {
		w := newWork(t)
		w.rated("key", rates[0], rates[1], 0)
		w.tenant("a")
		w.tenant("a")
		w.tenants(1, nil)
		w.pass(day / 2)
		w.tenant("a")
		w.store.control.Time = w.now.Load() // of the last batch
		w.now.Add(-time.Hour.Milliseconds())
		w.restart()
		w.pass(wait - time.Second)
		if got := w.tenants(1, nil); len(got) != 0 {
			t.Errorf("%v: %v came too early", rates, got)
		}
		if w.pass(time.Second); len(w.tenants(1, nil)) != 1 {
			t.Errorf("%v: after a day nothing is given", rates)
		}
	}
}

// The rest of a share, its due and what an operator has set stand beside each other.
func TestADueStaysBesideARestAndAReset(t *testing.T) {
	w := newWork(t)
	w.rated("key", "", "1/1d", 0)
	w.tenant("a")
	w.tenant("a")
	w.hold(w.claimOne(), minute)
	w.weigh("q", "a", 10)
	w.do(func(tx *broker.Tx) error { return tx.SetShare([]byte("q"), broker.Share{Name: []byte("a")}) })
	w.restart()
	if w.pass(day - time.Second); len(w.tenants(1, nil)) != 0 {
		t.Error("the due is forgotten")
	}
	if w.pass(time.Second); len(w.tenants(1, nil)) != 1 {
		t.Error("the due has no end")
	}
	w.shareBy("")
	for w.b.round() {
	}
	if w.records() != 0 {
		t.Error("without share-by a due has a record")
	}
}

// A queue without settings of its own stays, also across a start, as long as it would begin its
// rate anew. Then it goes.
func TestARateOfDefaultsHoldsForAQueueThatWasEmpty(t *testing.T) {
	for _, by := range []string{"", "key"} {
		for _, key := range []string{"", "a"} {
			for _, restarts := range []bool{false, true} {
				w := newWork(t)
				s := broker.DefaultSettings()
				if s.ShareBy, s.Rate = []byte(by), []byte("1/1h"); by != "" {
					s.Rate, s.ShareRate = nil, []byte("1/1h")
				}
				w.o.Defaults = func(string) *broker.Settings { return &s }
				w.setDefaults(w.o.Defaults)
				pop := func() int {
					w.add(broker.PushRequest{Key: []byte(key), Payload: []byte("x")})
					got := w.replied(func(tx *broker.Tx) error { return reply(w.c)(tx.Pop([]byte("q"), broker.Selection{})) })
					w.do(func(tx *broker.Tx) error { _, err := tx.Drop([]byte("q")); return err })
					return len(got)
				}
				if n := pop(); n != 1 {
					t.Fatalf("took %d", n)
				}
				for range 3 {
					w.pass(19 * time.Minute)
					for w.b.round() {
					}
					if restarts {
						w.restart()
					}
					if n := pop(); n != 0 {
						t.Errorf("by %q, key %q: it begins anew", by, key)
					}
				}
				for range 3 {
					w.pass(time.Hour)
					for w.b.round() {
					}
				}
				if w.barrier(); len(w.store.queues) != 0 || w.records() != 0 {
					t.Errorf("by %q, key %q: after its due the store has %d queues, %d records of shares", by, key, len(w.store.queues), w.records())
				}
			}
		}
	}
}

// However many names somebody invents, a rate holds for each. Where no more shares may rest nothing
// is taken of another, and why says so, until there is room.
func TestNoMoreSharesRestThanMayAndTheRateHoldsForEach(t *testing.T) {
	for _, rate := range []string{"1/1h", "1/9s"} {
		w := newWork(t)
		w.b.RestAtMost(3)
		w.rated("key", "", rate, 0)
		pop := func() int {
			return len(w.replied(func(tx *broker.Tx) error {
				return reply(w.c)(tx.Pop([]byte("q"), broker.Selection{WithDetails: true, Filter: &broker.Filter{Share: []byte("last")}}))
			}))
		}
		for i := range 3 {
			w.tenant(fmt.Sprint(i))
			if n := len(w.tenants(9, nil)); n != 1 {
				t.Fatalf("%s: %d of %d were taken", rate, n, i)
			}
			for _, j := range w.box.replies[len(w.box.replies)-1] {
				if err := w.ack(j); err != nil {
					t.Fatal(err)
				}
			}
			w.tenant(fmt.Sprint(i)) // which takes no new place, and gives nothing
		}
		w.bulk(broker.Purge([]byte("q"), 0))
		id := w.tenant("last")
		if n := pop(); n != 0 {
			t.Errorf("%s: one more than 3 share rests", rate)
		}
		if j, _ := w.show("q", id); j.HeldBack != "share last waits for room: 250000 shares of the queue wait for their rates or rest, and no more can" {
			t.Errorf("%s: held back: %q", rate, j.HeldBack)
		}
		w.tenant("last")
		if n := pop(); n != 1 {
			t.Errorf("%s: of two packets %d were taken, want that which leaves one", rate, n)
		}
		w.pass(time.Hour)
		box := w.claimer(&broker.Filter{Share: []byte("last")})
		w.barrier()
		w.pass(time.Minute)
		if w.barrier(); len(box.replies) != 1 {
			t.Errorf("%s: with room who waits got %d replies", rate, len(box.replies))
		}
	}
}

// A fast rate begins with its burst spent at the time of the last batch: no server that starts
// again and again keeps all back.
func TestAFastRateCountsTheTimeBetweenTheLastBatchAndAStart(t *testing.T) {
	for _, rates := range [][2]string{{"1/9s", ""}, {"", "1/9s"}} {
		w := newWork(t)
		w.rated("key", rates[0], rates[1], 3)
		w.tenant("a")
		w.store.control.Time = w.now.Load()
		w.killed(func(*broker.Tx) {})
		w.pass(9 * time.Second)
		w.restarted()
		w.tenant("a")
		if got := w.tenants(9, nil); len(got) != 1 {
			t.Errorf("%v: took %v after 9 s", rates, got)
		}
	}
}

// A rate that was slow once, and is fast, begins with its burst spent, too.
func TestARateThatBecameFastBeginsWithItsBurstSpent(t *testing.T) {
	for _, of := range []string{"queue", "share"} {
		w := newWork(t)
		set := func(rate string) {
			if of == "queue" {
				w.rated("key", rate, "", 50)
				return
			}
			w.rated("key", "", "", 50)
			w.rateOf("a", rate)
		}
		set("1/1m")
		w.tenant("a")
		w.tenants(9, nil)
		w.pass(2 * time.Hour)
		set("1/1s")
		for range 200 {
			w.tenant("a")
		}
		w.tenants(90, nil)
		w.restart()
		if n := len(w.tenants(90, nil)); n > 1 {
			t.Errorf("of the %s: after a start it gave %d at once", of, n)
		}
	}
}

// A rate that changes with the batch that took, before the share has followed: takes from then on
// are kept as well.
func TestADueIsKeptAfterARateChangedWithATake(t *testing.T) {
	w := newWork(t)
	w.rated("key", "", "1/1d", 0)
	for range 3 {
		w.tenant("a")
	}
	w.b.hold(func() { // no slice of what follows the change comes between
		w.together(func(tx *broker.Tx) error {
			_, err := tx.Pop([]byte("q"), broker.Selection{Count: 1})
			s, _, read := tx.Settings([]byte("q"))
			s.ShareRate = []byte("1/2d")
			return errors.Join(err, read, tx.SetSettings([]byte("q"), s))
		})
	})
	w.b.release()
	w.barrier()
	w.pass(2 * day)
	if n := len(w.tenants(1, nil)); n != 1 {
		t.Fatalf("after two days it gave %d", n)
	}
	w.restart()
	if n := len(w.tenants(1, nil)); n != 0 {
		t.Errorf("after a start it gave %d more", n)
	}
}

// A queue without settings of its own goes when its shares need not rest any longer as defaults
// have changed.
func TestAQueueThatWasEmptyGoesWithTheRateOfDefaults(t *testing.T) {
	for what, change := range map[string]func(s *broker.Settings){
		"no rate":     func(s *broker.Settings) { s.ShareRate = nil },
		"a fast rate": func(s *broker.Settings) { s.ShareRate = []byte("1000/1s") },
		"no share-by": func(s *broker.Settings) { s.ShareRate, s.ShareBy = nil, nil },
	} {
		w := newWork(t)
		s := broker.DefaultSettings()
		s.ShareBy, s.ShareRate = []byte("key"), []byte("1/1d")
		w.setDefaults(func(string) *broker.Settings { return &s })
		w.tenant("a")
		w.replied(func(tx *broker.Tx) error { return reply(w.c)(tx.Pop([]byte("q"), broker.Selection{})) })
		w.pass(time.Minute)
		for w.b.round() {
		}
		to := s
		change(&to)
		w.setDefaults(func(string) *broker.Settings { return &to })
		for range 3 {
			for w.b.round() {
			}
			w.pass(time.Minute)
		}
		if w.barrier(); len(w.store.queues) != 0 || w.records() != 0 {
			t.Errorf("%s: the store has %d queues, %d records of shares", what, len(w.store.queues), w.records())
		}
	}
}

// A list that a trim makes anew has the rate that it had, also where the batch that took trims.
func TestATrimBeginsNoRateAnew(t *testing.T) {
	for _, rate := range []string{"1/1d", "1/5s"} {
		for _, together := range []bool{false, true} {
			w := newWork(t)
			w.rated("", rate, "", 0)
			w.tenant("a")
			w.tenant("a")
			pop := func(tx *broker.Tx) error {
				_, err := tx.Pop([]byte("q"), broker.Selection{})
				return err
			}
			trim := func(tx *broker.Tx) error { return tx.Trim([]byte("q"), 1, 0) }
			if together {
				w.together(func(tx *broker.Tx) error { return errors.Join(pop(tx), trim(tx)) })
			} else {
				w.do(pop)
				w.do(trim)
			}
			for range 2 {
				w.tenant("a")
				if n := len(w.tenants(1, nil)); n != 0 {
					t.Errorf("%s: behind a trim it gave %d", rate, n)
				}
				w.restart()
			}
		}
	}
}

// What happens while the shares of a queue wait after a start neither has them wait longer, nor
// lets one give twice.
func TestSharesWaitForOneGapAfterAStartWhateverComesBetween(t *testing.T) {
	for name, c := range map[string]struct {
		burst   int64
		between func(w *work, first job)
	}{
		"nothing": {1, func(*work, job) {}},
		"a cost": {1, func(w *work, first job) {
			if first.cost = 5; w.ack(first) != nil {
				w.t.Fatal("the claim has ended")
			}
		}},
		"a lower burst":                        {1000, func(w *work, _ job) { w.rated("key", "", "1/1d", 1) }},
		"a rate of its own, which is the same": {1, func(w *work, _ job) { w.rateOf("b", "1/1d") }},
		"a rate of its own where it has no packets": {1, func(w *work, _ job) {
			w.bulk(broker.Purge([]byte("q"), 0))
			w.rateOf("b", "1/1d")
			w.tenant("b")
		}},
	} {
		for starts := range 3 {
			w := newWork(t)
			w.rated("key", "", "1/1d", c.burst)
			w.tenant("a")
			first := w.claim("q", broker.ClaimRequest{Lease: 2 * day.Milliseconds()})[0]
			for range c.burst { // the burst is spent
				w.tenant("b")
			}
			if n := len(w.tenants(int(c.burst), nil)); n != int(c.burst) {
				t.Fatalf("%s: %d were taken, want %d", name, n, c.burst)
			}
			w.tenant("b")
			w.restart()
			w.barrier()
			c.between(w, first)
			for range starts {
				w.pass(time.Hour)
				w.restart()
				w.barrier()
			}
			w.pass(day - time.Duration(starts)*time.Hour - time.Minute)
			if n := len(w.tenants(1, nil)); n != 0 {
				t.Errorf("%s, %d starts: it gave before a day had passed", name, starts)
			}
			w.pass(2 * time.Minute)
			if c.burst > 1 {
				w.pass(time.Duration(starts) * time.Hour) // the moment of a rate that was changed is that of the last batch
			}
			if n := len(w.tenants(1, nil)); n != 1 {
				t.Errorf("%s, %d starts: it gave %d after a day", name, starts, n)
			}
		}
	}
}

// A batch that has nothing else is written for a take of a slow rate: a start knows by it how late
// that was.
func TestABatchTellsOfATakeOfASlowShareRate(t *testing.T) {
	for takes := range 5 {
		w := newWork(t)
		w.rated("key", "", "1/1d", 0)
		atOnce := func() (n int) {
			w.do(func(tx *broker.Tx) error {
				_, err := tx.Push(broker.PushRequest{Queue: []byte("q"), Key: []byte("a"), Priority: 1, Payload: []byte("x")})
				if err != nil {
					return err
				}
				f, err := tx.Pop([]byte("q"), broker.Selection{})
				n = len(f.Packets)
				return err
			})
			return n
		}
		for range takes {
			w.pass(day)
			if n := atOnce(); n != 1 {
				t.Fatalf("%d were taken", n)
			}
			w.barrier()
		}
		w.killed(func(*broker.Tx) {})
		w.restarted()
		w.pass(day - time.Minute)
		if n := atOnce(); n != 0 {
			t.Errorf("%d takes: a share gave again in less than a day", takes)
		}
	}
}

// Whatever changed before, a share that gave gives again after a day, and with a start in between
// after a day from then.
func TestSharesGiveAgainAfterADay(t *testing.T) {
	setB := func(rate string) func(tx *broker.Tx) error {
		return func(tx *broker.Tx) error {
			return tx.SetShare([]byte("q"), broker.Share{Name: []byte("b"), Weight: 2, Rate: []byte(rate)})
		}
	}
	for name, change := range map[string]func(w *work){
		"share-by goes, and comes again": func(w *work) {
			w.restart()
			w.pass(12 * time.Hour)
			w.rated("", "", "1/1d", 0)
			w.rated("key", "", "1/1d", 0)
			w.tenants(9, nil)
		},
		"a record of an earlier version": func(w *work) {
			w.do(setB("1/1d"))
			w.barrier()
			for _, s := range w.shareRecords() {
				s.Rate, s.Due, s.DueGap = nil, w.now.Load()+day.Milliseconds(), int64(day)
				var b content.Batch
				b.PutShare(&s, false)
				w.store.Keys.Apply(&b)
			}
			w.killed(func(*broker.Tx) {})
			w.restarted()
		},
		"a rate of its own in one batch": func(w *work) {
			w.together(func(tx *broker.Tx) error { return errors.Join(setB("1/2d")(tx), setB("")(tx)) })
		},
		"a lower burst of its own rate": func(w *work) {
			w.rated("key", "", "", 20)
			w.rateOf("b", "1/1d")
			for range 20 {
				w.tenant("b")
			}
			w.tenants(20, nil)
			w.bulk(broker.Purge([]byte("q"), 0))
			w.restart()
			w.rated("key", "", "1/1d", 1)
			w.tenant("b")
		},
	} {
		w := newWork(t)
		w.rated("key", "", "1/1d", 0)
		for range 3 {
			w.tenant("a")
			w.tenant("b")
		}
		w.tenants(9, nil)
		change(w)
		hours := 0
		for ; hours < 60 && len(w.tenants(9, nil)) == 0; hours++ {
			w.pass(time.Hour)
			if hours < 20 {
				w.restart()
				w.barrier()
			}
		}
		if hours < 24 || hours > 25 {
			t.Errorf("%s: the next came after %d hours", name, hours)
		}
	}
}

// An empty queue that goes at a start is not written again.
func TestAStartWritesNoQueueThatGoes(t *testing.T) {
	w := newWork(t)
	s := broker.DefaultSettings()
	s.ShareBy, s.ShareRate = []byte("key"), []byte("1/1m")
	w.o.Defaults = func(string) *broker.Settings { return &s }
	w.setDefaults(w.o.Defaults)
	w.tenant("a")
	w.replied(func(tx *broker.Tx) error { return reply(w.c)(tx.Pop([]byte("q"), broker.Selection{})) })
	w.killed(func(*broker.Tx) {})
	w.pass(time.Hour)
	w.restarted()
	for w.b.round() {
	}
	w.pass(time.Hour)
	for w.b.round() {
	}
	if n := len(w.store.queues); n != 0 {
		t.Errorf("the store has %d queues", n)
	}
}
