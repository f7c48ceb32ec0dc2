package index

import (
	"testing"

	"github.com/holdfast-queue/holdfast/index/tree"
)

// What packets leave is given to those that come, and given back with the last of them.
func TestTheIndexKnowsWhatItHasFree(t *testing.T) {
	x := New()
	q := x.AddQueue()
	const n = 10 * tree.PageLen
	ids := make([]ID, n)
	for i := range ids {
		ids[i] = x.Push(Entry{Queue: q, Priority: 1, Seq: uint64(i + 1), Expiry: 1 << 40}, 0)
	}
	full := x.FreeBytes()
	for _, id := range ids[1:] {
		x.Remove(id)
	}
	if free := x.FreeBytes(); full > n || free < n*32 {
		t.Errorf("%d bytes are free of a full index, %d of one with a packet left", full, free)
	}
	x.Remove(ids[0])
	if free := x.FreeBytes(); free > 0 {
		t.Errorf("%d bytes are free of an empty index", free)
	}
}

func TestTheIndexKnowsWhatQueuesLeaveFree(t *testing.T) {
	x := New()
	const n = 10 * tree.PageLen
	queues, ids := make([]QueueID, n), make([]ID, n)
	for i := range queues {
		queues[i] = x.AddQueue()
		ids[i] = x.Push(Entry{Queue: queues[i], Priority: 1, Seq: uint64(i + 1)}, 0)
	}
	before := x.FreeBytes()
	for i, q := range queues[1:] {
		x.Remove(ids[i+1])
		if err := x.DropQueue(q); err != nil {
			t.Fatal(err)
		}
	}
	if free := x.FreeBytes(); free-before < n*200 {
		t.Errorf("%d bytes are free after %d queues, and were %d before", free, n-1, before)
	}
}
