package broker_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/storage"
)

func TestNumbersOfQueuesGoOnFromOneWhenAllWereUsedAndNoneIsTheNumberOfTwo(t *testing.T) {
	h := newHarness(t)
	var names []string
	push := func(n int) {
		for range n {
			name := fmt.Sprint("queue ", len(names))
			names = append(names, name)
			h.push(name, 1, 0, "", name)
		}
		h.restart()
	}
	push(3)
	h.store.control.NextQueue = math.MaxUint32 - 2
	h.restart()
	push(10)
	push(10) // the numbers of those before them are known from the disk only
	if got := h.store.control.NextQueue; got != math.MaxUint32 {
		t.Errorf("the mark of the next queue is %d, and was at most its last", got)
	}
	if len(h.store.queues) != len(names) || h.store.queues[0] != nil || h.store.queues[math.MaxUint32] != nil {
		t.Errorf("%d queues are defined, want %d, none of the numbers 0 and %d", len(h.store.queues), len(names), uint32(math.MaxUint32))
	}
	state, err := recovery.Restore(h.store, recovery.Options{})
	if err != nil || len(state.Report.Findings) > 0 || state.Report.Packets != len(names) {
		t.Fatalf("%+v, %v", state.Report, err)
	}
	for id, rec := range h.store.packets {
		var p storage.Packet
		if err := storage.DecodeRecord(rec, &p); err != nil || string(p.Payload) != string(h.store.queues[id.Queue]) {
			t.Errorf("the packet of %q lies in %q: %v", p.Payload, h.store.queues[id.Queue], err)
		}
	}
}
