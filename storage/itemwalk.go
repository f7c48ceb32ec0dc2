package storage

import (
	"cmp"
	"fmt"

	"github.com/holdfast-queue/holdfast/storage/tables"
)

// Flush returns the flush record.
func (n *Snapshot) Flush() Flush { return n.flush }

// Items calls fn for every head and every field, with its value, large or not, in the order of
// their numbers, which v says: the fields of a hash follow its head, if that is there. One of h and
// f is nil. What fn gets is valid during the call. Those that have expired or are dropped (Flush)
// are shown, too.
//
// Where a record cannot be read both are nil, where a large value cannot be read Value is nil, and
// damage, which wraps ErrDamaged, says why, naming the head or field. Items stops at the first
// error of fn. What was shown is held against the control record in the end: a difference is a
// *MismatchError, unless the view is tolerant. A tolerant view notes values that belong to nothing.
func (n *Snapshot) Items(fn func(v ValueID, h *Head, f *Field, damage error) error) error {
	w := itemWalk{n: n, fn: fn}
	if err := n.Uniques(func(u *Unique) error { w.tally.AddUnique(u.UniqueID); return nil }); err != nil {
		return err
	}
	for prefix, c := range map[string]*itemCursor{headPrefix: &w.heads, fieldPrefix: &w.fields, valuePrefix: &w.values} {
		c.it = n.view.Iterator([]byte(prefix))
		defer c.it.Close()
		if err := n.move(c, true); err != nil {
			return err
		}
	}
	for w.heads.there || w.fields.there {
		c := &w.heads
		if !c.there || w.fields.there && w.fields.v.ID < c.v.ID {
			c = &w.fields
		}
		if err := w.give(c); err != nil {
			return err
		}
		if err := n.move(c, false); err != nil {
			return err
		}
	}
	if err := w.passValues(nil); err != nil || n.tolerate != nil {
		return err
	}
	return n.control.CheckKeys(w.tally, w.unread)
}

// itemWalk is one call of Items under way.
type itemWalk struct {
	n                     *Snapshot
	fn                    func(v ValueID, h *Head, f *Field, damage error) error
	heads, fields, values itemCursor
	tally                 Tally
	unread                uint64
	large                 []byte // memory of a large value
	head                  Head
	field                 Field
}

// itemCursor stands at one record.
type itemCursor struct {
	it    *tables.Iterator
	v     ValueID
	key   []byte
	rec   []byte
	there bool
}

// move brings a cursor to its first or next record.
func (n *Snapshot) move(c *itemCursor, first bool) (err error) {
	for ; ; first = false {
		if first {
			c.it.Seek(nil)
		} else {
			c.it.Next()
		}
		if c.there = c.it.Valid(); !c.there {
			return damaged(c.it.Err())
		}
		e := c.it.Entry()
		if e.Deleted {
			continue
		}
		c.key, c.rec = e.Key, e.Value
		if c.v, err = decodeAnyItemKey(c.key); err == nil {
			return nil
		}
		if err = tolerated(err, fmt.Sprintf("%x", c.key), n.tolerate); err != nil {
			return err
		}
	}
}

// give shows the item that a cursor stands at.
func (w *itemWalk) give(c *itemCursor) error {
	v, i, err := readItem(c.key, c.rec)
	if err != nil {
		w.unread++
		return w.fn(v, nil, nil, err)
	}
	w.tally.AddItem(v, i.version)
	var damage error
	size := i.bytes()
	if i.large {
		if i.value, damage, err = w.value(v, size); err != nil {
			return err
		}
	}
	if v.IsField {
		w.field = Field{Hash: v.ID, ID: v.Field, Name: i.name, Version: i.version, Value: i.value, Size: size}
		return w.fn(v, nil, &w.field, damage)
	}
	w.head = Head{ID: v.ID, Kind: i.kind, Database: i.db, Name: i.name, Version: i.version, Expiry: i.expiry, Value: i.value, Size: size}
	return w.fn(v, &w.head, nil, damage)
}

// value returns a large value of so many bytes, or why it cannot be read.
func (w *itemWalk) value(v ValueID, size int) (value []byte, damage, err error) {
	if err := w.passValues(&v); err != nil {
		return nil, nil, err
	}
	c := &w.values
	switch {
	case !c.there || c.v != v:
		return nil, fmt.Errorf("%w: the value of %v is missing", ErrDamaged, v), nil
	case len(c.rec) != size:
		damage = fmt.Errorf("%w: the value of %v has %d bytes instead of %d", ErrDamaged, v, len(c.rec), size)
		return nil, damage, w.n.move(c, false)
	}
	value = append(w.large[:0], c.rec...)
	w.large = value
	return value, nil, w.n.move(c, false)
}

// passValues passes the values before that of v, or all, which belong to nothing.
func (w *itemWalk) passValues(v *ValueID) error {
	for c := &w.values; c.there && (v == nil || c.v.compare(*v) < 0); {
		if w.n.tolerate != nil {
			w.n.tolerate(Finding{FindingOwner, c.v.String(),
				fmt.Sprintf("a value of %d bytes belongs to no string or field that can be read", len(c.rec))})
		}
		if err := w.n.move(c, false); err != nil {
			return err
		}
	}
	return nil
}

// compare orders items as Items does: a head comes before its fields.
func (v ValueID) compare(other ValueID) int {
	if v.ID == other.ID && v.IsField != other.IsField {
		return less(other.IsField)
	}
	return cmp.Or(cmp.Compare(v.ID, other.ID), cmp.Compare(v.Field, other.Field))
}

// decodeAnyItemKey decodes the key of a head, a field or a value.
func decodeAnyItemKey(key []byte) (ValueID, error) {
	if v, err := decodeValueKey(key); err == nil {
		return v, nil
	}
	return decodeItemKey(key)
}
