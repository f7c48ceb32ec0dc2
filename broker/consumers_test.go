package broker_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// forgetsWorkers lets the time pass for which consumers are known, and expects that none is.
func (w *work) forgetsWorkers(queue string) {
	w.t.Helper()
	w.pass(broker.ConsumerTime * time.Millisecond)
	w.workers(queue) // which forgets those that nothing names
	w.do(func(tx *broker.Tx) error {
		if n := tx.WorkersKnown(); n > 0 {
			w.t.Fatalf("%d consumers are known", n)
		}
		return nil
	})
}

func (w *work) workers(queue string) (names []string) {
	w.t.Helper()
	w.do(func(tx *broker.Tx) error {
		list, err := allConsumers(tx, []byte(queue))
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
	for i := range broker.MaxConsumers + 10 {
		w.do(func(tx *broker.Tx) error { known = tx.WorkersKnown(); return nil })
		w.add(broker.PushRequest{})
		if err := w.ack(w.claim("q", broker.ClaimRequest{Consumer: fmt.Append(nil, "idle", i)})[0]); err != nil {
			t.Fatal(err)
		}
	}
	if known != broker.MaxConsumers {
		t.Fatalf("%d consumers are remembered, want %d", known, broker.MaxConsumers)
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
	if known != broker.MaxConsumers {
		t.Fatalf("%d consumers are remembered, want %d", known, broker.MaxConsumers)
	}
	w.add(broker.PushRequest{Queue: []byte("stuck")})
	w.claim("stuck", broker.ClaimRequest{Consumer: []byte("silent"), Lease: 1 << 40})
	w.pass(broker.ConsumerTime * time.Millisecond)
	w.do(func(tx *broker.Tx) error {
		if s, _, err := tx.QueueStats([]byte("stuck")); !s.Held || err != nil {
			t.Errorf("a silent consumer that is not listed holds a packet: held %v, %v", s.Held, err)
		}
		return nil
	})
}

func TestAStartSeesNoConsumer(t *testing.T) {
	w := newWork(t)
	w.add(broker.PushRequest{})
	job := w.claim("q", broker.ClaimRequest{Consumer: []byte("gone")})[0]
	if _, err := w.nack(job, broker.Nack{Dead: true}); err != nil {
		t.Fatal(err)
	}
	w.pass(broker.ConsumerTime * time.Millisecond)
	for range 2 {
		if got := w.workers("q"); len(got) > 0 {
			t.Fatalf("the consumers are %v, and nobody called in the last while", got)
		}
		w.barrier()
		w.restart()
	}
}

func TestAConsumerIsForgottenWithAPacketWhoseRecordIsGone(t *testing.T) {
	w := newWork(t)
	s := broker.DefaultSettings()
	s.Retain = 60_000
	w.set(s)
	w.add(broker.PushRequest{TTL: time.Second})
	job := w.claim("q", broker.ClaimRequest{Lease: 3_600_000})[0]
	w.barrier()
	w.restart() // the cache is empty
	w.pass(time.Minute)
	clear(w.store.packets) // as the database does some time after the expiry
	if err := w.ack(job); err != nil {
		t.Fatal(err)
	}
	w.barrier()
	w.forgetsWorkers("q")
}

func TestAConsumerIsForgottenWhenAnotherHasItsPackets(t *testing.T) {
	w := newWork(t)
	w.add(broker.PushRequest{})
	for _, name := range []string{"first", "second"} {
		w.claim("q", broker.ClaimRequest{Consumer: []byte(name)})
		w.pass(broker.ConsumerTime * time.Millisecond)
	}
	w.workers("q") // which forgets those that nothing names
	w.do(func(tx *broker.Tx) error {
		if n := tx.WorkersKnown(); n != 1 {
			t.Fatalf("%d consumers are known, want the one whose claim was the last", n)
		}
		return nil
	})
}

func TestAValueInPlaceOfAPacketThatWasTriedKnowsNothingOfThat(t *testing.T) {
	for _, together := range []bool{false, true} { // in one batch
		t.Run(fmt.Sprint(together), func(t *testing.T) {
			w := newWork(t)
			w.b.hold(func() { w.add(broker.PushRequest{Queue: []byte("other")}) }) // what follows goes into one batch
			id := w.add(broker.PushRequest{Payload: []byte("old")})
			w.do(func(tx *broker.Tx) error {
				return reply(w.c)(tx.Claim([]byte("q"), broker.ClaimRequest{Consumer: []byte("w")}))
			})
			_, err := w.nack(job{Detail: broker.Detail{ID: id, Token: int64(id) + 1}}, broker.Nack{Reason: []byte("bad")})
			if err != nil {
				t.Fatal(err)
			}
			if !together {
				w.b.release()
				w.barrier()
			}
			w.do(func(tx *broker.Tx) error {
				return tx.Atomic(func() error {
					_, err := tx.SetAt([]byte("q"), 0, []byte("new"))
					return err
				})
			})
			if together {
				w.b.release()
			}
			if got := w.stored(); got != "2 packets, 0 delivery states" {
				t.Fatalf("the store holds %s", got)
			}
			w.forgetsWorkers("q")
			if got := w.claimOne(); got.payload != "new" || got.Attempts != 1 || len(got.Reason) > 0 {
				t.Fatalf("claimed %+v", got)
			}
		})
	}
}

func TestADeliveryStateWithoutItsPacketIsDeletedAfterAStart(t *testing.T) {
	w := newWork(t)
	left := content.NoteID{Identity: 1, Kind: content.NoteReason}
	w.store.states[left.Identity] = content.Delivery{Identity: left.Identity, Expiry: 1} // which its packet had, too
	w.store.notes[left] = []byte("bad")
	w.restart()
	w.comesTrue(func() bool {
		return len(w.store.states)+len(w.store.notes) == 0
	})
}

func TestTheConsumersOfAQueueEndWithIt(t *testing.T) {
	for name, lasts := range map[string]bool{"dropped": true, "empty": false} {
		t.Run(name, func(t *testing.T) {
			w := newWork(t)
			if lasts {
				w.set(broker.DefaultSettings())
			}
			w.add(broker.PushRequest{})
			if err := w.ack(w.claimOne()); err != nil {
				t.Fatal(err)
			}
			w.do(func(tx *broker.Tx) error {
				_, err := tx.Delete([]byte("q"))
				return err
			})
			w.pass(time.Minute) // an empty queue is kept for a while
			w.comesTrue(func() (forgotten bool) {
				w.do(func(tx *broker.Tx) error {
					forgotten = tx.WorkersKnown() == 0
					return nil
				})
				w.add(broker.PushRequest{Queue: []byte("other")}) // so that the committer looks at the clock
				return forgotten
			})
		})
	}
}

func TestAConsumerThatFoundNothingIsKnown(t *testing.T) {
	w := newWork(t)
	w.set(broker.DefaultSettings())
	for name, mustFind := range map[string]bool{"polls": false, "may-wait": true} {
		w.together(func(tx *broker.Tx) error {
			_, err := tx.Claim([]byte("q"), broker.ClaimRequest{Selection: broker.Selection{MustFind: mustFind}, Consumer: []byte(name)})
			if mustFind != (err == broker.ErrNothing) {
				t.Errorf("a claim of nothing gave %v", err)
			}
			return nil
		})
	}
	if got := w.workers("q"); fmt.Sprint(got) != "[may-wait polls]" {
		t.Errorf("known are %v", got)
	}
}

func TestConsumersWithManyClaimsAreFoundInSlices(t *testing.T) {
	w := newWork(t)
	defer w.close()
	const n = 6000
	for range n {
		w.add(broker.PushRequest{Payload: []byte("x")})
	}
	want := map[string]int{}
	for i := range n / 1000 {
		name := fmt.Sprint("worker ", i%4)
		claims := w.claim("q", broker.ClaimRequest{Consumer: []byte(name), Selection: broker.Selection{End: broker.Oldest, Count: 1000}})
		want[name] += len(claims)
	}
	slices, got := 0, map[string]int{}
	var l broker.ConsumerLook
	for more := true; more; slices++ {
		w.do(func(tx *broker.Tx) (err error) {
			var list []broker.Consumer
			list, more, err = tx.Consumers([]byte("q"), &l)
			for _, k := range list {
				if got[k.Name] = k.Claimed; len(k.IDs) != broker.MaxConsumerIDs || k.Since == 0 {
					t.Errorf("%s has %d ids, and claimed at %d", k.Name, len(k.IDs), k.Since)
				}
			}
			return err
		})
	}
	if !maps.Equal(got, want) || slices < 3 {
		t.Errorf("%d slices found %v, want %v", slices, got, want)
	}
}

// allConsumers makes all slices of a look.
func allConsumers(tx *broker.Tx, queue []byte) (list []broker.Consumer, err error) {
	var l broker.ConsumerLook
	for more := true; more && err == nil; {
		list, more, err = tx.Consumers(queue, &l)
	}
	return list, err
}

func TestProducersAreForgottenWithTheirQueueAndInTime(t *testing.T) {
	w := newWork(t)
	defer func() { _ = w.b.Close() }()
	push := func(name string) {
		c := w.b.Attach(&inbox{address: name}, broker.Selection{})
		w.do(func(tx *broker.Tx) error {
			tx.As(c)
			return pushError(tx.Push(broker.PushRequest{Queue: []byte("q"), Priority: 1}))
		})
		w.do(func(tx *broker.Tx) error { tx.Detach(c); return nil })
	}
	known := func(want int) {
		t.Helper()
		w.do(func(tx *broker.Tx) error {
			if n := tx.ProducersKnown(); n > want {
				t.Errorf("%d producers are known, want %d at most", n, want)
			}
			return nil
		})
	}
	for i := range 3000 {
		push(fmt.Sprint(i))
		w.pass(time.Second)
	}
	known(2*600 + 64)
	for i := range broker.MaxProducers + 10 {
		push(fmt.Sprint("crowd ", i))
	}
	known(broker.MaxProducers)
	w.pass(2 * broker.ConsumerTime * time.Millisecond) // those that came first are forgotten for one that comes
	push("late")
	known(1)
	w.do(func(tx *broker.Tx) error { _, err := tx.Delete([]byte("q")); return err })
	w.pass(time.Second)
	known(0)
}
