package broker_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
)

// defaultsWith are those of queues whose names have a prefix: the defaults with a change.
func defaultsWith(prefix string, change func(s *broker.Settings)) broker.Defaults {
	s := broker.DefaultSettings()
	change(&s)
	return func(name string) *broker.Settings {
		if strings.HasPrefix(name, prefix) {
			return &s
		}
		return nil
	}
}

func leaseOf(ms int64) func(s *broker.Settings) { return func(s *broker.Settings) { s.Lease = ms } }

func (w *work) setDefaults(d broker.Defaults) {
	w.t.Helper()
	w.do(func(tx *broker.Tx) error { tx.SetDefaults(d); return nil })
}

// wantLease wants the lease of claims of a queue.
func (w *work) wantLease(queue string, want int64) {
	w.t.Helper()
	w.do(func(tx *broker.Tx) error {
		s, _, err := tx.Settings([]byte(queue))
		if s.Lease != want {
			w.t.Errorf("the lease of %s is %d, want %d", queue, s.Lease, want)
		}
		return err
	})
	w.add(broker.PushRequest{Queue: []byte(queue)})
	if got := w.claim(queue, broker.ClaimRequest{})[0].LeaseEnd - w.now.Load(); got != want {
		w.t.Errorf("a claim of %s lasts %d ms, want %d", queue, got, want)
	}
}

func TestDefaultsHoldForQueuesWithoutSettingsOfTheirOwn(t *testing.T) {
	w := newWork(t)
	w.add(broker.PushRequest{Queue: []byte("jobs.old")})
	w.change("jobs.own", func(s *broker.Settings) { s.MaxAttempts = 1 })
	w.o.Defaults = defaultsWith("jobs.", leaseOf(7000))
	w.setDefaults(w.o.Defaults)
	check := func() {
		t.Helper()
		w.wantLease("jobs.old", 7000)
		w.wantLease("jobs.later", 7000)
		w.wantLease("jobs.own", 30_000)
		w.wantLease("other", 30_000)
	}
	check()
	w.restart()
	check()
	w.do(func(tx *broker.Tx) error { _, err := tx.Drop([]byte("jobs.own")); return err })
	w.wantLease("jobs.own", 7000)
	w.setDefaults(nil)
	w.wantLease("jobs.old", 30_000)
}

func TestSettingsOfAQueueBeginWithItsDefaults(t *testing.T) {
	w := newWork(t)
	w.setDefaults(defaultsWith("jobs.", leaseOf(7000)))
	w.change("jobs.q", func(s *broker.Settings) { s.MaxAttempts = 1 })
	w.setDefaults(nil)
	w.wantLease("jobs.q", 7000)
	w.do(func(tx *broker.Tx) error {
		if !tx.HasOwnSettings([]byte("jobs.q")) || tx.HasOwnSettings([]byte("other")) {
			t.Error("want that only jobs.q has settings of its own")
		}
		return nil
	})
}

func TestARenamedQueueFollowsTheDefaultsOfItsNewName(t *testing.T) {
	w := newWork(t)
	w.setDefaults(defaultsWith("jobs.", leaseOf(7000)))
	w.add(broker.PushRequest{Queue: []byte("jobs.q")})
	w.do(func(tx *broker.Tx) error { _, err := tx.Rename([]byte("jobs.q"), []byte("q")); return err })
	w.wantLease("q", 30_000)
	w.do(func(tx *broker.Tx) error { _, err := tx.Rename([]byte("q"), []byte("jobs.q")); return err })
	w.wantLease("jobs.q", 7000)
}

func TestDefaultsDoNotKeepAQueue(t *testing.T) {
	w := newWork(t)
	w.setDefaults(defaultsWith("", leaseOf(7000)))
	w.add(broker.PushRequest{})
	w.do(func(tx *broker.Tx) error { return reply(w.c)(tx.Pop([]byte("q"), groups)) })
	w.do(func(tx *broker.Tx) error {
		if _, ok, err := tx.Settings([]byte("q")); ok || err != nil {
			t.Errorf("the empty queue is there: %v, %v", ok, err)
		}
		return nil
	})
}

func TestDefaultsThatEndAPauseServeWhoWaits(t *testing.T) {
	w := newWork(t)
	w.setDefaults(defaultsWith("", pauseOut))
	w.add(broker.PushRequest{Payload: []byte("a")})
	r := &inbox{}
	w.subscribe(w.b.Attach(r, groups), 1, "q")
	if w.barrier(); len(r.got) != 0 {
		t.Fatalf("a paused queue gave %q", r.got)
	}
	w.setDefaults(nil)
	if w.barrier(); len(r.got) != 1 {
		t.Errorf("the subscriber got %q when the pause ended, want one packet", r.got)
	}
}

func TestDeadPacketsFollowNewDefaults(t *testing.T) {
	w := newWork(t)
	first := w.dead("first")
	w.pass(time.Minute)
	w.o.Defaults = defaultsWith("", func(s *broker.Settings) { s.RetainDead = 90_000 })
	w.setDefaults(w.o.Defaults)
	w.wantDead(first)
	second := w.dead("second")
	w.restart()
	w.b.round()
	w.pass(30 * time.Second)
	w.wantDead(second)
	w.setDefaults(nil)
	w.pass(time.Hour)
	w.wantDead(second)
}

func TestPacketsReturnToAQueueWhoseDefaultsLetThemDieElsewhere(t *testing.T) {
	w := newWork(t)
	w.o.Defaults = defaultsWith("", func(s *broker.Settings) { s.DeadLetter = []byte("graves") })
	w.setDefaults(w.o.Defaults)
	w.dead("a")
	for range 2 {
		w.pass(time.Hour) // in which empty queues end
		w.b.round()
		w.restart()
	}
	if got := w.holds("q", "graves"); got != "q: 0 0 0 0 0; graves: 1 0 0 0 0; " {
		t.Fatal(got)
	}
	again := w.claim("graves", broker.ClaimRequest{})[0]
	w.nacked(again, broker.Nack{Dead: true}, broker.Dead)
	if n := w.bulk(broker.Redrive([]byte("graves"), 0, nil)); n != 1 {
		t.Errorf("%d packets were redriven, want 1", n)
	}
	if got := w.holds("q", "graves"); got != "q: 1 0 0 0 0; graves: 0 0 0 0 0; " {
		t.Error(got)
	}
}

func TestManyQueuesFollowNewDefaultsInSlices(t *testing.T) {
	w := newWork(t)
	const queues = 5000
	name := func(i int) []byte { return fmt.Append(nil, "q", i) }
	for i := range queues {
		w.add(broker.PushRequest{Queue: name(i)})
	}
	w.setDefaults(defaultsWith("", func(s *broker.Settings) { s.Lease, s.RetainDead = 7000, 1000 }))
	rounds := 0
	for w.b.round() {
		rounds++
	}
	if rounds > 100 {
		t.Errorf("queues without dead packets took %d turns", rounds)
	}
	w.do(func(tx *broker.Tx) error {
		for i := range queues {
			if s, _, err := tx.Settings(name(i)); err != nil || s.Lease != 7000 {
				return fmt.Errorf("queue %d has the lease %d: %w", i, s.Lease, err)
			}
		}
		return nil
	})
}

// A start finds packets in their shares and in strict order by the defaults, as by settings of the
// queue's own, also where a change of these would be refused.
func TestAStartFindsSharesByTheDefaults(t *testing.T) {
	const shares = broker.MaxLanes + 10
	for _, strict := range []bool{false, true} {
		w := newWork(t)
		w.o.Defaults = defaultsWith("q", func(s *broker.Settings) { s.ShareBy, s.Strict = []byte("key"), strict })
		w.restart()
		w.together(func(tx *broker.Tx) (err error) {
			for i := 0; i < 2*shares && err == nil; i++ {
				_, err = tx.Push(broker.PushRequest{Queue: []byte("q"), Priority: 1, Key: fmt.Append(nil, i%shares), Payload: fmt.Append(nil, i%shares)})
			}
			return err
		})
		claimed := w.tenants(1, nil)
		w.restart()
		w.do(func(tx *broker.Tx) error {
			s, _, err := tx.Settings([]byte("q"))
			if string(s.ShareBy) != "key" {
				t.Errorf("strict %v: at the start its shares go by %q", strict, s.ShareBy)
			}
			return err
		})
		filter := &broker.Filter{Share: []byte(claimed[0])}
		if got := w.tenants(1, filter); len(got) == 1 == strict {
			t.Errorf("strict %v: beside a claim of the key %v is claimed", strict, got)
		}
	}
}
