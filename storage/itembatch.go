package storage

import "fmt"

// Calls for one head or field within a batch are one operation: the last call says what is written,
// and the first one what the store held before. An item that comes and goes in one batch leaves
// nothing to write.

// itemOp is what a batch does to one head or field.
type itemOp struct {
	id      ValueID
	old     Mark   // before the batch
	version uint64 // of rec
	rec     []byte // nil: deleted
	value   []byte // a large one, or the end of rec; nil: there is none, it is kept, or it is late
	state   valueState
	size    int // of a late value
}

type valueState uint8

const (
	valueInside valueState = iota // in the record, or there is none
	valueApart                    // in a record of its own
	valueKept                     // in the record that is on disk already
	valueLate                     // in a record of its own, which FillValue brings
)

// PutHead writes a head, copying all it needs of h. A large value that is not at hand is kept
// (Head.KeepValue) or late (ValueLate).
func (b *Batch) PutHead(h *Head, old Mark) {
	b.putItem(ValueID{ID: h.ID}, &item{kind: h.Kind, db: h.Database, name: h.Name, version: h.Version, expiry: h.Expiry, value: h.Value, size: uint64(h.Size)},
		h.KeepValue, old)
}

// DeleteHead removes a head and its value; not its fields.
func (b *Batch) DeleteHead(id uint64, old Mark) { b.deleteItem(ValueID{ID: id}, old) }

// PutField writes a field as PutHead does a head.
func (b *Batch) PutField(f *Field, old Mark) {
	b.putItem(ValueID{f.Hash, f.ID, true}, &item{name: f.Name, version: f.Version, value: f.Value, size: uint64(f.Size)}, f.KeepValue, old)
}

// DeleteField removes a field and its value.
func (b *Batch) DeleteField(hash, id uint64, old Mark) { b.deleteItem(ValueID{hash, id, true}, old) }

// ValueLate says that the large value of a head or field that the batch puts has size bytes and is
// given by FillValue before Apply.
func (b *Batch) ValueLate(v ValueID, size int) {
	b.changeItem(v, Mark{}, func(o *itemOp) {
		if o.rec != nil {
			o.state, o.value, o.size = valueLate, nil, size
		}
	})
}

// FillValue gives a late value, which is copied. If the value is no longer late it does nothing.
func (b *Batch) FillValue(v ValueID, value []byte) {
	b.changeItem(v, Mark{}, func(o *itemOp) {
		var i item
		if o.state != valueLate || o.rec == nil || decodeItem(o.rec, &i) != nil {
			return
		}
		i.value = value
		b.setItem(o, &i)
	})
}

// Value returns the value that the batch puts, valid until Reset; ok is false if it puts none that
// is at hand.
func (b *Batch) Value(v ValueID) (value []byte, ok bool) {
	at, ok := b.itemAt[v]
	if !ok {
		return nil, false
	}
	o := &b.items[at]
	return o.value, o.value != nil
}

func (b *Batch) putItem(v ValueID, i *item, keep bool, old Mark) {
	b.changeItem(v, old, func(o *itemOp) {
		before := *o
		o.version = i.version
		if i.value != nil || !keep && i.size == 0 {
			b.setItem(o, i)
			return
		}
		i.large = true
		b.setItemRecord(o, i)
		switch {
		case !keep:
			o.state, o.value, o.size = valueLate, nil, int(i.size)
		case before.rec == nil:
			o.state = valueKept
		}
	})
}

func (b *Batch) deleteItem(v ValueID, old Mark) {
	b.changeItem(v, old, func(o *itemOp) { *o = itemOp{id: o.id, old: o.old} })
}

// changeItem calls fn with the operation on an item, a new one if there is none, and keeps the
// totals of the batch true.
func (b *Batch) changeItem(v ValueID, old Mark, fn func(o *itemOp)) {
	at, ok := b.itemAt[v]
	if !ok {
		if b.itemAt == nil {
			b.itemAt = make(map[ValueID]int32)
		}
		at = int32(len(b.items))
		b.itemAt[v] = at
		b.items = append(b.items, itemOp{id: v, old: old})
	}
	o := &b.items[at]
	if ok {
		b.count -= o.entries()
		b.bytes -= o.bytes()
	}
	fn(o)
	b.count += o.entries()
	b.bytes += o.bytes()
}

// setItem makes i, whose value is at hand, what o puts.
func (b *Batch) setItem(o *itemOp, i *item) {
	if i.large = IsLarge(len(i.value)); i.large {
		value := i.value
		i.size = uint64(len(value))
		b.setItemRecord(o, i)
		copied := append(b.grow(len(value)), value...)
		b.keep(len(copied))
		o.state, o.value = valueApart, copied[:len(copied):len(copied)]
		return
	}
	b.setItemRecord(o, i)
	o.state, o.value = valueInside, o.rec[len(o.rec)-len(i.value):]
}

func (b *Batch) setItemRecord(o *itemOp, i *item) {
	room := itemRoom + len(i.name)
	if !i.large {
		room += len(i.value)
	}
	rec := appendItem(b.grow(room), i)
	b.keep(len(rec))
	o.rec = rec[:len(rec):len(rec)]
}

// show returns the operation as Each shows it.
func (o *itemOp) show() Op {
	var i item
	if o.rec != nil && decodeItem(o.rec, &i) != nil {
		return Op{}
	}
	kept := o.state == valueKept
	if i.large {
		i.value = o.value
	}
	switch {
	case o.id.IsField && o.rec == nil:
		return Op{Kind: OpDeleteField, Old: o.old, Field: Field{Hash: o.id.ID, ID: o.id.Field}}
	case o.id.IsField:
		return Op{Kind: OpPutField, Old: o.old, Field: Field{o.id.ID, o.id.Field, i.name, i.version, i.value, i.bytes(), kept}}
	case o.rec == nil:
		return Op{Kind: OpDeleteHead, Old: o.old, Head: Head{ID: o.id.ID}}
	}
	return Op{Kind: OpPutHead, Old: o.old, Head: Head{o.id.ID, i.kind, i.db, i.name, i.version, i.expiry, i.value, i.bytes(), kept}}
}

// writesValue says that the value's own record is written, and removesValue that it is removed.
func (o *itemOp) writesValue() bool {
	return o.rec != nil && (o.state == valueApart || o.state == valueLate)
}

func (o *itemOp) removesValue() bool {
	return o.old.Large && (o.rec == nil || o.state == valueInside)
}

func (o *itemOp) entries() int {
	if o.rec == nil && o.old.Version == 0 {
		return 0
	}
	if o.writesValue() || o.removesValue() {
		return 2
	}
	return 1
}

func (o *itemOp) bytes() int {
	n := o.entries() * (fieldKeyLen + opBytes)
	switch {
	case o.rec == nil:
		return n
	case o.state == valueLate:
		return n + len(o.rec) + o.size
	case o.state == valueApart:
		return n + len(o.rec) + len(o.value)
	}
	return n + len(o.rec)
}

// items adds the heads and fields.
func (e *entries) items(b *Batch, next *Control) error {
	for i := range b.items {
		o := &b.items[i]
		if o.entries() == 0 {
			continue
		}
		if o.rec != nil && o.state == valueLate {
			return fmt.Errorf("%v: %w", o.id, errNotGiven)
		}
		e.item(o)
		if o.old.Version != 0 {
			next.Keys--
			next.KeyHash -= ItemHash(o.id, o.old.Version)
		}
		if o.rec != nil {
			next.AddItem(o.id, o.version)
		}
	}
	return nil
}

// item adds one head or field, and its value if that has a record of its own.
func (e *entries) item(o *itemOp) {
	var room [maxKey]byte
	key := appendItemKey(room[:0], o.id)
	if o.rec == nil {
		e.delete(key)
	} else {
		e.put(key, o.rec, 0, o.old.Version != 0)
	}
	key = appendValueKey(room[:0], o.id)
	switch {
	case o.writesValue():
		e.put(key, o.value, 0, true)
	case o.removesValue():
		e.delete(key)
	}
}
