package broker_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// together lets run push n packets to the queue "pair", when the batch behind a commit that is held
// up is all but full. It returns the numbers of the batches that they came in.
func together(t *testing.T, n int, run func(b *driver, n int, push func(tx *broker.Tx, i int) error) error) (batches []int) {
	h := newHarness(t)
	defer h.close()
	h.store.limits = content.Limits{MaxOps: 400, MaxBytes: 262144}
	h.restart()
	seen := 0
	h.store.after = func(b *content.Batch) {
		seen++
		b.Each(func(op content.Op) {
			if op.Kind == content.OpPut && strings.Contains(string(op.Record), "of the pair") {
				batches = append(batches, seen)
			}
		})
	}
	h.b.hold(func() { h.push("other", 1, 0, "opens a commit", "x") })
	for i := range 399 { // of the 400 that fill the batch
		h.push("other", 1, 0, fmt.Sprint(i), "x")
	}
	h.b.release()
	err := run(h.b, n, func(tx *broker.Tx, i int) error {
		return pushError(tx.Push(broker.PushRequest{Queue: []byte("pair"), Priority: 1, Key: []byte(fmt.Sprint(i)), Payload: []byte("of the pair")}))
	})
	if err != nil {
		t.Fatal(err)
	}
	h.barrier()
	return batches
}

func TestSingleCallsMayComeInTwoBatchesAndAnAtomicRunDoesNot(t *testing.T) {
	batches := together(t, 188, func(b *driver, n int, push func(tx *broker.Tx, i int) error) error {
		for i := range n {
			if err := b.Do(func(tx *broker.Tx) error { return push(tx, i) }); err != nil {
				return err
			}
		}
		return nil
	})
	if len(batches) != 188 || batches[0] == batches[187] {
		t.Fatalf("the packets of single calls came in batches %v, want more than one", batches)
	}
	batches = together(t, 188, func(b *driver, n int, push func(tx *broker.Tx, i int) error) error {
		return atomicCall(b, func(tx *broker.Tx) error {
			for i := range n {
				if err := push(tx, i); err != nil {
					return err
				}
			}
			return nil
		})
	})
	if len(batches) != 188 || batches[0] != batches[187] {
		t.Fatalf("the packets of an atomic run came in batches %v, want one", batches)
	}
}

// atomicCall makes an atomic run.
func atomicCall(b *driver, fn func(tx *broker.Tx) error) error {
	return b.Do(func(tx *broker.Tx) error { return tx.Atomic(func() error { return fn(tx) }) })
}

func TestABatchIsFollowedByAnotherAlthoughAllThatFilledItCancelledItself(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	h.store.limits = content.Limits{MaxOps: 524288, MaxBytes: 67108864}
	h.restart()
	h.push("q", 1, 0, "first", "x") // the batch below then brings no definition of the queue
	h.pop(h.b.Attach(&inbox{}, groups), "q")
	h.barrier()
	const moves = 66_000 // more than a batch takes
	err := atomicCall(h.b, func(tx *broker.Tx) error {
		for i := range moves {
			err := tx.UpdatePriority(broker.UpdatePriorityRequest{
				Queue: []byte("q"), Key: []byte("k"), To: func(uint32, bool) uint32 { return 1 + uint32(i%2) },
			})
			if err != nil {
				return err
			}
		}
		_, _, err := tx.PopKey([]byte("q"), broker.Newest, nil, nil)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	h.b.round()
	h.do(func(tx *broker.Tx) error {
		if tx.Full() {
			t.Error("a push waits for a batch that is never committed")
		}
		return pushError(tx.Push(broker.PushRequest{Queue: []byte("q"), Priority: 1}))
	})
}

func TestSubscribersGetWhatAnAtomicRunLeavesBehind(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	waiting, late := &inbox{}, &inbox{}
	cw, cl := h.b.Attach(waiting, groups), h.b.Attach(late, groups)
	h.subscribe(cw, 5, "q")
	popped := &inbox{}
	cp := h.b.Attach(popped, groups)
	err := atomicCall(h.b, func(tx *broker.Tx) error {
		for _, p := range []string{"1", "2", "3"} {
			if err := pushError(tx.Push(broker.PushRequest{Queue: []byte("q"), Priority: 1, Key: []byte(p), Payload: []byte(p)})); err != nil {
				return err
			}
		}
		if err := reply(cp)(tx.Pop([]byte("q"), groups)); err != nil {
			return err
		}
		return errors.Join(tx.Subscribe(cl, []byte("q")), tx.Ready(cl, 1))
	})
	if err != nil {
		t.Fatal(err)
	}
	h.barrier()
	if got := fmt.Sprint(popped.got, late.got, waiting.got); got != "[[3]] [[2]] [[1]]" {
		t.Fatalf("the pop, the new subscriber and the waiting one got %s, want 3, 2 and 1", got)
	}
}

func TestASubscriberGetsTheBestOfTwoQueuesThatChangeTogether(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	only, first := &inbox{}, &inbox{}
	h.subscribe(h.b.Attach(first, groups), 1, "better")
	h.subscribe(h.b.Attach(only, groups), 1, "worse", "better")
	err := atomicCall(h.b, func(tx *broker.Tx) (err error) {
		for i, queue := range []string{"worse", "better", "better"} {
			p := broker.PushRequest{Queue: []byte(queue), Priority: uint32(9 - i), Key: []byte(fmt.Sprint(i)), Payload: []byte(fmt.Sprint(i))}
			err = errors.Join(err, pushError(tx.Push(p)))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	h.barrier()
	if got := fmt.Sprint(first.got, only.got); got != "[[2]] [[1]]" {
		t.Fatalf("who is ready longest, and who subscribes to both, got %s, want 2 and 1", got)
	}
}

func TestASubscriberOfTwoQueuesGetsTheirBestInTurns(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	got := &inbox{}
	h.subscribe(h.b.Attach(got, groups), 3, "a", "b")
	err := atomicCall(h.b, func(tx *broker.Tx) (err error) {
		for i, queue := range []string{"a", "b", "a", "b"} {
			p := broker.PushRequest{Queue: []byte(queue), Priority: uint32(9 - i), Key: []byte(fmt.Sprint(i)), Payload: []byte(fmt.Sprint(i))}
			err = errors.Join(err, pushError(tx.Push(p)))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	h.barrier()
	if got := fmt.Sprint(got.got); got != "[[3] [2] [1]]" {
		t.Fatalf("it got %s, want 3, 2 and 1", got)
	}
}

func TestPopsThatEmptyListsWhichExpireFitIntoABatch(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	h.store.limits = content.Limits{MaxOps: 1500, MaxBytes: 262144}
	h.restart()
	const lists = 3200
	name := func(i int) []byte { return fmt.Append(nil, "list ", i) }
	for i := range lists {
		err := atomicCall(h.b, func(tx *broker.Tx) error {
			err := pushEnd(tx, string(name(i)), broker.Newest, "x")
			_, e := tx.SetExpiry(name(i), startTime+1000)
			return errors.Join(err, e)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	c := h.b.Attach(&inbox{}, broker.Selection{})
	err := atomicCall(h.b, func(tx *broker.Tx) error {
		for i := range lists {
			if err := reply(c)(tx.Pop(name(i), broker.Selection{})); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	h.pushEnd("list 1", broker.Newest, "y")
	h.restart() // the batch was applied
	h.now.Add(2000)
	h.wantList("list 1", "y")
	h.restart()
	h.wantList("list 1", "y")
}
