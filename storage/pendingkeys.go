package storage

import (
	"cmp"
	"encoding/binary"
	"slices"
	"sync"

	"github.com/holdfast-queue/holdfast/storage/content"
)

// pending is a key that a window has, and what it knows of it.
type pending struct {
	key content.FixedKey // without bytes: its place is free
	slot
}

// pendingKeys are the keys of a window, in about the order in which they came. They lie in pieces
// that never move, and without a pointer: a million of them costs a garbage collection nothing.
//
// A map of all keys would miss all caches at each look. Most are found by their numbers instead,
// which are given out one by one: the sequences of packets, upwards at the new end and downwards at
// the old one, their identities, and the numbers of heads.
type pendingKeys struct {
	pieces [][]pending
	free   []uint32 // places that are free again
	near   [sides]sequence
	others map[content.FixedKey]uint32 // the places of all other keys

	// The sequences of the packets in others. Most of what is popped from a long queue lies outside.
	lowest, highest uint64
}

// The sides on which numbers are given out.
const (
	packetsUp = iota
	packetsDown
	statesUp
	statesDown
	heads
	sides
	noSide = -1
)

// sequence is the places of keys whose numbers lie side by side, or not far apart.
type sequence struct {
	first  uint64
	places []uint32 // by the distance from first, and 1 more; 0 is none
	taken  uint64   // how many keys of its side there were
}

const (
	piece = 1 << 10 // entries in one
	// spread is how many places a key may have on average. Keys behind a longer gap wait in the map,
	// until there are enough to make the gap short.
	spread, few = 8, 64
	// middle is where sequences and identities begin, upwards and downwards.
	middle = 1 << 63
)

func (e *pendingKeys) at(place uint32) *pending { return &e.pieces[place/piece][place%piece] }

// sideOf returns where the number of a key belongs: noSide if it has none that is asked for.
func sideOf(k *content.FixedKey) (side int, number uint64) {
	up := 0
	switch {
	case k[1] == content.PacketPrefix[1]:
		number = binary.BigEndian.Uint64(k[content.PacketKeyLen-8:])
	case k[1] == content.StatePrefix[1] && k[content.MaxKey] == content.StateKeyLen:
		number, up = binary.BigEndian.Uint64(k[2:]), statesUp
	case k[1] == content.HeadPrefix[1]:
		return heads, binary.BigEndian.Uint64(k[2:])
	default:
		return noSide, 0
	}
	if number < middle {
		up++
	}
	return up, number
}

// distance is how far a number is from the first one of its side.
func (e *pendingKeys) distance(side int, number uint64) uint64 {
	if side == packetsDown || side == statesDown {
		return e.near[side].first - number
	}
	return number - e.near[side].first
}

// find returns the entry of a key, nil if there is none.
func (e *pendingKeys) find(key *content.FixedKey) *pending {
	if side, number := sideOf(key); side != noSide {
		s := &e.near[side]
		if i := e.distance(side, number); i < uint64(len(s.places)) && s.places[i] != 0 {
			if p := e.at(s.places[i] - 1); p.key == *key {
				return p
			}
		}
		if side <= packetsDown && (number < e.lowest || number > e.highest) {
			return nil
		}
	}
	if place, there := e.others[*key]; there {
		return e.at(place)
	}
	return nil
}

// add makes the entry of a key that has none.
func (e *pendingKeys) add(key *content.FixedKey) *pending {
	place := e.place()
	p := e.at(place)
	*p = pending{key: *key} // its memory may be of an earlier window
	if side, number := sideOf(key); side == noSide || !e.addNear(side, number, place) {
		e.addOther(*key, place)
	}
	return p
}

func (e *pendingKeys) addOther(key content.FixedKey, place uint32) {
	if e.others == nil {
		e.others = make(map[content.FixedKey]uint32)
	}
	e.others[key] = place
	if side, number := sideOf(&key); side == packetsUp || side == packetsDown {
		e.lowest, e.highest = min(e.lowest, number), max(e.highest, number)
	}
}

// place returns one that is free.
func (e *pendingKeys) place() uint32 {
	if n := len(e.free); n > 0 {
		place := e.free[n-1]
		e.free = e.free[:n-1]
		return place
	}
	last := len(e.pieces) - 1
	if last < 0 || len(e.pieces[last]) == piece {
		e.pieces = append(e.pieces, pendingPieces.Get().(*[piece]pending)[:0])
		last++
	}
	e.pieces[last] = e.pieces[last][:len(e.pieces[last])+1]
	return uint32(last*piece + len(e.pieces[last]) - 1)
}

// addNear notes the place of a key by its number, unless that lies apart, or another key has it: a
// packet that moved to another priority.
func (e *pendingKeys) addNear(side int, number uint64, place uint32) bool {
	s, i := &e.near[side], e.distance(side, number)
	s.taken++
	if i >= spread*(s.taken+few) && s.taken <= few { // the first ones lie apart themselves
		for _, old := range s.places {
			if old != 0 {
				e.addOther(e.at(old-1).key, old-1)
			}
		}
		s.first, s.places, i = number, s.places[:0], 0
	}
	switch n := uint64(len(s.places)); {
	case i >= spread*(s.taken+few):
		return false
	case i >= n:
		if s.places == nil {
			if kept, ok := keptPlaces[side].Get().(*[]uint32); ok {
				s.places = *kept
			}
		}
		s.places = append(s.places, make([]uint32, i+1-n)...)
	case s.places[i] != 0:
		return false
	}
	s.places[i] = place + 1
	return true
}

// remove takes an entry out.
func (e *pendingKeys) remove(p *pending) {
	side, number := sideOf(&p.key)
	place, near := uint32(0), false
	if side != noSide {
		s := &e.near[side]
		if i := e.distance(side, number); i < uint64(len(s.places)) && s.places[i] != 0 && e.at(s.places[i]-1) == p {
			place, near, s.places[i] = s.places[i]-1, true, 0
		}
	}
	if !near {
		place = e.others[p.key]
		delete(e.others, p.key)
	}
	*p = pending{}
	e.free = append(e.free, place)
}

// deletedKeys are keys in pieces, so that none is copied as they grow.
type deletedKeys [][]content.FixedKey

func (d *deletedKeys) add(key content.FixedKey) {
	last := len(*d) - 1
	if last < 0 || len((*d)[last]) == piece {
		*d = append(*d, deletedPieces.Get().(*[piece]content.FixedKey)[:0])
		last++
	}
	(*d)[last] = append((*d)[last], key)
}

// The memory of windows that are in tables. Else each would leave all of its own to the collector.
// A batch would wait, too, while places that grow are copied to fresh memory.
var (
	pendingPieces = sync.Pool{New: func() any { return new([piece]pending) }}
	deletedPieces = sync.Pool{New: func() any { return new([piece]content.FixedKey) }}
	keptPlaces    [sides]sync.Pool // of *[]uint32
	sortables     sync.Pool        // of *[]sortable
)

// release gives up the memory of a window that nobody reads any more.
func (w *window) release() {
	for _, entries := range w.entries.pieces {
		pendingPieces.Put((*[piece]pending)(entries[:piece]))
	}
	for _, keys := range w.deleted {
		deletedPieces.Put((*[piece]content.FixedKey)(keys[:piece]))
	}
	for side, s := range w.entries.near {
		if places := s.places[:0]; cap(places) > 0 {
			keptPlaces[side].Put(&places)
		}
	}
	w.entries, w.deleted = pendingKeys{}, nil
}

// sortable is a key in a form that is quickly compared, and the place of its entry.
type sortable struct {
	a, b  uint64
	c     uint32
	place uint32
}

// What stands for a place.
const (
	noPlace      = 1<<32 - 1 // the key is deleted
	controlPlace = 1<<32 - 2 // it is the control record's
)

func sortableOf(k *content.FixedKey, place uint32) sortable {
	return sortable{binary.BigEndian.Uint64(k[:]), binary.BigEndian.Uint64(k[8:]), binary.BigEndian.Uint32(k[16:]), place}
}

func (s *sortable) key() (k content.FixedKey) {
	binary.BigEndian.PutUint64(k[:], s.a)
	binary.BigEndian.PutUint64(k[8:], s.b)
	binary.BigEndian.PutUint32(k[16:], s.c)
	return k
}

func (s sortable) compare(o sortable) int {
	return cmp.Or(cmp.Compare(s.a, o.a), cmp.Compare(s.b, o.b), cmp.Compare(s.c, o.c))
}

// sorted returns the keys of the window and of the control record, in the order of tables: one that
// another begins with comes first, since what follows it is zero. The slice may go to sortables.
func (w *window) sorted() []sortable {
	n := 1
	for _, keys := range w.deleted {
		n += len(keys)
	}
	for _, entries := range w.entries.pieces {
		n += len(entries)
	}
	control := content.FixedKeyOf([]byte(content.ControlKey))
	var all []sortable
	if kept, ok := sortables.Get().(*[]sortable); ok {
		all = *kept
	}
	if cap(all) < n {
		all = make([]sortable, n+n/16) // the collector can stop this, but not slices.Grow
	}
	all = append(all[:0], sortableOf(&control, controlPlace))
	for i, entries := range w.entries.pieces {
		for j := range entries {
			if p := &entries[j]; p.key[content.MaxKey] != 0 {
				all = append(all, sortableOf(&p.key, uint32(i*piece+j)))
			}
		}
	}
	for _, keys := range w.deleted {
		for i := range keys {
			all = append(all, sortableOf(&keys[i], noPlace))
		}
	}
	slices.SortFunc(all, func(a, b sortable) int {
		return cmp.Or(a.compare(b), cmp.Compare(a.place, b.place)) // a packet that was deleted may have moved back
	})
	return slices.CompactFunc(all, func(a, b sortable) bool { return a.compare(b) == 0 })
}
