package storage

import (
	"bytes"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/dgraph-io/badger/v4"
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
	order  []int // indices of ids, by key
	key    []byte
	joined []byte

	txn    *badger.Txn
	it     *badger.Iterator // made by the first run
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
	return s.db.View(func(txn *badger.Txn) error {
		state.txn, state.fn = txn, fn
		defer state.end()
		for from := 0; from < len(ids); {
			to := from + 1
			for to < len(ids) && neighbours(ids[state.order[to-1]], ids[state.order[to]]) {
				to++
			}
			read := state.pass
			if to-from < runLength {
				read = state.lookUp
			}
			if err := read(ids, state.order[from:to]); err != nil {
				return err
			}
			from = to
		}
		return nil
	})
}

func neighbours(a, b PacketID) bool {
	return a.Queue == b.Queue && a.Priority == b.Priority && b.Seq-a.Seq <= runGap
}

func (r *readState) end() {
	if r.it != nil {
		r.it.Close()
	}
	r.txn, r.it, r.fn = nil, nil, nil
}

// lookUp reads each packet by itself.
func (r *readState) lookUp(ids []PacketID, order []int) error {
	for _, i := range order {
		r.key = appendPacketKey(r.key[:0], ids[i])
		item, err := r.get(r.key)
		switch {
		case err == nil:
			err = r.give(item, ids[i], i)
		case errors.Is(err, badger.ErrKeyNotFound):
			err = r.fn(i, nil, fmt.Errorf("%w: packet %v is not there", ErrDamaged, ids[i]))
		case errors.Is(err, ErrDamaged):
			err = r.fn(i, nil, fmt.Errorf("cannot read packet %v: %w", ids[i], err))
		default:
			err = fmt.Errorf("cannot read packet %v: %w", ids[i], err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// pass reads a run of packets with the iterator.
func (r *readState) pass(ids []PacketID, order []int) error {
	if r.it == nil {
		// An iterator parses one item ahead. Without AllVersions it would look for a live one,
		// behind the last packet of the run, through all that was popped there before.
		r.it = r.txn.NewIterator(badger.IteratorOptions{Prefix: []byte(packetPrefix), AllVersions: true})
	}
	r.placed = false
	for at, i := range order {
		r.key = appendPacketKey(r.key[:0], ids[i])
		found, err := r.move(r.key)
		switch {
		case found && err == nil:
			err = r.give(r.it.Item(), ids[i], i)
		case err == nil || errors.Is(err, ErrDamaged):
			// The iterator ends without a word at a block that it cannot read, so what it does not
			// find may be there; and it must seek the next one.
			r.placed = false
			err = r.lookUp(ids, order[at:at+1])
		default:
			err = fmt.Errorf("cannot read packet %v: %w", ids[i], err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// move brings the iterator to a key and reports whether a live packet is there.
func (r *readState) move(key []byte) (found bool, err error) {
	defer recoverBlock(&err)()
	for steps := 0; r.placed && r.it.Valid() && bytes.Compare(r.it.Item().Key(), key) < 0; steps++ {
		if r.placed = steps < runSteps; r.placed {
			r.it.Next()
		}
	}
	if !r.placed {
		r.it.Seek(key)
		r.placed = true
	}
	return r.it.Valid() && bytes.Equal(r.it.Item().Key(), key) && !r.it.Item().IsDeletedOrExpired(), nil
}

// get reads one key. The error wraps badger.ErrKeyNotFound or ErrDamaged when it is about that key
// alone.
func (r *readState) get(key []byte) (item *badger.Item, err error) {
	defer recoverBlock(&err)()
	return r.txn.Get(key)
}

// give passes the record of one item to fn.
func (r *readState) give(item *badger.Item, id PacketID, i int) error {
	return item.Value(func(rec []byte) error { return r.giveRecord(rec, id, i) })
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
	item, err := r.get(r.key)
	switch {
	case errors.Is(err, badger.ErrKeyNotFound):
		return r.fn(i, nil, fmt.Errorf("%w: the payload of packet %v is missing or in a block with a wrong checksum", ErrDamaged, id))
	case errors.Is(err, ErrDamaged):
		return r.fn(i, nil, fmt.Errorf("cannot read the payload of packet %v: %w", id, err))
	case err != nil:
		return fmt.Errorf("cannot read the payload of packet %v: %w", id, err)
	}
	return item.Value(func(payload []byte) error {
		if uint64(len(payload)) != x.size {
			return r.fn(i, nil, fmt.Errorf("%w: the payload of packet %v has %d bytes instead of %d", ErrDamaged, id, len(payload), x.size))
		}
		r.joined = appendJoined(r.joined[:0], rec, x.at, payload)
		return r.fn(i, r.joined, nil)
	})
}

// recoverBlock makes an error of a panic of Badger. It takes a block apart before it looks at the
// checksum, so one that is damaged can make it reach outside: that is damage of what was looked
// for. A fault of the mapped file is an I/O error of the device instead. Use: defer
// recoverBlock(&err)().
func recoverBlock(err *error) func() {
	old := debug.SetPanicOnFault(true)
	return func() {
		debug.SetPanicOnFault(old)
		p := recover()
		if p == nil {
			return
		}
		if *err = faultError(p); !errors.Is(*err, errFault) {
			*err = fmt.Errorf("%w: a block cannot be taken apart: %w", ErrDamaged, *err)
		}
	}
}
