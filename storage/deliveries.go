package storage

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"github.com/holdfast-queue/holdfast/storage/content"
)

func (n *Snapshot) states(v *Visitor) error {
	w := stateWalk{texts: v.Whole, give: func(w *stateWalk) error {
		if w.damage == nil && w.stored&content.StoredDelivery == 0 {
			w.damage = fmt.Errorf("%w: %v is missing", ErrDamaged, content.NoteID{Identity: w.d.Identity})
		}
		return v.State(&w.d, w.stored, w.damage)
	}}
	return w.end(n.scan(all(content.StatePrefix), v.Step, w.take))
}

// ReadDeliveries returns a function that reads a delivery state that a walk showed, with its
// notes, fastest in rising order of identity. What it returns is valid until the next call. The
// error wraps ErrDamaged when the state cannot be read. One goroutine at a time uses read, and
// calls done in the end.
func (n *Snapshot) ReadDeliveries() (read func(identity uint64) (*content.Delivery, error), done func()) {
	it := n.view.Iterator([]byte(content.StatePrefix))
	w := stateWalk{texts: true}
	var key []byte
	return func(identity uint64) (*content.Delivery, error) {
		key = content.AppendStateKey(key[:0], content.NoteID{Identity: identity})
		w.stored, w.damage = 0, nil
		if it.Valid() && bytes.Compare(it.Entry().Key, key) > 0 {
			it.Seek(key)
		}
		for it.Advance(key); it.Valid() && bytes.HasPrefix(it.Entry().Key, key); it.Next() {
			if err := w.take(it.Entry().Key, it.Entry().Value); err != nil {
				return nil, err
			}
		}
		err := cmp.Or(damaged(it.Err()), w.damage)
		if err == nil && w.stored&content.StoredDelivery == 0 {
			err = errors.New("it is not there")
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %v cannot be read: %w", ErrDamaged, content.NoteID{Identity: identity}, err)
		}
		return &w.d, nil
	}, it.Close
}

// stateWalk joins the records of each delivery state, which lie side by side.
type stateWalk struct {
	give  func(w *stateWalk) error // gets what follows
	texts bool                     // the texts of notes are wanted

	d      content.Delivery
	stored content.Stored
	damage error // of the state itself
}

// take is for scan.
func (w *stateWalk) take(key, rec []byte) error {
	id, err := content.DecodeStateKey(key)
	if err != nil {
		return err
	}
	bit := content.Stored(1) << id.Kind & content.StoredAll // none of a kind of a later version
	if bit == 0 {
		return nil
	}
	if w.stored != 0 && id.Identity != w.d.Identity {
		if err := w.end(nil); err != nil {
			return err
		}
	}
	if w.stored == 0 {
		w.d, w.damage = content.Delivery{Identity: id.Identity, Consumer: w.d.Consumer}, nil
	}
	w.stored |= bit
	switch {
	case id.Kind == 0:
		if err := content.DecodeDelivery(rec, id.Identity, &w.d); err != nil {
			w.d = content.Delivery{Identity: id.Identity}
			w.damage = fmt.Errorf("%w: %v: %w", ErrDamaged, id, err)
		}
		return nil
	case w.stored == bit: // no state: what is left of the one before goes
		w.d.Consumer = ""
	}
	switch {
	case !w.texts:
	case id.Kind == content.NoteReason:
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
