package storage

import (
	"bytes"
	"slices"

	"github.com/holdfast-queue/holdfast/storage/journal"
)

// maxKey is the length of the longest key, in bytes.
const maxKey = 19

// pendingKey is a key and, in the last byte, its length.
type pendingKey [maxKey + 1]byte

func pendingKeyOf(key []byte) (k pendingKey) {
	k[maxKey] = byte(copy(k[:maxKey], key))
	return k
}

func (k *pendingKey) bytes() []byte { return k[:k[maxKey]] }

// slot says where the journal has the value of a key. It has no pointer, so a map of a million
// costs a garbage collection nothing.
type slot struct {
	segment, offset uint32
	length          uint32
	expires         uint32 // Unix seconds; 0 is never, as is everything past 2106
	deleted         bool
	below           bool // what lies below the window may have the key
}

// window is what the batches between two freezes leave: of each key its last entry. Payloads stay
// in the journal.
//
// A key that comes and goes within a window leaves nothing, and never was in a table. One that
// something below may have leaves its deletion.
type window struct {
	entries map[pendingKey]slot
	bytes   int64  // what the entries take in tables
	logged  int64  // what the batches take of the journal
	control []byte // the control record of the last batch
	from    journal.Mark
	upto    journal.Mark // the end of the last batch
	hidden  uint64       // entries below that these entries hide
	holes   bool         // batches are missing, which was accepted: something below may have any key

	done chan struct{} // closed once the window is in tables, or never will be

	// snapshots get their view when the window is in tables and no later one is. The layers guard
	// them.
	snapshots []*Snapshot
}

func newWindow(from journal.Mark) *window {
	return &window{entries: make(map[pendingKey]slot), from: from, upto: from, done: make(chan struct{})}
}

// entryBytes is what an entry takes in a table beside its key and value, and leastBytes what it
// counts at least: its place in the map.
const (
	entryBytes = 16
	leastBytes = 64
)

func (s slot) bytes(key pendingKey) int64 {
	return max(int64(key[maxKey])+int64(s.length)+entryBytes, leastBytes)
}

// take takes the content of a batch in, whose entries begin so many bytes behind the place of its
// record. It is the only way into a window, for Apply and for a start.
func (w *window) take(p journal.Place, overhead int, control []byte, body [][]byte, count uint32, upto journal.Mark) error {
	err := eachEntry(body, count, func(e entry) {
		key := pendingKeyOf(e.key)
		old, there := w.entries[key]
		if there {
			w.bytes -= old.bytes(key)
		}
		// Whether something below has the key is known by the first entry of it.
		below := old.below
		if !there {
			below = e.kind != entryNew || w.holes
		}
		if e.kind == entryDelete && !below {
			delete(w.entries, key)
			return
		}
		s := slot{below: below, deleted: e.kind == entryDelete}
		if !s.deleted {
			s.segment, s.offset, s.length = p.Segment, p.Offset+uint32(overhead+e.at), uint32(len(e.value))
			if e.expires < 1<<32 {
				s.expires = uint32(e.expires)
			}
		}
		if below && !there {
			w.hidden++
		}
		w.entries[key] = s
		w.bytes += s.bytes(key)
	})
	w.control = append(w.control[:0], control...)
	w.upto = upto
	return err
}

// sorted returns the keys, and one more, in the order of tables: one that another begins with comes
// first, since what follows it is zero.
func (w *window) sorted(more pendingKey) []pendingKey {
	keys := append(make([]pendingKey, 0, len(w.entries)+1), more)
	for key := range w.entries {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b pendingKey) int { return bytes.Compare(a[:], b[:]) })
	return keys
}
