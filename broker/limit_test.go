package broker_test

import (
	"errors"
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
	err := w.b.Do(func(tx *broker.Tx) error { _, err := tx.Claim([]byte("q"), group); return err })
	if !errors.Is(err, broker.ErrGroupLimited) {
		t.Errorf("a group was claimed: %v", err)
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
