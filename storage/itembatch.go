package storage

// PutHead writes a head, copying all it needs of h. A large value that is on disk already may be
// kept (Head.KeepValue). Calls for one head or field within a batch are one operation: old counts
// in the first of them.
func (b *Batch) PutHead(h *Head, old Mark) {
	i := item{kind: h.Kind, db: h.Database, name: h.Name, version: h.Version, expiry: h.Expiry, value: h.Value, size: uint64(h.Size), rest: h.Rest}
	b.putItem(ValueID{ID: h.ID}, &i, h.KeepValue, old)
}

// DeleteHead removes a head and its value; not its fields.
func (b *Batch) DeleteHead(id uint64, old Mark) { b.deleteItem(ValueID{ID: id}, old) }

// PutField writes a field as PutHead does a head.
func (b *Batch) PutField(f *Field, old Mark) {
	i := item{name: f.Name, version: f.Version, value: f.Value, size: uint64(f.Size), rest: f.Rest}
	b.putItem(ValueID{f.Hash, f.ID, true}, &i, f.KeepValue, old)
}

// DeleteField removes a field and its value.
func (b *Batch) DeleteField(hash, id uint64, old Mark) { b.deleteItem(ValueID{hash, id, true}, old) }

// Value returns the value that the batch puts, valid until Reset; ok is false if it puts none that
// is at hand.
func (b *Batch) Value(v ValueID) (value []byte, ok bool) {
	var room [maxKey]byte
	var i item
	e := b.find(appendItemKey(room[:0], v))
	if e == nil || !e.puts() || decodeItem(e.value(), &i) != nil {
		return nil, false
	}
	if !i.large {
		return i.value, true
	}
	if e = b.find(appendValueKey(room[:0], v)); e == nil || !e.puts() {
		return nil, false
	}
	return e.value(), true
}

func (b *Batch) putItem(v ValueID, i *item, keep bool, old Mark) {
	b.data = b.data || i.value != nil
	keep = keep && i.value == nil
	large := i.value
	if i.large = keep || IsLarge(len(large)); !i.large {
		large = nil
	} else if !keep {
		i.size = uint64(len(large))
	}
	var key [maxKey]byte
	e := b.itemOf(appendItemKey(key[:0], v), v, old)
	b.scratch = appendItem(b.scratch[:0], i)
	b.write(e, appendItemKey(key[:0], v), false, b.scratch, ItemHash(v, i.version))
	switch {
	case large != nil:
		k := known{stored: e.old.Large, unsure: true, size: e.old.Size}
		e.payload = true
		b.putKey(appendValueKey(key[:0], v), k, large, 0)
	case !keep:
		b.deleteValue(v, e)
	case e.payload:
		if value := b.find(appendValueKey(key[:0], v)); !value.puts() { // what the store has stays
			b.weigh(value, -1)
			value.raw = nil
		}
	}
}

func (b *Batch) deleteItem(v ValueID, old Mark) {
	var key [maxKey]byte
	e := b.itemOf(appendItemKey(key[:0], v), v, old)
	b.deleteKey(appendItemKey(key[:0], v), known{})
	b.deleteValue(v, e)
}

// deleteValue deletes the large value of an item, if there is one.
func (b *Batch) deleteValue(v ValueID, e *batchEntry) {
	if e.payload = e.payload || e.old.Large; e.payload {
		var key [maxKey]byte
		b.deleteKey(appendValueKey(key[:0], v), known{stored: e.old.Large, size: e.old.Size})
	}
}

// itemOf returns the entry of an item. Of what the store has the first call for it tells.
func (b *Batch) itemOf(key []byte, v ValueID, old Mark) *batchEntry {
	n, k := len(b.entries), known{stored: old.Version != 0, counts: countedKey}
	if k.stored {
		k.hash = ItemHash(v, old.Version)
	}
	if !old.Large {
		k.size = old.Size
	}
	e := b.entryOf(key, k)
	if len(b.entries) > n {
		e.old = old
	}
	return e
}
