package storage

import "testing"

func TestABatchGivesTheMemoryOfALargeCallBack(t *testing.T) {
	var b Batch
	for i := range uint64(2 * keepEntries) {
		b.Delete(PacketID{1, 1, i}, Removed{})
		b.DeleteDelivery(i, StoredDelivery)
	}
	b.Reset()
	if cap(b.entries) > keepEntries || b.at != nil {
		t.Errorf("an empty batch keeps %d entries", cap(b.entries))
	}
}
