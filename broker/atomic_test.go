package broker_test

import (
	"errors"
	"fmt"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/storage"
)

// together lets run push n packets to the queue "pair", when the batch behind a commit that is held
// up is all but full. It returns the numbers of the batches that they came in.
func together(t *testing.T, n int, run func(b *broker.Broker, n int, push func(tx *broker.Tx, i int) error) error) (batches []int) {
	h := newHarness(t)
	defer h.close()
	h.store.limits = storage.Limits{MaxOps: 800, MaxBytes: 1 << 20, MaxRecord: 64 << 10, MaxDeletes: 1000}
	h.restart()
	seen := 0
	h.store.mu.Lock()
	h.store.after = func(b *storage.Batch) {
		seen++
		b.Each(func(op storage.Op) {
			if op.Kind == storage.OpPut && strings.Contains(string(op.Record), "of the pair") {
				batches = append(batches, seen)
			}
		})
	}
	h.store.mu.Unlock()
	g := h.gate()
	h.push("other", 1, 0, "opens a commit", "x")
	<-g.entered
	for i := range 399 { // of the 400 that fill the batch
		h.push("other", 1, 0, fmt.Sprint(i), "x")
	}
	done, started := make(chan error), make(chan struct{})
	go func() {
		close(started)
		done <- run(h.b, n, func(tx *broker.Tx, i int) error {
			return pushError(tx.Push(broker.PushRequest{Queue: []byte("pair"), Priority: 1, Key: []byte(fmt.Sprint(i)), Payload: []byte("of the pair")}))
		})
	}()
	<-started
	h.ungate()
	g.leave <- nil
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	h.barrier()
	return batches
}

func TestSingleCallsMayComeInTwoBatchesAndAnAtomicRunDoesNot(t *testing.T) {
	batches := together(t, 188, func(b *broker.Broker, n int, push func(tx *broker.Tx, i int) error) error {
		for i := range n {
			if err := call(b, func(tx *broker.Tx) error { return push(tx, i) }); err != nil {
				return err
			}
		}
		return nil
	})
	if len(batches) != 188 || batches[0] == batches[187] {
		t.Fatalf("the packets of single calls came in batches %v, want more than one", batches)
	}
	batches = together(t, 188, func(b *broker.Broker, n int, push func(tx *broker.Tx, i int) error) error {
		return atomicCall(b, broker.Room{Records: 2 * n, Bytes: 100 * n}, func(tx *broker.Tx) error {
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

// atomicCall makes an atomic run, again and again until the open batch has room for it.
func atomicCall(b *broker.Broker, r broker.Room, fn func(tx *broker.Tx) error) error {
	return call(b, func(tx *broker.Tx) error { return tx.Atomic(r, func() error { return fn(tx) }) })
}

func TestABatchIsFollowedByAnotherAlthoughAllThatFilledItCancelledItself(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	h.store.limits = storage.Limits{MaxOps: 1 << 20, MaxBytes: 1 << 28, MaxRecord: 64 << 10, MaxDeletes: 1 << 20}
	h.restart()
	h.push("q", 1, 0, "first", "x") // the batch below then brings no definition of the queue
	h.pop(h.b.Attach(&inbox{}, groups), "q")
	h.barrier()
	const moves = 66_000 // more than a batch takes
	err := atomicCall(h.b, broker.Room{Records: 2 * moves, Bytes: 2 * moves, Deletes: 1}, func(tx *broker.Tx) error {
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
	pushed := make(chan error, 1)
	go func() {
		pushed <- call(h.b, func(tx *broker.Tx) error {
			return pushError(tx.Push(broker.PushRequest{Queue: []byte("q"), Priority: 1}))
		})
	}()
	select {
	case err := <-pushed:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("a push waits for a batch that is never committed")
	}
}

func TestAnAtomicRunAsLargeAsTheLimitsAllowFitsIntoABatch(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	h.store.limits = storage.Limits{MaxOps: 1600, MaxBytes: 4 << 20, MaxRecord: 200 << 10, MaxDeletes: 3000}
	h.restart()
	refused := func(r broker.Room) bool {
		err := h.b.Do(func(tx *broker.Tx) error { return tx.Atomic(r, func() error { return nil }) })
		return errors.Is(err, broker.ErrTooLargeForBatch)
	}
	const most = 776 // about what MaxOps allows, two for each
	for _, packets := range []int{40, most / 2} {
		bytes := sort.Search(8<<20, func(n int) bool { return refused(broker.Room{Records: 2 * packets, Bytes: n + 1}) })
		each := bytes/packets - 8
		for i := range 3 { // alone, and behind what others left in the batch
			h.push("other", 1, 0, fmt.Sprint(i), "x")
			err := atomicCall(h.b, broker.Room{Records: 2 * packets, Bytes: bytes}, func(tx *broker.Tx) error {
				for k := range packets {
					r := broker.PushRequest{Queue: fmt.Appendf(nil, "%4d%4d", i, k), Priority: 1, Payload: make([]byte, each)}
					if err := pushError(tx.Push(r)); err != nil {
						return fmt.Errorf("push %d of %d: %w", k, packets, err)
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		h.barrier() // the store refuses a batch over its limits
	}
	if !refused(broker.Room{Records: 1600}) || !refused(broker.Room{Deletes: 3001}) {
		t.Fatal("more than the limits was let through")
	}
}

func TestACallBeyondWhatWasAnnouncedIsRefusedAndChangesNothing(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	c := h.b.Attach(&inbox{}, groups)
	for range 3 {
		h.push("group", 1, 0, "k", "x")
		h.push("bare", 1, 0, "k", "")
	}
	push := func(tx *broker.Tx, bytes int) error {
		return pushError(tx.Push(broker.PushRequest{Queue: []byte("q"), Priority: 1, Payload: make([]byte, bytes)}))
	}
	update := func(tx *broker.Tx, key string) error {
		return tx.UpdatePriority(broker.UpdatePriorityRequest{
			Queue: []byte("q"), Key: []byte(key), To: func(uint32, bool) uint32 { return 1 },
		})
	}
	for _, row := range []struct {
		name  string
		done  int // packets more than before
		calls []func(tx *broker.Tx) error
	}{
		{"a packet too many", 2, []func(tx *broker.Tx) error{
			func(tx *broker.Tx) error { return push(tx, 1) },
			func(tx *broker.Tx) error { return push(tx, 1) },
			func(tx *broker.Tx) error { return push(tx, 1) },
		}},
		{"a byte too many", 0, []func(tx *broker.Tx) error{
			func(tx *broker.Tx) error { return push(tx, 100) },
		}},
		{"a group too large", 0, []func(tx *broker.Tx) error{
			func(tx *broker.Tx) error { return tx.Pop(c, []byte("group"), groups, 0) },
		}},
		{"a key of too many", 0, []func(tx *broker.Tx) error{
			func(tx *broker.Tx) error { _, _, err := tx.PopKey([]byte("bare"), broker.Oldest, nil, nil); return err },
		}},
		{"an update too many", 2, []func(tx *broker.Tx) error{
			func(tx *broker.Tx) error { return update(tx, "c") },
			func(tx *broker.Tx) error { return update(tx, "a") },
			func(tx *broker.Tx) error { return update(tx, "b") },
		}},
	} {
		before := h.b.Stats().Packets
		err := atomicCall(h.b, broker.Room{Records: 4, Bytes: 100, Deletes: 2}, func(tx *broker.Tx) error {
			for i, call := range row.calls {
				if err := call(tx); err != nil {
					if i < len(row.calls)-1 {
						t.Errorf("%s: call %d was refused: %v", row.name, i, err)
					}
					return err
				}
			}
			return nil
		})
		if !errors.Is(err, broker.ErrNotReserved) {
			t.Errorf("%s: %v, want that it is refused", row.name, err)
		}
		if after := h.b.Stats().Packets; after != before+row.done {
			t.Errorf("%s: %d packets are queued, want %d", row.name, after, before+row.done)
		}
	}
}

func TestAnElasticRunGetsWhatTheBatchHas(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	pushed := 0
	err := atomicCall(h.b, broker.Room{Records: 1, Elastic: true}, func(tx *broker.Tx) error {
		for {
			err := pushError(tx.Push(broker.PushRequest{Queue: []byte("q"), Priority: 1, Payload: []byte("x")}))
			if err != nil {
				return err
			}
			pushed++
		}
	})
	if !errors.Is(err, broker.ErrNotReserved) || pushed < 100 {
		t.Errorf("%d pushes, then %v", pushed, err)
	}
	h.barrier() // the store refuses a batch over its limits
	if n := h.b.Stats().Packets; n != pushed {
		t.Errorf("%d packets are queued, want %d", n, pushed)
	}
}

func TestSubscribersGetWhatAnAtomicRunLeavesBehind(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	waiting, late := &inbox{}, &inbox{}
	cw, cl := h.b.Attach(waiting, groups), h.b.Attach(late, groups)
	h.subscribe(cw, 5, "q")
	popped := &inbox{}
	cp := h.b.Attach(popped, groups)
	err := atomicCall(h.b, broker.Room{Records: 8, Bytes: 100, Deletes: 1}, func(tx *broker.Tx) error {
		for _, p := range []string{"1", "2", "3"} {
			if err := pushError(tx.Push(broker.PushRequest{Queue: []byte("q"), Priority: 1, Key: []byte(p), Payload: []byte(p)})); err != nil {
				return err
			}
		}
		if err := tx.Pop(cp, []byte("q"), groups, 0); err != nil {
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

func TestPopsThatEmptyListsWhichExpireFitIntoABatch(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	h.store.limits = storage.Limits{MaxOps: 3000, MaxBytes: 1 << 20, MaxRecord: 64 << 10, MaxDeletes: 6000}
	h.restart()
	const lists = 3200
	name := func(i int) []byte { return fmt.Append(nil, "list ", i) }
	for i := range lists {
		err := atomicCall(h.b, broker.Room{Records: 3, Bytes: 100}, func(tx *broker.Tx) error {
			err := pushEnd(tx, string(name(i)), broker.Newest, "x")
			_, e := tx.SetExpiry(name(i), startTime+1000)
			return errors.Join(err, e)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	c := h.b.Attach(&inbox{}, broker.Selection{})
	err := atomicCall(h.b, broker.Room{Deletes: lists}, func(tx *broker.Tx) error {
		for i := range lists {
			if err := tx.Pop(c, name(i), broker.Selection{}, 0); err != nil {
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

func TestAsManyLargeStringsAsTheLimitsAllowAreDeletedInOneBatch(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	h.store.limits = storage.Limits{MaxOps: 500, MaxBytes: 1 << 20, MaxRecord: 64 << 10, MaxDeletes: 1000}
	h.restart()
	name := func(i int) []byte { return fmt.Append(nil, "string ", i) }
	value := make([]byte, 2000)
	most := sort.Search(1000, func(n int) bool {
		err := h.b.Do(func(tx *broker.Tx) error { return tx.Atomic(broker.Room{Records: n + 1}, func() error { return nil }) })
		return errors.Is(err, broker.ErrTooLargeForBatch)
	})
	for i := range most {
		err := atomicCall(h.b, broker.Room{Records: 1, Bytes: 3000}, func(tx *broker.Tx) error { return tx.SetString(name(i), value, 0) })
		if err != nil {
			t.Fatal(err)
		}
	}
	err := atomicCall(h.b, broker.Room{Records: most}, func(tx *broker.Tx) error {
		for i := range most {
			if existed, err := tx.Delete(name(i)); err != nil || !existed {
				return fmt.Errorf("string %d of %d: existed %v, %v", i, most, existed, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	h.restart() // the batch was applied
}
