package broker_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/holdfast-queue/holdfast/broker"
)

func (w *work) workers(queue string) (names []string) {
	w.t.Helper()
	w.do(func(tx *broker.Tx) error {
		list, err := tx.Workers([]byte(queue))
		for _, k := range list {
			names = append(names, k.Name)
		}
		return err
	})
	return names
}

func TestTheConsumersThatAreRememberedAreBounded(t *testing.T) {
	w := newWork(t)
	w.set(broker.DefaultSettings())
	known := 0
	for i := range broker.MaxWorkers + 10 {
		w.do(func(tx *broker.Tx) error {
			known = tx.WorkersKnown()
			return tx.Claim(w.c, []byte("q"), broker.ClaimRequest{Consumer: fmt.Append(nil, "idle", i)}, 0)
		})
	}
	if known != broker.MaxWorkers {
		t.Fatalf("%d consumers are remembered, want %d", known, broker.MaxWorkers)
	}
	for range 2 {
		w.add(broker.PushRequest{})
		job := w.claim("q", broker.ClaimRequest{Consumer: []byte("late")})[0]
		if job.Consumer != "late" || !slices.Contains(w.workers("q"), "late") {
			t.Fatalf("the one that holds %+v is not known", job)
		}
		if err := w.ack(job); err != nil {
			t.Fatal(err)
		}
	}
	w.do(func(tx *broker.Tx) error {
		known = tx.WorkersKnown()
		return nil
	})
	if known != broker.MaxWorkers {
		t.Fatalf("%d consumers are remembered, want %d", known, broker.MaxWorkers)
	}
}
