package storage

import (
	"math"

	"github.com/holdfast-queue/holdfast/storage/content"
	"github.com/holdfast-queue/holdfast/storage/journal"
)

// slot says where the journal has the value of a key.
type slot struct {
	segment, offset uint32
	length          uint32
	expires         uint32 // Unix seconds; 0 is never, as is everything past 2106
	deleted         bool
	below           bool // what lies below the window may have the key
}

// window holds what the batches between two freezes leave: of each key its last entry. Payloads
// stay in the journal.
//
// A key that comes and goes within a window leaves nothing, and never was in a table. One that
// something below may have leaves its deletion.
type window struct {
	entries pendingKeys
	deleted deletedKeys // packets that only what lies below may have; an entry of the same key is newer
	bytes   int64       // what the entries take in tables
	logged  int64       // what the batches take of the journal
	control []byte      // the control record of the last batch
	from    journal.Mark
	upto    journal.Mark // the end of the last batch
	dead    int64        // bytes below that these entries hide, as far as they tell
	gone    int64        // bytes of earlier entries of the window that later ones hid
	graves  int64        // bytes of those that are deletions; writeOut sets it
	holes   bool         // batches are missing, which was accepted: something below may have any key

	done chan struct{} // closed once the window is in tables, or never will be
}

func newWindow(from journal.Mark) *window {
	return &window{entries: pendingKeys{lowest: math.MaxUint64}, from: from, upto: from, done: make(chan struct{})}
}

// leastBytes is the least that an entry counts as: the window's own memory for it.
const leastBytes = 64

// find returns what the window has of a key. Of a packet that it deletes it may know nothing.
func (w *window) find(key content.FixedKey) (s slot, known bool) {
	if p := w.entries.find(&key); p != nil {
		return p.slot, true
	}
	return s, false
}

func (p *pending) bytes() int64 {
	return max(int64(p.key[content.MaxKey])+int64(p.length)+content.EntryBytes, leastBytes)
}

// take takes the content of a batch in, whose entries begin overhead bytes behind the place of its
// record. It is the only way into a window, for Apply, for what another machine decided, and for a
// start. The last two do not know what each entry hides.
func (w *window) take(at journal.Place, overhead int, control []byte, body [][]byte, count uint32, hides []uint32, upto journal.Mark) error {
	i := -1
	err := content.EachEntry(body, count, func(e content.Entry) {
		i++
		key := content.FixedKeyOf(e.Key)
		p := w.entries.find(&key)
		s := slot{deleted: e.Kind.Deletes()}
		if p != nil {
			w.bytes -= p.bytes()
			w.gone += p.bytes()
			s.below = p.below
		} else if s.below = e.Kind != content.EntryNew || w.holes; s.below && hides != nil {
			w.dead += int64(hides[i]) // whether something below has the key is known by the first entry of it
		}
		switch {
		case s.deleted && !s.below:
			w.entries.remove(p)
			return
		case s.deleted && p == nil && key[1] == content.PacketPrefix[1]:
			w.deleted.add(key)
			w.bytes += leastBytes
			return
		case !s.deleted:
			s.segment, s.offset, s.length = at.Segment, at.Offset+uint32(overhead+e.At), uint32(len(e.Value))
			if e.Expires < 1<<32 {
				s.expires = uint32(e.Expires)
			}
		}
		if p == nil {
			p = w.entries.add(&key)
		}
		p.slot = s
		w.bytes += p.bytes()
	})
	w.control = append(w.control[:0], control...)
	w.upto = upto
	return err
}
