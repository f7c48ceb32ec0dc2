package broker_test

import (
	"testing"

	"github.com/holdfast-queue/holdfast/broker"
)

// What is pushed and popped between two batches is in none of them.
func TestAnIDIsNotGivenAgainWhereItsPacketNeverCameToDisk(t *testing.T) {
	for name, left := range map[string]bool{"nothing else is written": false, "another packet is": true} {
		w := newWork(t)
		given, batches := make(map[broker.ID]bool), w.store.applied
		push := func() {
			for range 10 {
				w.do(func(tx *broker.Tx) error {
					id, err := tx.Push(broker.PushRequest{Queue: []byte("q"), Payload: []byte("x")})
					if err == nil && given[id] {
						t.Errorf("%s: id %v is given twice", name, id)
					}
					given[id] = true
					if err == nil {
						_, err = tx.DeletePackets([]byte("q"), []broker.ID{id})
					}
					return err
				})
			}
			if left {
				w.push("other", 0, 0, "", "x")
			}
			w.barrier()
		}
		for range 3 {
			push()
			w.restarted() // as after a kill
		}
		if n := w.store.applied - batches; !left && n > 10 {
			t.Errorf("%d batches tell of 30 ids", n)
		}
	}
}
