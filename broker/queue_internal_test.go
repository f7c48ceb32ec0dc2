package broker

import (
	"fmt"
	"testing"

	"github.com/holdfast-queue/holdfast/index"
)

func TestATableOfQueuesShrinksWithItsQueues(t *testing.T) {
	const n = 2 * minShrinkTable
	table := queueTable{byName: map[string]*queue{}}
	queues := make([]*queue, n)
	for i := range queues {
		queues[i] = &queue{name: fmt.Sprint(i), id: uint32(i + 1), ix: index.QueueID(i + 1)}
		table.add(queues[i])
	}
	for i, q := range queues {
		table.unname(q)
		table.free(q)
		if table.has(q) || i+1 < n && (table.find([]byte(fmt.Sprint(i+1))) != queues[i+1] || table.of(queues[i+1].ix) != queues[i+1]) {
			t.Fatalf("after %d of %d queues were dropped, the table finds the wrong ones", i+1, n)
		}
	}
	if len(table.byName) != 0 || table.peak > n/shrinkTable || len(table.all) > minShrinkTable || table.bytes != 0 {
		t.Fatalf("the empty table remembers %d names at its peak, %d numbers and %d bytes of names", table.peak, len(table.all), table.bytes)
	}
}
