package storage

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdfast-queue/holdfast/storage/journal"
)

func TestPendingKeysAreFoundWhateverTheirNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		near := rapid.SampledFrom([]uint64{1, 64, 65, 200, 1 << 40}).Draw(t, "near")
		number := func() uint64 {
			return rapid.SampledFrom([]uint64{0, 1000, middle - 100, middle, middle + 5000, math.MaxUint64 - 300}).Draw(t, "from") +
				rapid.Uint64Range(0, near).Draw(t, "number")
		}
		key := func() pendingKey {
			var b []byte
			switch n := number(); rapid.IntRange(0, 5).Draw(t, "kind") {
			case 0:
				b = appendQueueKey(nil, uint32(n))
			case 1:
				b = appendItemKey(nil, ValueID{ID: n})
			case 2:
				b = appendStateKey(nil, NoteID{Identity: n, Kind: NoteKind(rapid.IntRange(0, 1).Draw(t, "note"))})
			default:
				b = appendPacketKey(nil, PacketID{1, rapid.Uint32Range(1, 2).Draw(t, "priority"), n})
			}
			return pendingKeyOf(b)
		}
		w, model := newWindow(journal.Mark{}), map[pendingKey]uint32{}
		var keys []pendingKey
		for i := range uint32(rapid.IntRange(0, 300).Draw(t, "steps")) {
			k := key()
			if len(keys) > 0 && rapid.Bool().Draw(t, "again") {
				k = rapid.SampledFrom(keys).Draw(t, "key")
			}
			p := w.entries.find(&k)
			if length, there := model[k]; there != (p != nil) || there && (p.key != k || p.length != length) {
				t.Fatalf("%x: found %+v, want length %d, %v", k, p, length, there)
			}
			switch {
			case p == nil:
				p = w.entries.add(&k)
				keys = append(keys, k)
				fallthrough
			case rapid.Bool().Draw(t, "changes"):
				p.length, model[k] = i, i
			default:
				w.entries.remove(p)
				delete(model, k)
			}
		}
		for k := range model {
			if p := w.entries.find(&k); p == nil || p.length != model[k] {
				t.Fatalf("%x: found %+v", k, p)
			}
		}
		want := []pendingKey{pendingKeyOf([]byte(controlKey))}
		for k := range model {
			want = append(want, k)
		}
		slices.SortFunc(want, func(a, b pendingKey) int { return bytes.Compare(a[:], b[:]) })
		for i, s := range w.sorted() {
			if s.key() != want[i] {
				t.Fatalf("%x comes as number %d, want %x", s.key(), i, want[i])
			}
		}
	})
}
