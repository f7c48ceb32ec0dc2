package broker_test

import (
	"bytes"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/storage"
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
	w.store.limits = storage.Limits{MaxOps: 1600, MaxBytes: 156_000, MaxRecord: 150_000, MaxDeletes: 9_000}
	w.restart()
	name, s := bytes.Repeat([]byte("q"), 55_000), broker.DefaultSettings()
	s.DeadLetter = bytes.Repeat([]byte("d"), 65_535)
	w.do(func(tx *broker.Tx) error { return tx.SetSettings(name, s) })
	w.add(broker.PushRequest{Queue: name})
	w.barrier()
	g := w.gate()
	w.add(broker.PushRequest{}) // opens a commit
	<-g.entered
	w.pass(time.Second)
	w.add(broker.PushRequest{Payload: bytes.Repeat([]byte("x"), 38_000)})
	w.ungate()
	g.leave <- nil
	waitFor(t, func() bool {
		w.store.mu.Lock()
		defer w.store.mu.Unlock()
		for _, q := range w.store.queues {
			if len(q.Name) == len(name) && q.Counters.Pushed == 1 {
				return true
			}
		}
		return false
	})
}
