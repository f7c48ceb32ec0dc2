package storage

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/dgraph-io/badger/v4"
)

// A lookup by itself costs about 5 µs, making an iterator and a seek 10 to
// 20 µs each, and a step of it 0.3 µs (BenchmarkRead). So an iterator is used
// for runs of neighbours: runLength packets at least, each within runGap of
// the sequence before it; it seeks again after runSteps steps in vain.
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

	txn *badger.Txn
	it  *badger.Iterator // made by the first run
}

// Read calls fn for each of ids with the full record of the packet, valid
// during the call, or with nil when there is none, which for a packet that an
// index holds means damage. The calls come in the order of the keys; i says
// which of ids it is. Read stops at the first error of fn and returns it.
func (s *Store) Read(ids []PacketID, fn func(i int, rec []byte) error) error {
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
		state.txn = txn
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
			if err := read(ids, state.order[from:to], fn); err != nil {
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
	r.txn, r.it = nil, nil
}

// lookUp reads each packet by itself.
func (r *readState) lookUp(ids []PacketID, order []int, fn func(i int, rec []byte) error) error {
	for _, i := range order {
		r.key = appendPacketKey(r.key[:0], ids[i])
		item, err := r.txn.Get(r.key)
		if errors.Is(err, badger.ErrKeyNotFound) {
			err = fn(i, nil)
		} else if err == nil {
			err = r.give(item, ids[i], i, fn)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// pass reads a run of packets with the iterator.
func (r *readState) pass(ids []PacketID, order []int, fn func(i int, rec []byte) error) error {
	if r.it == nil {
		// An iterator parses one item ahead. Without AllVersions it would look for a live one, behind
		// the last packet of the run, through all that was popped there before.
		r.it = r.txn.NewIterator(badger.IteratorOptions{Prefix: []byte(packetPrefix), AllVersions: true})
	}
	placed := false // the iterator stands at or before what is looked for
	for _, i := range order {
		r.key = appendPacketKey(r.key[:0], ids[i])
		for steps := 0; placed && r.it.Valid() && bytes.Compare(r.it.Item().Key(), r.key) < 0; steps++ {
			if placed = steps < runSteps; placed {
				r.it.Next()
			}
		}
		if !placed {
			r.it.Seek(r.key)
			placed = true
		}
		var err error
		if r.it.Valid() && bytes.Equal(r.it.Item().Key(), r.key) && !r.it.Item().IsDeletedOrExpired() {
			err = r.give(r.it.Item(), ids[i], i, fn)
		} else {
			err = fn(i, nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// give passes one record to fn, joined with its payload when that is kept apart.
func (r *readState) give(item *badger.Item, id PacketID, i int, fn func(i int, rec []byte) error) error {
	return item.Value(func(rec []byte) error {
		at, size, large, err := splitHead(rec)
		if err != nil {
			return fmt.Errorf("%w: packet %v: %w", ErrDamaged, id, err)
		}
		if !large {
			return fn(i, rec)
		}
		item, err := r.txn.Get(appendPayloadKey(nil, id))
		if err != nil {
			return fmt.Errorf("%w: cannot read the payload of packet %v: %w", ErrDamaged, id, err)
		}
		return item.Value(func(payload []byte) error {
			if uint64(len(payload)) != size {
				return fmt.Errorf("%w: the payload of packet %v has %d bytes instead of %d", ErrDamaged, id, len(payload), size)
			}
			r.joined = appendJoined(r.joined[:0], rec, at, payload)
			return fn(i, r.joined)
		})
	})
}
