package storage

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-queue/holdfast/storage/tables"
)

// A lookup by itself costs about 5 µs, making an iterator and a seek 10 to 20 µs each, and a step
// of it 0.3 µs (BenchmarkRead). So an iterator is used for runs of neighbours: runLength packets at
// least, each within runGap of the sequence before it; it seeks again after runSteps steps in vain.
const (
	runLength = 8
	runGap    = 256
	runSteps  = 16
)

// readState is memory that Read uses again.
type readState struct {
	layers *layers // nil: only the tables are asked
	view   *tables.View
	now    uint64 // Unix seconds

	order  []int // indices of ids, by key
	key    []byte
	value  []byte // of a pending record
	joined []byte

	it     *tables.Iterator // made by the first run
	placed bool             // it stands at or before what is looked for
	fn     giveFunc
}

// giveFunc gets the full record of a packet, or nil and why there is none. Its own error ends the
// reading.
type giveFunc func(i int, rec []byte, damage error) error

// Read calls fn for each of ids with the full record of the packet, valid during the call. The
// calls come in the order of the keys; i says which of ids it is.
//
// The record is nil when that one packet cannot be read: it is not there, or it or its payload is
// damaged. For a packet that an index holds and that has no expiry both mean damage, and Damage
// says which. The other packets are read all the same.
//
// Read stops at the first error of fn and returns it. An error of its own is about the store as a
// whole, such as a device that gives an I/O error; then fn was not called for some of ids, and
// nothing is known about those.
func (s *Store) Read(ids []PacketID, fn func(i int, rec []byte) error) error {
	return s.read(ids, func(i int, rec []byte, _ error) error { return fn(i, rec) })
}

// Damage reads one packet and returns why Read gives no record of it: an error that wraps
// ErrDamaged and names the packet, or nil when it can be read. Any other error is about the store
// as a whole, as that of Read is.
func (s *Store) Damage(id PacketID) (damage error) {
	err := s.read([]PacketID{id}, func(_ int, _ []byte, why error) error {
		damage = why
		return nil
	})
	if err != nil {
		return err
	}
	return damage
}

func (s *Store) read(ids []PacketID, fn giveFunc) error {
	state, _ := s.reads.Get().(*readState)
	if state == nil {
		state = &readState{}
	}
	defer s.reads.Put(state)
	state.order = state.order[:0]
	for i := range ids {
		state.order = append(state.order, i)
	}
	slices.SortFunc(state.order, func(a, b int) int { return ids[a].Compare(ids[b]) })
	state.begin(s)
	state.fn = fn
	defer state.end()
	for from := 0; from < len(ids); {
		to := from + 1
		for to < len(ids) && neighbours(ids[state.order[to-1]], ids[state.order[to]]) {
			to++
		}
		run := to-from >= runLength
		state.placed = false
		for _, i := range state.order[from:to] {
			if err := state.packet(ids[i], i, run); err != nil {
				return err
			}
		}
		from = to
	}
	return nil
}

func neighbours(a, b PacketID) bool {
	return a.Queue == b.Queue && a.Priority == b.Priority && b.Seq-a.Seq <= runGap
}

// begin opens the layers of a store.
func (r *readState) begin(s *Store) {
	r.layers, r.now = &s.layers, uint64(time.Now().Unix())
}

func (r *readState) end() {
	r.leave()
	r.layers, r.fn = nil, nil
}

// leave gives the view up.
func (r *readState) leave() {
	if r.it != nil {
		r.it.Close()
	}
	if r.view != nil && r.layers != nil {
		r.view.Close()
	}
	r.view, r.it, r.placed = nil, nil, false
}

// packet gives one packet to fn. In a run the tables are asked by the iterator.
func (r *readState) packet(id PacketID, i int, run bool) error {
	r.key = appendPacketKey(r.key[:0], id)
	rec, ok, err := r.get(r.key, run)
	switch {
	case err != nil:
		return r.fn(i, nil, fmt.Errorf("cannot read packet %v: %w", id, err))
	case !ok:
		return r.fn(i, nil, fmt.Errorf("%w: packet %v is not there", ErrDamaged, id))
	}
	return r.giveRecord(rec, id, i)
}

// get returns the value of a key, valid until the next call.
func (r *readState) get(key []byte, run bool) (value []byte, ok bool, err error) {
	if r.layers != nil {
		value, known, ok, err := r.layers.pendingOf(r.value[:0], pendingKeyOf(key), r.now)
		if known {
			r.value = value
			return value, ok, err
		}
		// The view is taken behind the windows: what leaves these is in it.
		if list := r.layers.tables.List(); r.view == nil || r.view.List != list {
			r.leave()
			r.view = r.layers.tables.View()
		}
	}
	if run {
		return r.step(key)
	}
	e, ok, err := r.view.Get(key)
	return e.Value, ok, damaged(err)
}

// step brings the iterator to a key.
func (r *readState) step(key []byte) (value []byte, ok bool, err error) {
	if r.it == nil {
		r.it = r.view.Iterator([]byte(packetPrefix))
	}
	for steps := 0; r.placed && r.it.Valid() && bytes.Compare(r.it.Entry().Key, key) < 0; steps++ {
		if r.placed = steps < runSteps; r.placed {
			r.it.Next()
		}
	}
	if !r.placed {
		r.it.Seek(key)
		r.placed = true
	}
	if r.it.Valid() && bytes.Equal(r.it.Entry().Key, key) && !r.it.Entry().Deleted {
		return r.it.Entry().Value, true, nil
	}
	// A block that is damaged ends an iterator, mostly without a word.
	if r.placed = r.it.Valid(); r.it.Err() != nil {
		r.it.Close()
		r.it = nil
	}
	e, ok, err := r.view.Get(key)
	return e.Value, ok, damaged(err)
}

// giveRecord passes one record to fn, joined with its payload when that is kept apart.
func (r *readState) giveRecord(rec []byte, id PacketID, i int) error {
	var m Meta
	var x metaRest
	if err := readRecord(rec, &m, &x, false); err != nil {
		return r.fn(i, nil, fmt.Errorf("%w: packet %v: %w", ErrDamaged, id, err))
	}
	if !m.Large {
		return r.fn(i, rec, nil)
	}
	return r.giveLarge(rec, &x, id, i)
}

func (r *readState) giveLarge(rec []byte, x *metaRest, id PacketID, i int) error {
	r.key = appendPayloadKey(r.key[:0], id)
	r.joined = append(r.joined[:0], rec...) // the next get writes over it
	head := len(rec)
	payload, ok, err := r.get(r.key, false)
	switch {
	case err != nil:
		return r.fn(i, nil, fmt.Errorf("cannot read the payload of packet %v: %w", id, err))
	case !ok:
		return r.fn(i, nil, fmt.Errorf("%w: the payload of packet %v is missing", ErrDamaged, id))
	case uint64(len(payload)) != x.size:
		return r.fn(i, nil, fmt.Errorf("%w: the payload of packet %v has %d bytes instead of %d", ErrDamaged, id, len(payload), x.size))
	}
	r.joined = appendJoined(r.joined, r.joined[:head], x.at, payload)
	return r.fn(i, r.joined[head:], nil)
}
