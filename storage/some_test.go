package storage

import (
	"slices"
	"testing"

	"github.com/holdfast-queue/holdfast/storage/content"
)

func TestSlicesOfAQueueShowEachPacketOnce(t *testing.T) {
	s := smallStore(t, t.TempDir())
	var want []content.PacketID
	var puts, deletes content.Batch
	for i := range 12_000 { // two runs that are deleted are longer than a slice
		id := content.PacketID{Queue: uint32(2 + i%2), Priority: uint32(i % 3), Seq: uint64(i)}
		puts.Put(id, &content.Packet{Expiry: int64(1 + i), Payload: make([]byte, i%7)})
		if keep := i%1000 == 1; !keep {
			deletes.Delete(id, content.Removed{Expires: true})
		} else if id.Queue == 3 {
			want = append(want, id)
		}
	}
	applied(t, s, &puts)
	applied(t, s, &deletes)
	applied(t, s, one(1, content.Packet{}))
	settled(t, s)
	slices.SortFunc(want, content.PacketID.Compare)
	for _, n := range []int{1, 5, 1000} {
		var got []content.PacketID
		for next, more := (content.PacketID{Queue: 3}), true; more; {
			var err error
			shown := 0
			next, more, err = s.Some(next, n, func(id content.PacketID, m *content.Meta) {
				shown++
				got = append(got, id)
				if m.Expiry != int64(1+id.Seq) {
					t.Errorf("packet %v expires at %d", id, m.Expiry)
				}
			})
			if err != nil || shown > n {
				t.Fatalf("a slice of %d shows %d, %v", n, shown, err)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("slices of %d show %v, want %v", n, got, want)
		}
	}
}
