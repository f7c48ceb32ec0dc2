package broker

import (
	"testing"

	"github.com/holdfast-queue/holdfast/index"
)

func TestATableOfQueuesShrinksWithItsQueues(t *testing.T) {
	const n = 2 * minShrinkTable
	table := queueTable{named: n, peak: n}
	queues := make([]*queue, n)
	for i := range queues {
		queues[i] = &queue{id: uint32(i + 1), ix: index.QueueID(i + 1)}
		table.add(queues[i])
	}
	for i, q := range queues {
		table.named--
		table.free(q)
		if table.has(q) || i+1 < n && table.of(queues[i+1].ix) != queues[i+1] {
			t.Fatalf("after %d of %d queues were dropped, the table finds the wrong ones", i+1, n)
		}
	}
	if table.peak > n/shrinkTable || len(table.all) > minShrinkTable {
		t.Fatalf("the empty table remembers %d names at its peak and %d numbers", table.peak, len(table.all))
	}
}
