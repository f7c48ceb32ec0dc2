package storage

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"

	"github.com/holdfast-queue/holdfast/storage/tables"
)

// Deliveries calls fn for every delivery state on disk, in order of identity; valid during the
// call. stored says which records there are. Where there are notes without a state, which only
// damage leaves, stored is without StoredDelivery and d has its identity only; Tally does not
// count it. It stops at the first error of fn.
func (s *Store) Deliveries(fn func(d *Delivery, stored Stored) error) error {
	w := stateWalk{give: func(w *stateWalk) error {
		if w.damage != nil {
			return w.damage
		}
		return fn(&w.d, w.stored)
	}}
	return w.end(s.scan(statePrefix, w.take))
}

// ReadNotes calls fn with the text of each note, nil where there is none or it is damaged. The
// bytes are valid during the call only. It stops at the first error of fn and returns it.
func (s *Store) ReadNotes(ids []NoteID, fn func(i int, text []byte) error) error {
	return readEach(s, ids, appendStateKey, fn)
}

// Deliveries calls fn for every delivery state with its notes, in order of identity; d is valid
// during the call. Where the state cannot be read, or there are only its notes, d has beside these
// its identity only and damage, which wraps ErrDamaged, says why. Deliveries stops at the first
// error of fn. What was shown is held against the control record in the end: a difference is a
// *MismatchError, unless the view is tolerant.
func (n *Snapshot) Deliveries(fn func(d *Delivery, damage error) error) error {
	var sum Tally
	unread := uint64(0)
	w := stateWalk{texts: true, tolerate: n.tolerate, give: func(w *stateWalk) error {
		switch {
		case w.damage != nil:
			unread++
		case w.stored&StoredDelivery == 0:
			w.damage = fmt.Errorf("%w: %v is missing", ErrDamaged, NoteID{Identity: w.d.Identity})
		default:
			sum.AddDelivery(w.d.Identity)
		}
		return fn(&w.d, w.damage)
	}}
	err := w.end(n.scan(statePrefix, prefixRange(statePrefix), w.take))
	if err != nil || n.tolerate != nil {
		return err
	}
	return n.control.CheckDeliveries(sum, unread)
}

// ReadDeliveries calls fn with some delivery states that Deliveries showed, and with their notes,
// as there. The identities are in rising order, each one once. It stops at the first error of fn.
// The error wraps ErrDamaged when a delivery state cannot be read.
func (n *Snapshot) ReadDeliveries(identities []uint64, fn func(i int, d *Delivery) error) error {
	it := n.view.Iterator([]byte(statePrefix))
	defer it.Close()
	i := 0
	w := stateWalk{texts: true, give: func(w *stateWalk) error {
		if w.damage != nil || w.stored&StoredDelivery == 0 || w.d.Identity != identities[i] {
			return fmt.Errorf("%w: %v cannot be read: %w", ErrDamaged, NoteID{Identity: identities[i]}, cmp.Or(w.damage, errNotThere))
		}
		return fn(i, &w.d)
	}}
	var key []byte
	for i = range identities {
		key = appendStateKey(key[:0], NoteID{Identity: identities[i]})
		moveTo(it, key, i == 0)
		for ; it.Valid() && bytes.HasPrefix(it.Entry().Key, key); it.Next() {
			if e := it.Entry(); !e.Deleted {
				if err := w.take(e.Key, e.Value); err != nil {
					return err
				}
			}
		}
		if err := it.Err(); err != nil {
			return damaged(err)
		}
		if w.stored == 0 {
			w.d.Identity = 0
			return w.give(&w)
		}
		if err := w.end(nil); err != nil {
			return err
		}
	}
	return nil
}

// moveTo brings an iterator to a key that lies ahead: step by step where it is near.
func moveTo(it *tables.Iterator, key []byte, seek bool) {
	for steps := 0; !seek && it.Valid() && bytes.Compare(it.Entry().Key, key) < 0; steps++ {
		if seek = steps == runSteps; !seek {
			it.Next()
		}
	}
	if seek {
		it.Seek(key)
	}
}

var errNotThere = errors.New("it is not there")

// stateWalk joins the records of each delivery state, which lie side by side.
type stateWalk struct {
	give     func(w *stateWalk) error // gets what follows
	texts    bool                     // the texts of notes are wanted
	tolerate func(Finding)

	d      Delivery
	stored Stored
	damage error // of the state itself
}

// take is for scan.
func (w *stateWalk) take(key, rec []byte) error {
	id, err := decodeStateKey(key)
	if err != nil {
		return tolerated(err, fmt.Sprintf("%x", key), w.tolerate)
	}
	bit := Stored(1) << id.Kind & storedAll // none of a kind of a later version
	if bit == 0 {
		return nil
	}
	if w.stored != 0 && id.Identity != w.d.Identity {
		if err := w.end(nil); err != nil {
			return err
		}
	}
	if w.stored == 0 {
		w.d, w.damage = Delivery{Identity: id.Identity, Consumer: w.d.Consumer}, nil
	}
	w.stored |= bit
	switch {
	case id.Kind == 0:
		if err := decodeDelivery(rec, id.Identity, &w.d); err != nil {
			w.d = Delivery{Identity: id.Identity}
			w.damage = fmt.Errorf("%w: %v: %w", ErrDamaged, id, err)
		}
		return nil
	case w.stored == bit: // no state: what is left of the one before goes
		w.d.Consumer = ""
	}
	switch {
	case !w.texts:
	case id.Kind == NoteReason:
		w.d.Reason = string(rec)
	default:
		w.d.Progress = string(rec)
	}
	return nil
}

// end gives what was joined so far, unless the scan had an error.
func (w *stateWalk) end(err error) error {
	if err != nil || w.stored == 0 {
		return err
	}
	err = w.give(w)
	w.stored = 0
	return err
}
