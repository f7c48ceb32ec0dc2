package broker

import (
	"testing"

	"github.com/holdfast-queue/holdfast/index"
)

func TestATableOfQueuesShrinksWithItsQueues(t *testing.T) {
	const n = 2 * minShrinkTable
	table := queueTable{} // of queues that a flush has dropped: none has a name
	queues := make([]*queue, n)
	for i := range queues {
		queues[i] = &queue{id: uint32(i + 1), ix: index.QueueID(i + 1)}
		table.add(queues[i])
	}
	copies := 0
	for i, q := range queues {
		first := &table.all[0]
		table.free(q)
		if table.has(q) || i+1 < n && table.of(queues[i+1].ix) != queues[i+1] {
			t.Fatalf("after %d of %d queues were dropped, the table finds the wrong ones", i+1, n)
		}
		if len(table.all) == 0 || first != &table.all[0] {
			copies++
		}
	}
	if copies > 1 || cap(table.all) > minShrinkTable {
		t.Fatalf("the table was copied %d times, the empty one has room for %d numbers", copies, cap(table.all))
	}
}
