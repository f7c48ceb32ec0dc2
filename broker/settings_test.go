package broker_test

import (
	"bytes"
	"reflect"
	"slices"
	"testing"

	"github.com/holdfast-queue/holdfast/broker"
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
