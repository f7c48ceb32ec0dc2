package broker_test

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/storage/content"
)

func TestSettingsOutliveARestartAndAreTheQueuesOwn(t *testing.T) {
	w := newWork(t)
	want := broker.Settings{
		MaxAttempts: 1, Lease: 2, BackoffMin: 3, BackoffMax: 4, DeadLetter: []byte("dead"), Retain: 5,
		Bound: 6, BoundBytes: 7, Full: broker.FullDrop, ExclusiveProducer: true, ExclusiveConsumer: true, PauseIn: true, PauseOut: true,
		Orders: []broker.Order{{Tag: "class", Values: []string{"low", "high"}}},
	}
	given := want
	given.DeadLetter = bytes.Clone(want.DeadLetter)
	given.Orders = []broker.Order{{Tag: "class", Values: slices.Clone(want.Orders[0].Values)}}
	w.set(given)
	given.DeadLetter[0], given.Orders[0].Tag, given.Orders[0].Values[0] = 'x', "x", "x"
	for range 2 {
		w.do(func(tx *broker.Tx) error {
			if got, _, err := tx.Settings([]byte("q")); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("settings %+v, %v", got, err)
			}
			return nil
		})
		w.restart()
	}
}

func TestCountersAreSavedBesideWhatOthersBring(t *testing.T) {
	w := newWork(t)
	defer w.close()
	w.store.limits = content.Limits{MaxOps: 800, MaxBytes: 39000}
	w.restart()
	name, s := bytes.Repeat([]byte("q"), 55_000), broker.DefaultSettings()
	s.DeadLetter = bytes.Repeat([]byte("d"), 65_535)
	w.do(func(tx *broker.Tx) error { return tx.SetSettings(name, s) })
	w.add(broker.PushRequest{Queue: name})
	w.barrier()
	w.b.hold(func() { w.add(broker.PushRequest{}) })
	w.pass(time.Second)
	w.add(broker.PushRequest{Payload: bytes.Repeat([]byte("x"), 38_000)})
	w.b.release()
	w.comesTrue(func() bool {
		for _, q := range w.store.queues {
			if len(q.Name) == len(name) && q.Counters.Pushed == 1 {
				return true
			}
		}
		return false
	})
}

// dead pushes a packet that dies at once.
func (w *work) dead(payload string) broker.ID {
	w.t.Helper()
	id := w.add(broker.PushRequest{Payload: []byte(payload)})
	w.nacked(w.claimOne(), broker.Nack{Dead: true}, broker.Dead)
	return id
}

func (w *work) retainDead(keep time.Duration) {
	w.t.Helper()
	s := broker.DefaultSettings()
	s.RetainDead = keep.Milliseconds()
	w.set(s)
}

func (w *work) wantDead(want ...broker.ID) {
	w.t.Helper()
	var got []broker.ID
	for _, j := range w.list("q", broker.Dead, 10) {
		got = append(got, j.ID)
	}
	if stored := fmt.Sprintf("%d packets, %d delivery states", len(want), len(want)); !slices.Equal(got, want) || w.stored() != stored {
		w.t.Fatalf("dead are %v with %s in the store, want %v", got, w.stored(), want)
	}
}

func TestADeadPacketIsDeletedWhenItWasDeadForRetainDead(t *testing.T) {
	for name, restart := range map[string]func(w *work){"in one run": func(*work) {}, "over restarts": (*work).restart} {
		t.Run(name, func(t *testing.T) {
			w := newWork(t)
			w.retainDead(10 * time.Second)
			w.pass(time.Hour) // of being ready, which does not count
			first := w.dead("first")
			w.pass(6 * time.Second)
			restart(w)
			second := w.dead("second")
			w.pass(3999 * time.Millisecond)
			restart(w)
			w.wantDead(first, second)
			w.pass(time.Millisecond)
			w.wantDead(second)
			restart(w)
			w.pass(6 * time.Second)
			w.wantDead()
		})
	}
}

func TestRetainDeadHoldsForWhatIsDeadAlready(t *testing.T) {
	w := newWork(t)
	w.retainDead(0)
	first := w.dead("first")
	w.restart()
	w.pass(6 * time.Second)
	second := w.dead("second")
	w.retainDead(10 * time.Second)
	w.pass(3 * time.Second)
	w.retainDead(time.Hour)
	w.pass(30 * time.Second)
	w.wantDead(first, second)
	w.retainDead(35 * time.Second)
	w.wantDead(second)
	w.retainDead(0)
	w.restart()
	w.pass(time.Hour)
	w.wantDead(second)
}

func TestDeadPacketsFollowTheLastRetainDeadOfATransactionBehindIt(t *testing.T) {
	w := newWork(t)
	w.dead("x")
	w.pass(time.Minute)
	w.barrier() // nothing else is to be done
	w.together(func(tx *broker.Tx) error {
		s := broker.DefaultSettings()
		for i := range int64(100) {
			s.RetainDead = 1000 + i
			if err := tx.SetSettings([]byte("q"), s); err != nil {
				return err
			}
		}
		if n, wait := tx.Redated(), w.b.Next(); n != 1 || wait != 0 {
			t.Errorf("dead packets of %d queues follow in %d ms, want those of one, at once", n, wait)
		}
		return nil
	})
	w.wantDead()
}

func TestADeadPacketThatIsRedrivenIsNotDeleted(t *testing.T) {
	w := newWork(t)
	w.retainDead(10 * time.Second)
	id := w.dead("poison")
	if n := w.bulk(broker.Redrive([]byte("q"), 0, nil)); n != 1 {
		t.Fatalf("redrove %d", n)
	}
	w.pass(time.Minute)
	if j := w.claimOne(); j.ID != id {
		t.Fatalf("claimed %+v", j)
	}
}

func TestTheCommitterGoesOnWhereRetainDeadOfManyPacketsHasChanged(t *testing.T) {
	w := newWork(t)
	w.retainDead(0)
	const n = 21_000
	for range n / 500 {
		w.do(func(tx *broker.Tx) error {
			for range 500 {
				if _, err := tx.Push(broker.PushRequest{Queue: []byte("q"), Priority: 1}); err != nil {
					return err
				}
			}
			return nil
		})
		for _, j := range w.claim("q", broker.ClaimRequest{Selection: broker.Selection{Count: 500}}) {
			w.nacked(j, broker.Nack{Dead: true}, broker.Dead)
		}
	}
	w.pass(time.Minute)
	w.retainDead(time.Second)
	w.comesTrue(func() bool { return w.stored() == "0 packets, 0 delivery states" })
}
