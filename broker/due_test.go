package broker_test

import (
	"testing"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/storage"
)

func TestWhatIsDueGoesOnAtOnceWhereTheDiskIsNearlyFull(t *testing.T) {
	h := newHarness(t)
	defer h.close()
	h.do(func(tx *broker.Tx) error {
		for range 5000 {
			if _, err := tx.Push(broker.PushRequest{Queue: []byte("q"), Priority: 1, Delay: 1000}); err != nil {
				return err
			}
		}
		return nil
	})
	h.store.level = storage.NoPush
	h.now.Add(1000)
	h.b.round()
	if next := h.b.Next(); next != 0 {
		t.Fatalf("the next slice is due in %d ms, want 0", next)
	}
}
