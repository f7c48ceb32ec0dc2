package content

// PutHead writes a head, copying all it needs of h. A large value that is on disk already may be
// kept (Head.KeepValue). Calls for one head or field within a batch are one operation: old counts
// in the first of them.
func (b *Batch) PutHead(h *Head, old Mark) {
	i := Item{Kind: h.Kind, Database: h.Database, Name: h.Name, Version: h.Version, Expiry: h.Expiry, Value: h.Value, Size: uint64(h.Size), Rest: h.Rest}
	b.putItem(ValueID{ID: h.ID}, &i, h.KeepValue, old)
}

// DeleteHead removes a head and its value; not its fields.
func (b *Batch) DeleteHead(id uint64, old Mark) { b.deleteItem(ValueID{ID: id}, old) }

// PutField writes a field as PutHead does a head.
func (b *Batch) PutField(f *Field, old Mark) {
	i := Item{Name: f.Name, Version: f.Version, Value: f.Value, Size: uint64(f.Size), Rest: f.Rest}
	b.putItem(ValueID{f.Hash, f.ID, true}, &i, f.KeepValue, old)
}

// DeleteField removes a field and its value.
func (b *Batch) DeleteField(hash, id uint64, old Mark) { b.deleteItem(ValueID{hash, id, true}, old) }

// Value returns the value that the batch puts, valid until Reset; ok is false if it puts none that
// is at hand.
func (b *Batch) Value(v ValueID) (value []byte, ok bool) {
	var room [MaxKey]byte
	var i Item
	e := b.find(AppendItemKey(room[:0], v))
	if e == nil || !e.puts() || DecodeItem(e.value(), &i) != nil {
		return nil, false
	}
	if !i.Large {
		return i.Value, true
	}
	if e = b.find(AppendValueKey(room[:0], v)); e == nil || !e.puts() {
		return nil, false
	}
	return e.value(), true
}

func (b *Batch) putItem(v ValueID, i *Item, keep bool, old Mark) {
	b.data = b.data || i.Value != nil
	keep = keep && i.Value == nil
	large := i.Value
	if i.Large = keep || IsLarge(len(large)); !i.Large {
		large = nil
	} else if !keep {
		i.Size = uint64(len(large))
	}
	var key [MaxKey]byte
	e := b.itemOf(AppendItemKey(key[:0], v), v, old)
	b.scratch = AppendItem(b.scratch[:0], i)
	b.write(e, AppendItemKey(key[:0], v), false, b.scratch, ItemHash(v, i.Version))
	switch {
	case large != nil:
		k := known{stored: e.old.Large, unsure: true, size: e.old.Size}
		e.payload = true
		b.putKey(AppendValueKey(key[:0], v), k, large, 0)
	case !keep:
		b.deleteValue(v, e)
	case e.payload:
		if value := b.find(AppendValueKey(key[:0], v)); !value.puts() { // what the store has stays
			b.weigh(value, -1)
			value.raw = nil
		}
	}
}

func (b *Batch) deleteItem(v ValueID, old Mark) {
	var key [MaxKey]byte
	e := b.itemOf(AppendItemKey(key[:0], v), v, old)
	b.deleteKey(AppendItemKey(key[:0], v), known{})
	b.deleteValue(v, e)
}

// deleteValue deletes the large value of an item, if there is one.
func (b *Batch) deleteValue(v ValueID, e *batchEntry) {
	if e.payload = e.payload || e.old.Large; e.payload {
		var key [MaxKey]byte
		b.deleteKey(AppendValueKey(key[:0], v), known{stored: e.old.Large, size: e.old.Size})
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
