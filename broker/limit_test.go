package broker_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
)

// limited gives q limits of what is claimed.
func (w *work) limited(by string, most, ofShare int64) {
	w.t.Helper()
	s := broker.DefaultSettings()
	s.ShareBy, s.MaxClaimed, s.ShareMaxClaimed = []byte(by), most, ofShare
	w.set(s)
	for w.b.round() {
	}
}

// claimer is a blocked claim of q.
func (w *work) claimer(f *broker.Filter) *workbox {
	box := &workbox{}
	c := w.b.Attach(box, broker.Selection{})
	waiter := &classWaiter{c: c, box: box, queues: []string{"q"}, s: broker.Selection{End: broker.Oldest, WithDetails: true, Filter: f}}
	w.do(func(tx *broker.Tx) error { return wait(tx, c, waiter, waiter.s, 0, []byte("q")) })
	return box
}

func TestNoMoreIsClaimedThanMaxClaimed(t *testing.T) {
	w := newWork(t)
	w.limited("", 2, 0)
	for range 5 {
		w.tenant("a")
	}
	if got := w.tenants(5, nil); len(got) != 2 {
		t.Errorf("a claim of 5 took %v, want 2", got)
	}
	for what, do := range map[string]func(){"another claim": func() {}, "a start": w.restart} {
		if do(); len(w.tenants(5, nil)) != 0 {
			t.Errorf("%s took more than max-claimed", what)
		}
	}
	pop := func(tx *broker.Tx) error { return reply(w.c)(tx.Pop([]byte("q"), broker.Selection{})) }
	if got := w.replied(pop); len(got) != 1 {
		t.Errorf("a pop took %v, want a packet: it does not claim", got)
	}
	group := broker.ClaimRequest{Selection: broker.Selection{Group: true}}
	for _, limits := range []struct {
		by            string
		most, ofShare int64
		want          error
	}{{"", 2, 0, broker.ErrGroupLimited}, {"key", 0, 2, broker.ErrGroupLimited}, {"", 0, 2, nil}} { // of shares that are no more
		w.limited(limits.by, limits.most, limits.ofShare)
		err := w.b.Do(func(tx *broker.Tx) error { _, err := tx.Claim([]byte("q"), group); return err })
		if !errors.Is(err, limits.want) {
			t.Errorf("%+v: a claim of a group gave %v", limits, err)
		}
	}
}

// A slot that comes free, and a limit that is raised or goes, wake those who wait for it.
func TestWhoWaitsAtALimitIsServedWhenThereIsRoom(t *testing.T) {
	tag := filtered("app eq web")
	for _, f := range []*broker.Filter{nil, tag, {Share: []byte("a")}} {
		for what, give := range map[string]func(w *work, j job){
			"ack":    func(w *work, j job) { _ = w.ack(j) },
			"nack":   func(w *work, j job) { w.nacked(j, broker.Nack{Delay: -1}, broker.Delayed) },
			"lease":  func(w *work, _ job) { w.pass(time.Minute) },
			"raised": func(w *work, _ job) { w.limited("key", 2, 2) },
			"gone":   func(w *work, _ job) { w.limited("key", 0, 0) },
		} {
			for _, limits := range [][2]int64{{1, 0}, {0, 1}} {
				w := newWork(t)
				w.limited("key", limits[0], limits[1])
				w.tenant("a")
				w.tenant("a")
				j := w.claimOne()
				box := w.claimer(f)
				w.tenant("a")
				w.barrier()
				if len(box.replies) != 0 {
					t.Fatalf("%v: a claim at the limit got %+v", limits, box.replies)
				}
				give(w, j)
				w.barrier()
				if len(box.replies) != 1 {
					t.Errorf("%v, filter %+v: after %s who waits got %d replies", limits, f, what, len(box.replies))
				}
			}
		}
	}
}

// Who fills a batch is asked whenever a claim ends, though nothing came that its filter accepts.
func TestABatchIsFullWhenAClaimMakesRoomForItsLastPacket(t *testing.T) {
	w := newWork(t)
	defer w.close()
	w.limited("", 2, 0)
	w.tenant("a")
	j := w.claimOne()
	w.tenant("b")
	w.tenant("b")
	k := &classWaiter{box: &workbox{}, queues: []string{"q"}, fill: 1000}
	k.s = broker.Selection{Count: 2, Least: 2, MustFind: true, WithDetails: true, Filter: filtered("app eq web")}
	k.c = w.b.Attach(k.box, broker.Selection{})
	k.box.waits(func(tx *broker.Tx, _ bool) { _ = tx.Atomic(func() error { return k.claim(tx) }) })
	w.do(k.claim)
	w.addTagged("q", "app other", "other")
	if w.barrier(); len(k.box.replies) != 0 {
		t.Fatalf("with room for one a batch of two got %+v", k.box.replies)
	}
	if err := w.ack(j); err != nil {
		t.Fatal(err)
	}
	if w.barrier(); len(k.box.replies) != 1 || len(k.box.replies[0]) != 2 {
		t.Errorf("with room for two a batch of two got %+v", k.box.replies)
	}
}

// However many filters are asked anew after a limit, a turn asks some of them. Where so many shares
// came meanwhile that no call may ask them all, who waits is told.
func TestManyFiltersAtALimitAreAskedInTurns(t *testing.T) {
	for _, shares := range []int{1000, broker.MaxLanes + 1} {
		w := newWork(t)
		w.limited("key", 1, 0)
		add := func(i int) {
			w.add(broker.PushRequest{Key: fmt.Append(nil, i), Payload: []byte("x"), Tags: tagged("app web")})
		}
		add(0)
		j := w.claimOne()
		ends := make(map[int]error)
		for i := range 100 {
			r := broker.Selection{End: broker.Oldest, MustFind: true, Filter: filtered(fmt.Sprint("app eq ", i))}
			if i == 99 {
				r.Filter = filtered("app eq web")
			}
			c := w.b.Attach(&workbox{}, broker.Selection{})
			claim := func(tx *broker.Tx) error {
				_, err := tx.Claim([]byte("q"), broker.ClaimRequest{Selection: r})
				if errors.Is(err, broker.ErrNothing) {
					return tx.Park(c, broker.Parking{Queues: [][]byte{[]byte("q")}, Filter: r.Filter, Claims: true})
				}
				ends[i] = err
				return nil
			}
			boxOf(c).waits(func(tx *broker.Tx, _ bool) { _ = claim(tx) })
			w.do(claim)
		}
		for i := range shares {
			add(i)
		}
		if err := w.ack(j); err != nil {
			t.Fatal(err)
		}
		if len(ends) > 90 {
			t.Errorf("in one turn %d of 100 who wait are served or refused among %d shares", len(ends), shares)
		}
		for range 100 {
			w.do(func(*broker.Tx) error { return nil })
		}
		if err, served := ends[99]; shares <= broker.MaxLanes && (!served || err != nil || len(ends) > 1) {
			t.Errorf("who waits for what is there gets %v (%v)", err, served)
		} else if shares > broker.MaxLanes && (!errors.Is(err, broker.ErrManyShares) || len(ends) < 100) {
			t.Errorf("among %d shares who waits gets %v, %d are told", shares, err, len(ends))
		}
	}
}

// A share's own limit overrules that of the queue, also after a start. One that is raised or reset
// wakes those who wait.
func TestAShareHasALimitOfItsOwn(t *testing.T) {
	own := func(most uint32) func(tx *broker.Tx) error {
		return func(tx *broker.Tx) error {
			return tx.SetShare([]byte("q"), broker.Share{Name: []byte("a"), MaxClaimed: most})
		}
	}
	for _, ofShare := range []int64{0, 1, 5} {
		w := newWork(t)
		w.do(own(2))
		w.limited("key", 0, ofShare)
		for range 8 {
			w.tenant("a")
		}
		got := w.tenants(1, nil)
		for range 2 {
			w.restart()
			got = append(got, w.tenants(8, nil)...)
		}
		if len(got) != 2 {
			t.Errorf("beside share-max-claimed %d a limit of 2 lets %v be claimed", ofShare, got)
		}
		group := broker.ClaimRequest{Selection: broker.Selection{Group: true}}
		if err := w.b.Do(func(tx *broker.Tx) error { _, err := tx.Claim([]byte("q"), group); return err }); !errors.Is(err, broker.ErrGroupLimited) {
			t.Errorf("a group was claimed: %v", err)
		}
		box := w.claimer(nil)
		w.barrier()
		w.do(own(3))
		w.barrier()
		if len(box.replies) != 1 {
			t.Errorf("when the limit was raised who waits got %v", box.replies)
		}
		w.do(own(0))
		if got, want := len(w.tenants(8, nil)), max(0, int(ofShare)-3); ofShare > 0 && got != want || ofShare == 0 && got != 5 {
			t.Errorf("without the limit, beside share-max-claimed %d, %d more were claimed", ofShare, got)
		}
	}
}

// A blocked pop behind a claim that waits at the limit is served.
func TestAPopDoesNotWaitBehindAClaimAtTheLimit(t *testing.T) {
	w := newWork(t)
	w.limited("", 1, 0)
	w.tenant("a")
	w.claimOne()
	claims := w.claimer(nil)
	r := &inbox{}
	c := w.b.Attach(r, broker.Selection{})
	w.do(func(tx *broker.Tx) error {
		return wait(tx, c, &blocked{c: c, t: t}, broker.Selection{}, 0, []byte("q"))
	})
	w.tenant("b")
	w.barrier()
	wantGot(t, "who pops", r, "[[from q] [b]]")
	if len(claims.replies) != 0 {
		t.Errorf("who claims at the limit got %v", claims.replies)
	}
}

func TestAPacketSaysWhichLimitHoldsItBack(t *testing.T) {
	for want, limits := range map[string][2]int64{"queue has 1 of 1 claimed": {1, 3}, "share acme has 1 of 1 claimed": {3, 1}} {
		w := newWork(t)
		w.limited("key", limits[0], limits[1])
		w.tenant("acme")
		id := w.tenant("acme")
		w.claimOne()
		if j, _ := w.show("q", id); j.HeldBack != want {
			t.Errorf("%v: held back by %q, want %q", limits, j.HeldBack, want)
		}
		peeked := w.replied(func(tx *broker.Tx) error { return reply(w.c)(tx.Peek([]byte("q"), 1)) })
		if len(peeked) != 1 || strings.TrimSpace(peeked[0].payload) != "acme" {
			t.Errorf("at the limit a peek shows %v, want what is next", peeked)
		}
	}
}

// rated gives q rates.
func (w *work) rated(by, rate, shareRate string, burst int64) {
	w.t.Helper()
	s := broker.DefaultSettings()
	s.ShareBy, s.Rate, s.ShareRate, s.RateBurst = []byte(by), []byte(rate), []byte(shareRate), burst
	w.set(s)
	for w.b.round() {
	}
}

// rateOf gives a share of q a rate of its own, with an empty one none.
func (w *work) rateOf(name, rate string) {
	w.t.Helper()
	w.do(func(tx *broker.Tx) error {
		return tx.SetShare([]byte("q"), broker.Share{Name: []byte(name), Rate: []byte(rate)})
	})
}

// Each door counts, and what is taken comes evenly.
func TestTakesKeepToTheRate(t *testing.T) {
	q := []byte("q")
	for door, take := range map[string]func(tx *broker.Tx, c *broker.Conn) (int, error){
		"claim": func(tx *broker.Tx, _ *broker.Conn) (int, error) {
			f, err := tx.Claim(q, broker.ClaimRequest{Selection: broker.Selection{Count: 9}})
			return len(f.Packets), err
		},
		"pop": func(tx *broker.Tx, _ *broker.Conn) (int, error) {
			f, err := tx.Pop(q, broker.Selection{Count: 9})
			return len(f.Packets), err
		},
		"move": func(tx *broker.Tx, _ *broker.Conn) (n int, err error) {
			for range 9 {
				f, err := tx.MoveEnd(q, broker.Newest, []byte("other"), broker.Oldest)
				if n += len(f.Packets); err != nil {
					return n, err
				}
			}
			return n, nil
		},
		"next": func(tx *broker.Tx, _ *broker.Conn) (n int, err error) {
			for ok := true; ok; n++ {
				if _, ok, err = tx.PopKey(q, broker.Newest, nil, nil); err != nil {
					return n, err
				}
			}
			return n - 1, nil
		},
	} {
		for _, rates := range [][2]string{{"10/1s", ""}, {"", "10/1s"}} {
			w := newWork(t)
			w.rated("tag:tenant", rates[0], rates[1], 2)
			for i := range 40 {
				w.add(broker.PushRequest{Key: []byte{byte(i)}, Payload: []byte("x"), Tags: tagged("tenant a")})
			}
			for i, want := range []int{2, 0, 1, 2, 2} { // after so many times 50 ms each
				n := 0
				w.do(func(tx *broker.Tx) error {
					return tx.Atomic(func() (err error) {
						n, err = take(tx, w.c)
						return err
					})
				})
				if n != want {
					t.Errorf("%s at %v: look %d took %d, want %d", door, rates, i, n, want)
				}
				w.pass([]time.Duration{50, 50, 300, 2000, 0}[i] * time.Millisecond)
			}
		}
	}
}

// Who waits under a rate waits as in an empty queue, and is served when its time has come.
func TestWhoWaitsUnderARateIsServedInTime(t *testing.T) {
	for _, f := range []*broker.Filter{nil, filtered("app eq web"), {Share: []byte("a")}} {
		for _, rates := range [][2]string{{"1/1m", ""}, {"", "1/1m"}} {
			w := newWork(t)
			w.rated("key", rates[0], rates[1], 0)
			w.tenant("a")
			w.tenant("a")
			id := w.tenant("a")
			w.claimOne()
			box := w.claimer(f)
			w.pass(59 * time.Second)
			w.barrier()
			if j, _ := w.show("q", id); len(box.replies) != 0 || !strings.Contains(j.HeldBack, "waits for the rate 1/1m: the next is due in ") {
				t.Errorf("%v: too early it got %v; held back: %q", rates, box.replies, j.HeldBack)
			}
			w.pass(time.Second)
			w.barrier()
			if len(box.replies) != 1 {
				t.Errorf("%v, filter %+v: after a minute it got %d replies", rates, f, len(box.replies))
			}
			last := w.claimer(f)
			w.rated("key", "", "", 0)
			w.barrier()
			if len(last.replies) != 1 {
				t.Errorf("%v: when the rate went, who waited got %d replies", rates, len(last.replies))
			}
		}
	}
}

// A start gives no more than the rate, and a share is not at rest as it has nothing left. A fast
// rate begins with its burst spent, also for a share that comes new.
func TestARateHoldsAcrossAStart(t *testing.T) {
	for _, rates := range [][2]string{{"1/9s", ""}, {"", "1/9s"}, {"1/1m", ""}, {"", "1/1m"}} {
		w := newWork(t)
		w.rated("key", rates[0], rates[1], 1)
		w.tenant("a")
		w.tenants(1, nil)
		w.tenant("a")
		if got := w.tenants(1, nil); len(got) != 0 {
			t.Errorf("%v: took %v at once", rates, got)
		}
		w.restart()
		if rates[1] != "1/1m" {
			w.tenant("b")
		}
		if got := w.tenants(3, nil); len(got) != 0 {
			t.Errorf("%v: took %v after a start", rates, got)
		}
		w.pass(time.Minute)
		if got := w.tenants(9, nil); len(got) == 0 {
			t.Errorf("%v: took nothing a minute after a start", rates)
		}
	}
}

// After a start all shares wait for their rate. No subscriber is asked about one after the other.
func TestASubscriberAfterAStartHoldsUpNoTurn(t *testing.T) {
	w := newWork(t)
	w.rated("key", "", "1/9s", 1)
	const shares = 20_000
	w.together(func(tx *broker.Tx) error {
		for i := range shares {
			if _, err := tx.Push(broker.PushRequest{Queue: []byte("q"), Priority: 1, Key: fmt.Append(nil, i), Payload: []byte("x")}); err != nil {
				return err
			}
		}
		return nil
	})
	w.restart()
	c := w.b.Attach(&inbox{}, broker.Selection{})
	w.do(func(tx *broker.Tx) error {
		if err := tx.Subscribe(c, []byte("q")); err != nil {
			return err
		}
		return tx.Ready(c, 1)
	})
	w.do(func(tx *broker.Tx) error {
		if tx.Gives([]byte("q")) {
			t.Error("some shares seem to give")
		}
		return nil
	})
}

func TestASharesPageLeavesOutAShareThatIsThereForItsRateAlone(t *testing.T) {
	w := newWork(t)
	w.rated("key", "", "1/1h", 1)
	w.tenant("rests")
	w.tenant("stays")
	pop := func(tx *broker.Tx) error {
		return reply(w.c)(tx.Pop([]byte("q"), broker.Selection{Filter: &broker.Filter{Share: []byte("rests")}}))
	}
	if got := w.replied(pop); len(got) != 1 {
		t.Fatalf("popped %v", got)
	}
	if rows := w.shareRows("q", broker.ShareLook{Count: 9}); len(rows) != 1 || string(rows[0].Name) != "stays" {
		t.Errorf("the shares are %+v, want the one with packets", rows)
	}
}

// All packets follow a change of share-by, so a transaction makes few in a queue that has many.
func TestATransactionChangesShareByOfManyPacketsFewTimes(t *testing.T) {
	const lanes = 5000
	for what, change := range map[string]func(s *broker.Settings, i int){
		"share-by": func(s *broker.Settings, i int) { s.ShareBy = []byte([]string{"tag:a", "key"}[i%2]) },
		"lease":    func(s *broker.Settings, i int) { s.Lease = int64(1000 + i) },
	} {
		w := newWork(t)
		w.together(func(tx *broker.Tx) error {
			for i := range lanes {
				r := broker.PushRequest{Queue: []byte("q"), Priority: 1, Payload: []byte("x"), Tags: tagged(fmt.Sprint("t ", i))}
				if _, err := tx.Push(r); err != nil {
					return err
				}
			}
			return nil
		})
		n := 0
		w.together(func(tx *broker.Tx) error {
			for ; n < 1000 && tx.MayLook(); n++ {
				s, _, err := tx.Settings([]byte("q"))
				change(&s, n)
				switch err = cmp.Or(err, tx.SetSettings([]byte("q"), s)); {
				case errors.Is(err, broker.ErrTooManyLooks):
					if got, _, _ := tx.Settings([]byte("q")); bytes.Equal(got.ShareBy, s.ShareBy) {
						t.Error("a change that costs too much is made all the same")
					}
					return nil
				case err != nil:
					return err
				}
			}
			return nil
		})
		if most := broker.MaxLooks / (16 * lanes); what == "share-by" && (n > most || n < most/2) || what != "share-by" && n <= most+1 {
			t.Errorf("a transaction makes %d changes of %s in a queue of %d packets", n, what, lanes)
		}
	}
}

// A clock of the wall that somebody sets makes a rate neither faster nor slower. Where it is put
// forward over a start, so much time has passed.
func TestAClockThatIsSetChangesNoRate(t *testing.T) {
	for _, rates := range [][2]string{{"1/1m", ""}, {"", "1/1m"}} {
		for name, set := range map[string]time.Duration{"back": -24 * time.Hour, "forward": 24 * time.Hour} {
			for _, starts := range []bool{false, true} {
				w := newWork(t)
				w.rated("key", rates[0], rates[1], 2)
				for range 9 {
					w.tenant("a")
				}
				w.tenants(9, nil)
				first := 0
				if starts {
					w.killed(func(*broker.Tx) {})
				}
				if w.now.Add(set.Milliseconds()); starts {
					w.restarted()
				}
				if starts && set > 0 {
					first = 2
				}
				for i, want := range []int{first, 1, 1} { // after a minute each
					if got := len(w.tenants(9, nil)); got != want {
						t.Errorf("%v, set %s, a start %v: after %d minutes it took %d, want %d", rates, name, starts, i, got, want)
					}
					w.pass(time.Minute)
				}
				w.tenants(9, nil)
				box := w.claimer(nil)
				w.now.Add(-set.Milliseconds())
				w.pass(59 * time.Second)
				if w.barrier(); len(box.replies) != 0 {
					t.Errorf("%v, set %s, a start %v: who waits got a packet too early", rates, name, starts)
				}
				w.pass(time.Second)
				if w.barrier(); len(box.replies) != 1 {
					t.Errorf("%v, set %s, a start %v: who waits got %d replies", rates, name, starts, len(box.replies))
				}
			}
		}
	}
}

// A share's own rate overrules that of the queue. After a fast one a start begins with its burst
// spent, also for a share that comes later.
func TestAShareHasARateOfItsOwn(t *testing.T) {
	for _, shareRate := range []string{"", "100/1s", "1/1h"} {
		for _, late := range []bool{false, true} {
			w := newWork(t)
			w.rated("key", "", shareRate, 0)
			w.do(func(tx *broker.Tx) error {
				return tx.SetShare([]byte("q"), broker.Share{Name: []byte("a"), Rate: []byte("2/19s")})
			})
			add := func() {
				for range 9 {
					w.tenant("a")
				}
			}
			if !late {
				add()
				if got := w.tenants(9, nil); len(got) != 1 {
					t.Errorf("beside %q: took %v at once", shareRate, got)
				}
			}
			w.restart()
			if late {
				add()
			}
			for i, want := range []int{0, 0, 1, 0, 1} { // after so many times 4,750 ms
				if got := w.tenants(9, nil); len(got) != want {
					t.Errorf("beside %q, look %d after a start: took %v", shareRate, i, got)
				}
				w.pass(4750 * time.Millisecond)
				w.barrier()
			}
		}
	}
}

// What a claim cost is charged when it ends, to the queue's rate and to the share's.
func TestAClaimCountsAsWhatItCost(t *testing.T) {
	for _, rates := range [][2]string{{"1/1s", ""}, {"", "1/1s"}, {"", ""}} {
		for what, end := range map[string]func(w *work, j job) error{
			"ack":  func(w *work, j job) error { return w.ack(j) },
			"nack": func(w *work, j job) error { _, err := w.nack(j, broker.Nack{Delay: 3600_000}); return err },
		} {
			w := newWork(t)
			w.rated("key", rates[0], rates[1], 0)
			w.tenant("a")
			w.tenant("a")
			j := w.claimOne()
			j.cost = 5
			if err := end(w, j); err != nil {
				t.Fatal(err)
			}
			w.do(func(tx *broker.Tx) error { // what changes no rate forgives no cost
				s, _, err := tx.Settings([]byte("q"))
				s.MaxClaimed = 9
				return cmp.Or(err, tx.SetSettings([]byte("q"), s), tx.SetShare([]byte("q"), broker.Share{Name: []byte("a"), Weight: 2}))
			})
			left := 5
			for ; left > 0 && len(w.tenants(1, nil)) == 0; left-- {
				w.pass(time.Second)
			}
			if want := 5 * min(1, len(rates[0]+rates[1])); 5-left != want {
				t.Errorf("%v: after an %s of cost 5 the next came after %d s, want %d", rates, what, 5-left, want)
			}
		}
	}
}

// The highest cost of the slowest rate that takes it overflows nothing.
func TestTheHighestCostHasNoOverflow(t *testing.T) {
	w := newWork(t)
	w.rated("key", "1/31s", "", 1)
	w.tenant("a")
	w.tenant("a")
	j := w.claimOne()
	j.cost = broker.MaxCost
	if err := w.ack(j); err != nil {
		t.Fatal(err)
	}
	if w.pass(358 * 24 * time.Hour); len(w.tenants(1, nil)) != 0 {
		t.Error("after 358 days another one was taken")
	}
	w.rated("key", "1/1s", "", 1)
	if w.pass(time.Second); len(w.tenants(1, nil)) != 1 {
		t.Error("a rate that was raised does not hold")
	}
}

// A take that does not wait finds what a change of limits lets it take, though the shares follow
// in slices: as far as that takes no longer than a take may.
func TestATakeFollowsAChangeOfLimits(t *testing.T) {
	const shares = 5000
	for _, f := range []*broker.Filter{nil, filtered("app eq web")} {
		w := newWork(t)
		s := broker.DefaultSettings()
		s.ShareBy, s.ShareRate = []byte("key"), []byte("1/1h")
		w.set(s)
		w.together(func(tx *broker.Tx) (err error) {
			for i := 0; i < 2*shares && err == nil; i++ {
				_, err = tx.Push(broker.PushRequest{Queue: []byte("q"), Priority: 1, Key: fmt.Append(nil, i%shares), Tags: tagged("app web")})
			}
			return err
		})
		for range shares {
			if len(w.tenants(1, nil)) != 1 {
				t.Fatal("a share gives nothing")
			}
		}
		w.pass(time.Millisecond)
		w.together(func(tx *broker.Tx) error {
			if got, err := tx.Pop([]byte("q"), broker.Selection{Filter: f}); len(got.Packets) != 0 || err != nil {
				t.Fatalf("beyond its rate a share gives %v, error %v", got, err)
			}
			s.ShareRate = nil
			if err := tx.SetSettings([]byte("q"), s); err != nil {
				return err
			}
			got, err := tx.Pop([]byte("q"), broker.Selection{Filter: f})
			if len(got.Packets) != 1 {
				t.Errorf("filter %v: without the rate nothing is taken at once", f)
			}
			return err
		})
	}
}

// A batch is not cut short behind a change of limits in the same turn.
func TestABatchFillsBehindAChangeOfLimits(t *testing.T) {
	const shares, first, last, batch = 5000, 1990, 2900, 500
	w := newWork(t)
	s := broker.DefaultSettings()
	s.ShareBy, s.ShareRate = []byte("key"), []byte("1/1h")
	w.set(s)
	push := func(tx *broker.Tx, from, to int) (err error) {
		for i := from; i < to && err == nil; i++ {
			_, err = tx.Push(broker.PushRequest{Queue: []byte("q"), Priority: 1, Key: fmt.Append(nil, i)})
		}
		return err
	}
	w.together(func(tx *broker.Tx) error { return push(tx, 0, shares) })
	for range shares {
		w.tenants(1, nil)
	}
	w.together(func(tx *broker.Tx) error { return push(tx, first, last) })
	w.together(func(tx *broker.Tx) error {
		s.ShareRate = nil
		if err := tx.SetSettings([]byte("q"), s); err != nil {
			return err
		}
		got, err := tx.Pop([]byte("q"), broker.Selection{Count: batch, Least: batch})
		if len(got.Packets) != batch && !errors.Is(err, broker.ErrFilling) {
			t.Errorf("it took %d packets of %d, error %v", len(got.Packets), batch, err)
		}
		return nil
	})
}
