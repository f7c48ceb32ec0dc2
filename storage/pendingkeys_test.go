package storage

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdfast-queue/holdfast/storage/content"
	"github.com/holdfast-queue/holdfast/storage/journal"
)

func TestPendingKeysAreFoundWhateverTheirNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		near := rapid.SampledFrom([]uint64{1, 64, 200, 1000, 5000, 1 << 40}).Draw(t, "near")
		number := func() uint64 {
			return rapid.SampledFrom([]uint64{0, 1000, middle - 100, middle, middle + 5000, math.MaxUint64 - 300}).Draw(t, "from") +
				rapid.Uint64Range(0, near).Draw(t, "number")
		}
		key := func() content.FixedKey {
			var b []byte
			switch n := number(); rapid.IntRange(0, 5).Draw(t, "kind") {
			case 0:
				b = content.AppendQueueKey(nil, uint32(n))
			case 1:
				b = content.AppendItemKey(nil, content.ValueID{ID: n})
			case 2:
				b = content.AppendStateKey(nil, content.NoteID{Identity: n, Kind: content.NoteKind(rapid.IntRange(0, 1).Draw(t, "note"))})
			default:
				b = content.AppendPacketKey(nil, content.PacketID{Queue: 1, Priority: rapid.Uint32Range(1, 2).Draw(t, "priority"), Seq: n})
			}
			return content.FixedKeyOf(b)
		}
		w, model := newWindow(journal.Mark{}), map[content.FixedKey]uint32{}
		var keys []content.FixedKey
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
		want := []content.FixedKey{content.FixedKeyOf([]byte(content.ControlKey))}
		for k := range model {
			want = append(want, k)
		}
		slices.SortFunc(want, func(a, b content.FixedKey) int { return bytes.Compare(a[:], b[:]) })
		for i, s := range w.sorted() {
			if s.key() != want[i] {
				t.Fatalf("%x comes as number %d, want %x", s.key(), i, want[i])
			}
		}
	})
}

// A batch may cancel any number of its packets. What comes behind them is found by its number all
// the same, and how far apart packets lie does not say how much memory they take.
func TestPendingKeysLieApartForLittle(t *testing.T) {
	for name, c := range map[string]struct {
		stride, gap, at uint64 // numbers from one to the next; one gap, and how many lie before it
		others          int    // how many are in the map at most
	}{
		"side by side":             {1, 0, 0, 0},
		"a gap at the beginning":   {1, 1_000, 3, 4},
		"a long one":               {1, 1_000_000_000, 3, 4},
		"a gap later on":           {1, 20_000, 5_000, 0},
		"one that is longer still": {1, 100_000, 5_000, 10_000},
		"each lies apart":          {8, 0, 0, 0},
		"each lies far apart":      {63, 0, 0, 100_000},
	} {
		const n = 100_000
		w := newWindow(journal.Mark{})
		for _, from := range []uint64{middle, middle - 1} {
			number := uint64(0)
			for i := range uint64(n) {
				id := content.PacketID{Queue: 1, Priority: 5, Seq: middle + number}
				if from < middle {
					id.Seq = from - number
				}
				k := content.FixedKeyOf(content.AppendPacketKey(nil, id))
				w.entries.add(&k)
				if number += c.stride; i == c.at {
					number += c.gap
				}
			}
		}
		places := 0
		for _, s := range w.entries.near {
			places += len(s.places)
		}
		if len(w.entries.others) > 2*c.others || places > 2*spread*(n+few) {
			t.Errorf("%s: %d entries in the map, %d places; at most %d and %d are expected",
				name, len(w.entries.others), places, 2*c.others, 2*spread*(n+few))
		}
	}
}
