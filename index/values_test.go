package index

import (
	"slices"
	"testing"
)

func TestTheFirstSearchOfAShortListLooksAtNoOther(t *testing.T) {
	x := New()
	short := x.AddQueue()
	for i := range 50_000 {
		q := short
		if i == 200 {
			q = x.AddQueue()
		}
		if i >= 200 {
			q = short + 1
		}
		if x.Push(Entry{Queue: q, Priority: 128, Seq: uint64(i + 1), Hash: uint64(i+1) << 20}, 0) == 0 {
			t.Fatal("not pushed")
		}
	}
	if n, more := x.BuildValues(short, 4096); n != 200 || more {
		t.Fatalf("a search of 200 packets needs a slice of %d, and more: %v", n, more)
	}
}

func TestASearchOfPacketsThatAllHaveKeysIsPreparedOnce(t *testing.T) {
	for _, n := range []int{100, 10_000} {
		x := New()
		q := x.AddQueue()
		for i := range n {
			if x.Push(Entry{Queue: q, Priority: 128, Seq: uint64(i + 1), Key: []byte("key"), Hash: 1 << 20}, 0) == 0 {
				t.Fatal("not pushed")
			}
		}
		for more := true; more; {
			_, more = x.BuildValues(q, 4096)
		}
		if u := x.queues.At(uint32(q)); u.values == nil {
			t.Fatalf("%d packets are searched one by one each time", n)
		}
		if err := x.Check(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestATreeOfValuesIsMadeWhilePacketsComeAndGo(t *testing.T) {
	x := New()
	q, other := x.AddQueue(), x.AddQueue()
	seq := uint64(0)
	var ids []ID
	push := func(queue QueueID) {
		seq++
		id := x.Push(Entry{Queue: queue, Priority: 128, Seq: seq, Hash: 1<<40 + seq%5<<32}, 0)
		if queue == q {
			ids = append(ids, id)
		}
	}
	remove := func(i int) {
		x.Remove(ids[i])
		ids = slices.Delete(ids, i, i+1)
	}
	for range 100 {
		push(q)
		push(other)
	}
	for slices, more := 0, true; more; slices++ {
		if _, more = x.BuildValues(q, 7); more != (x.Unsearched(q) > 0) {
			t.Fatalf("more to do: %v", more)
		}
		if slices == 10 || slices == 20 {
			remove(0) // its number is in the tree, and a new packet gets it
			push(q)
			push(other)
			remove(len(ids) / 2) // its number is not yet
			push(q)
			x.SetState(ids[1], Delayed, 99)
			x.SetState(ids[len(ids)/2+1], Delayed, 99)
			x.SetState(ids[1], Ready, 0)
		}
		if err := x.Check(); err != nil {
			t.Fatal(err)
		}
	}
	if u := x.queues.At(uint32(q)); u.values == unsearchable || int(u.values.Count) != u.ready {
		t.Fatalf("the tree has %d packets, want %d", u.values.Count, u.ready)
	}
	if x.queues.At(uint32(other)).values != nil {
		t.Fatal("the other queue has a tree")
	}
}
