package storage

import (
	"bytes"
	"fmt"

	"github.com/holdfast-queue/holdfast/storage/content"
	"github.com/holdfast-queue/holdfast/storage/tables"
)

// readItem reads a head or a field as it is stored.
func readItem(key, rec []byte) (v content.ValueID, i content.Item, err error) {
	if v, err = content.DecodeItemKey(key); err != nil {
		return v, i, err
	}
	err = content.DecodeItem(rec, &i)
	if err == nil && !v.IsField && i.Kind != content.String && i.Kind != content.Hash {
		err = fmt.Errorf("the unknown kind %d", i.Kind)
	}
	return v, i, badRecord(v, "", err)
}

func headOf(v content.ValueID, i *content.Item) content.Head {
	return content.Head{ID: v.ID, Kind: i.Kind, Database: i.Database, Name: i.Name, Version: i.Version, Expiry: i.Expiry, Value: i.Value, Size: i.Len(), Rest: i.Rest}
}

func fieldOf(v content.ValueID, i *content.Item) content.Field {
	return content.Field{Hash: v.ID, ID: v.Field, Name: i.Name, Version: i.Version, Value: i.Value, Size: i.Len(), Rest: i.Rest}
}

func (n *Snapshot) items(v *Visitor) error {
	w := itemWalk{n: n, heads: n.view.Iterator([]byte(content.HeadPrefix)), fields: n.view.Iterator([]byte(content.FieldPrefix))}
	all := []*tables.Iterator{w.heads, w.fields}
	if v.Whole {
		w.values = n.view.Iterator([]byte(content.ValuePrefix))
		all = append(all, w.values)
	}
	for _, it := range all {
		defer it.Close()
		it.Step = v.Step
		it.Seek(nil)
	}
	for it := w.next(); it.Valid(); it = w.next() {
		e := it.Entry()
		id, i, err := readItem(e.Key, e.Value)
		n.shown.Add(int64(len(e.Key)+len(e.Value)+content.EntryBytes) + int64(i.Size))
		switch {
		case err != nil && id == (content.ValueID{}): // its key is none
			err = n.tolerated(err)
		case err != nil:
			err = v.Item(id, nil, nil, err)
		default:
			err = w.give(e.Key, id, &i, v.Item)
		}
		if err != nil {
			return err
		}
		it.Next()
	}
	if err := w.passValues(nil); err != nil {
		return err
	}
	for _, it := range all {
		if err := it.Err(); err != nil {
			return damaged(err)
		}
	}
	return nil
}

// itemWalk is a scan under way. Behind its prefix a field has the number of its hash first, and a
// value has all that its head or field has: so the bytes behind the prefix order all three.
type itemWalk struct {
	n                     *Snapshot
	heads, fields, values *tables.Iterator // values is nil if they are not wanted
	large                 []byte           // memory of a large value
	head                  content.Head     // that is shown
	field                 content.Field
}

// next returns the iterator that stands at the next head or field, or one that is at its end.
func (w *itemWalk) next() *tables.Iterator {
	if !w.heads.Valid() || w.fields.Valid() && bytes.Compare(w.fields.Entry().Key[2:], w.heads.Entry().Key[2:]) < 0 {
		return w.fields
	}
	return w.heads
}

// give shows an item with its value.
func (w *itemWalk) give(key []byte, v content.ValueID, i *content.Item, fn func(v content.ValueID, h *content.Head, f *content.Field, damage error) error) (err error) {
	var damage error
	if i.Large && w.values != nil {
		if err := w.passValues(key[2:]); err != nil {
			return err
		}
		if !w.values.Valid() || !bytes.Equal(w.values.Entry().Key[2:], key[2:]) {
			damage = fmt.Errorf("%w: the value of %v is missing", ErrDamaged, v)
		} else {
			if w.large = append(w.large[:0], w.values.Entry().Value...); uint64(len(w.large)) == i.Size {
				i.Value = w.large
			} else {
				damage = fmt.Errorf("%w: the value of %v has %d bytes instead of %d", ErrDamaged, v, len(w.large), i.Size)
			}
			w.values.Next()
		}
	}
	if v.IsField {
		w.field = fieldOf(v, i)
		return fn(v, nil, &w.field, damage)
	}
	w.head = headOf(v, i)
	return fn(v, &w.head, nil, damage)
}

// passValues passes the values before the value of an item, or all if until is nil. They belong to
// nothing.
func (w *itemWalk) passValues(until []byte) error {
	for ; w.values != nil && w.values.Valid(); w.values.Next() {
		e := w.values.Entry()
		if until != nil && bytes.Compare(e.Key[2:], until) >= 0 {
			break
		}
		v, err := content.DecodeValueKey(e.Key)
		if err == nil && w.n.tolerate != nil {
			w.n.tolerate(Finding{FindingOwner, v.String(), fmt.Sprintf("a value of %d bytes belongs to no string or field that can be read", len(e.Value))})
		}
		if err := w.n.tolerated(err); err != nil {
			return err
		}
	}
	return nil
}
