package storage

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/holdfast-queue/holdfast/storage/content"
	"github.com/holdfast-queue/holdfast/storage/tables"
)

// A lookup by itself costs about 5 µs, making an iterator and a seek 10 to 20 µs each, and a step
// of it 0.3 µs (BenchmarkRead). So an iterator is used for runs of neighbours: runLength packets at
// least, each within runGap of the sequence before it.
const (
	runLength = 8
	runGap    = 256
)

// keepRead is how many bytes of records a readState keeps: else the memory of long payloads would
// stay.
const keepRead = 4 << 20

// readState is memory that Read uses again.
type readState struct {
	layers *layers // nil: only the tables are asked
	view   *tables.View
	it     *tables.Iterator // of the view; made by the first run

	order  []int  // indices of ids, by key
	last   []byte // the last key that Read asks for
	key    []byte
	near   nearby
	joined []byte
	meta   content.Meta // of the last packet
}

// Read calls fn for each of ids with the full record of the packet, valid during the call, which
// content.DecodeRecord takes. The calls come in the order of the keys, and i is the index of the
// id. It may be called at any time, also while Apply runs. The caller knows that none of them was
// deleted.
//
// Where a packet cannot be read, because it or its payload is damaged or not there, the record is
// nil, and damage says why and names the packet. The other packets are read all the same.
func (s *Store) Read(ids []content.PacketID, fn func(i int, rec []byte, damage error)) {
	state := s.readState()
	defer s.endRead(state)
	state.order = state.order[:0]
	for i := range ids {
		state.order = append(state.order, i)
	}
	slices.SortFunc(state.order, func(a, b int) int { return ids[a].Compare(ids[b]) })
	if len(ids) > 0 {
		state.last = content.AppendPacketKey(state.last[:0], ids[state.order[len(ids)-1]])
	}
	for from := 0; from < len(ids); {
		to := from + 1
		for to < len(ids) && neighbours(ids[state.order[to-1]], ids[state.order[to]]) {
			to++
		}
		for _, i := range state.order[from:to] {
			rec, damage := state.packet(ids[i], to-from >= runLength)
			fn(i, rec, damage)
		}
		from = to
	}
}

func neighbours(a, b content.PacketID) bool {
	return a.Queue == b.Queue && a.Priority == b.Priority && b.Seq-a.Seq <= runGap
}

// readState returns a state to read all layers.
func (s *Store) readState() *readState {
	r, _ := s.reads.Get().(*readState)
	if r == nil {
		r = &readState{layers: &s.layers}
	}
	return r
}

// endRead gives the view up, and the state back.
func (s *Store) endRead(r *readState) {
	r.leave()
	r.near.segment, r.meta.Key = 0, nil
	if cap(r.near.bytes)+cap(r.joined) > keepRead {
		r.near.bytes, r.joined = nil, nil
	}
	s.reads.Put(r)
}

// leave gives the view up.
func (r *readState) leave() {
	if r.it != nil {
		r.it.Close()
	}
	if r.view != nil {
		r.view.Close()
	}
	r.view, r.it = nil, nil
}

// packet returns the full record of a packet, valid until the next call, or why there is none. In a
// run the tables are asked by an iterator.
func (r *readState) packet(id content.PacketID, run bool) (rec []byte, err error) {
	r.key = content.AppendPacketKey(r.key[:0], id)
	rec, ok, err := r.get(r.key, run)
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot read packet %v: %w", id, err)
	case !ok:
		return nil, fmt.Errorf("%w: packet %v is not there", ErrDamaged, id)
	}
	var x content.MetaRest
	if err := content.ReadRecord(rec, &r.meta, &x, true); err != nil {
		return nil, fmt.Errorf("%w: packet %v: %w", ErrDamaged, id, err)
	}
	if r.meta.Large {
		return r.join(id, rec, &x)
	}
	return rec, nil
}

// join joins a record with its payload, which is kept apart.
func (r *readState) join(id content.PacketID, rec []byte, x *content.MetaRest) ([]byte, error) {
	r.key = content.AppendPayloadKey(r.key[:0], id)
	r.joined = append(r.joined[:0], rec...) // the next get writes over it
	head := len(rec)
	payload, ok, err := r.get(r.key, false)
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot read the payload of packet %v: %w", id, err)
	case !ok:
		return nil, fmt.Errorf("%w: the payload of packet %v is missing", ErrDamaged, id)
	case uint64(len(payload)) != x.Size:
		return nil, fmt.Errorf("%w: the payload of packet %v has %d bytes instead of %d", ErrDamaged, id, len(payload), x.Size)
	}
	r.joined = content.AppendJoined(r.joined, r.joined[:head], x.At, payload)
	return r.joined[head:], nil
}

// get returns the value of a key, valid until the next call.
func (r *readState) get(key []byte, run bool) (value []byte, ok bool, err error) {
	if r.layers != nil {
		value, known, ok, err := r.layers.pendingOf(&r.near, content.FixedKeyOf(key))
		if known {
			return value, ok, err
		}
		// The view is taken behind the windows: what leaves these is in it.
		if list := r.layers.tables.List(); r.view == nil || r.view.List != list {
			r.leave()
			r.view = r.layers.tables.View()
		}
	}
	if run {
		if r.it == nil {
			r.it = r.view.Between([]byte(content.PacketPrefix), key, r.last)
		}
		if r.it.Advance(key); r.it.Err() == nil {
			there := r.it.Valid() && bytes.Equal(r.it.Entry().Key, key)
			return r.it.Entry().Value, there, nil
		}
		r.it.Close() // damage lies somewhere on the way, and perhaps not here
		r.it = nil
	}
	e, ok, err := r.view.Get(key)
	return e.Value, ok, damaged(err)
}

// ReadValues is Read for the large values of heads and fields.
func (s *Store) ReadValues(ids []content.ValueID, fn func(i int, value []byte, damage error)) {
	readEach(s, ids, content.AppendValueKey, fn)
}

// ReadNotes is Read for the texts of notes.
func (s *Store) ReadNotes(ids []content.NoteID, fn func(i int, text []byte, damage error)) {
	readEach(s, ids, content.AppendStateKey, fn)
}

// readEach calls fn with the record of each id, as Read does.
func readEach[I any](s *Store, ids []I, appendKey func([]byte, I) []byte, fn func(i int, rec []byte, damage error)) {
	state := s.readState()
	defer s.endRead(state)
	for i, id := range ids {
		state.key = appendKey(state.key[:0], id)
		rec, ok, err := state.get(state.key, false)
		switch {
		case err != nil:
			rec, err = nil, fmt.Errorf("cannot read %v: %w", id, err)
		case !ok:
			rec, err = nil, fmt.Errorf("%w: %v is not there", ErrDamaged, id)
		}
		fn(i, rec, err)
	}
}
