package broker_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/storage/content"
)

func TestWhatHadExpiredAtAStartIsDeletedAndItsQueueStaysUntilThen(t *testing.T) {
	const n = 1500
	for name, do := range map[string]func(h *harness){
		"alone":   func(*harness) {},
		"dropped": func(h *harness) { h.drop("q") },
		"renamed": func(h *harness) {
			h.together(func(tx *broker.Tx) error { _, err := tx.Rename([]byte("q"), []byte("r")); return err })
		},
		"renamed onto": func(h *harness) {
			h.together(func(tx *broker.Tx) error { _, err := tx.Rename([]byte("other"), []byte("q")); return err })
		},
		"flushed": func(h *harness) { h.together(func(tx *broker.Tx) error { return tx.Flush(false) }) },
	} {
		for _, stays := range []int{0, 3} {
			t.Run(fmt.Sprintf("%s, %d stay", name, stays), func(t *testing.T) {
				h := newHarness(t)
				defer h.close()
				h.store.limits = smallBatches
				h.restart()
				for i := range n {
					h.push("q", uint32(1+i%3), time.Second, fmt.Sprint(i), "p")
				}
				for i := range stays {
					h.push("q", 2, 0, fmt.Sprint("stays", i), "p")
				}
				h.push("other", 1, 0, "k", "p")
				h.barrier()
				_ = h.b.Close()
				h.now.Add(2000) // milliseconds
				h.start()
				if left := h.crash(func() { do(h); h.pushEnd("more", broker.Newest, "v") }); left <= stays+1 {
					t.Fatalf("%d packets are stored when the process is killed: all is swept", left)
				}
				for id := range h.store.packets {
					if _, there := h.store.queues[id.Queue]; !there {
						t.Fatalf("packet %v is left without the definition of its queue", id)
					}
				}
				h.swept()
				want := stays + 2
				switch name {
				case "dropped", "renamed onto":
					want = 2
				case "flushed":
					want = 1
				}
				if packets, _ := h.stored(); packets != want {
					t.Errorf("%d packets are stored in the end, want %d", packets, want)
				}
				h.now.Add(1 << 30) // empty queues go
				h.barrier()
				h.barrier()
				if _, queues := h.stored(); queues > want {
					t.Errorf("%d queues are stored in the end, and %d packets", queues, want)
				}
			})
		}
	}
}

// A clock that was ahead at the start is put back while what had expired by it is swept.
func TestWhatComesAfterTheClockIsPutBackIsNotSwept(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	h.store.limits = smallBatches
	h.restart()
	for i := range 3000 {
		h.push("q", uint32(1+i%2*199), 30*time.Second, fmt.Sprint(i), "p")
	}
	h.barrier()
	_ = h.b.Close()
	h.now.Add(60_000)
	h.start()
	h.now.Add(-59_000)
	h.push("q", 100, 30*time.Second, "gone", "gone") // between what is swept first and last
	h.barrier()
	h.store.stale = maps.Clone(h.store.packets)
	maps.DeleteFunc(h.store.stale, func(id content.PacketID, _ []byte) bool { return id.Priority != 100 })
	h.pop(h.b.Attach(&inbox{}, groups), "q")
	h.push("q", 100, 30*time.Second, "new", "new")
	h.swept()
	for id := range h.store.packets {
		if id.Priority != 100 {
			t.Errorf("packet %v had expired, and stays", id)
		}
	}
	if len(h.store.packets) != 1 {
		t.Errorf("%d packets are stored, want the one that came since", len(h.store.packets))
	}
	h.restart()
	if s := h.b.Stats(); s.Packets != 1 {
		t.Errorf("a start knows %d packets, want 1", s.Packets)
	}
}
