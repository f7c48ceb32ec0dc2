package recoverytest

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/holdfast-queue/holdfast/storage"
)

// Keys are the heads, fields and ids of unique pushes of a store in memory: what Apply brought is
// what its other methods show. The zero value is empty. Any goroutine may call its methods.
type Keys struct {
	mu      sync.Mutex // guards what follows
	heads   map[uint64]storage.Head
	fields  map[storage.ValueID]storage.Field
	uniques map[storage.UniqueID]storage.Unique
	flush   storage.Flush
}

// Apply carries the operations of a batch out that are about them and the flush record. It
// panics if the batch is wrong about what was there before: a store would miscount.
func (k *Keys) Apply(b *storage.Batch) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.heads == nil {
		k.heads, k.fields = map[uint64]storage.Head{}, map[storage.ValueID]storage.Field{}
		k.uniques = map[storage.UniqueID]storage.Unique{}
	}
	b.Each(func(op storage.Op) {
		h, f := op.Head, op.Field
		id := storage.ValueID{ID: f.Hash, Field: f.ID, IsField: true}
		switch op.Kind {
		case storage.OpPutHead, storage.OpDeleteHead:
			check(storage.ValueID{ID: h.ID}, op.Old, k.heads[h.ID].Version, k.heads[h.ID].Value)
		case storage.OpPutField, storage.OpDeleteField:
			check(id, op.Old, k.fields[id].Version, k.fields[id].Value)
		}
		switch op.Kind {
		case storage.OpPutHead:
			if h.KeepValue {
				h.Value = k.heads[h.ID].Value
			}
			h.Name, h.Value, h.KeepValue = bytes.Clone(h.Name), bytes.Clone(h.Value), false
			k.heads[h.ID] = h
		case storage.OpDeleteHead:
			delete(k.heads, h.ID)
		case storage.OpPutField:
			if f.KeepValue {
				f.Value = k.fields[id].Value
			}
			f.Name, f.Value, f.KeepValue = bytes.Clone(f.Name), bytes.Clone(f.Value), false
			k.fields[id] = f
		case storage.OpDeleteField:
			delete(k.fields, id)
		case storage.OpPutUnique:
			op.Unique.ID = bytes.Clone(op.Unique.ID)
			k.uniques[op.Unique.UniqueID] = op.Unique
		case storage.OpDeleteUnique:
			if _, there := k.uniques[op.Unique.UniqueID]; !there {
				panic(fmt.Sprintf("%v: the batch deletes what the store does not have", op.Unique.UniqueID))
			}
			delete(k.uniques, op.Unique.UniqueID)
		case storage.OpSetFlush:
			k.flush = op.Flush
		}
	})
}

func check(v storage.ValueID, old storage.Mark, version uint64, value []byte) {
	if want := (storage.Mark{Version: version, Large: storage.IsLarge(len(value))}); old != want {
		panic(fmt.Sprintf("%v: the batch says that the store had %+v, and it had %+v", v, old, want))
	}
}

// Heads shows heads as the store does: without large values.
func (k *Keys) Heads(fn func(*storage.Head) error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(k.heads)) {
		h := k.heads[id]
		if storage.IsLarge(len(h.Value)) {
			h.Value = nil
		}
		if err := fn(&h); err != nil {
			return err
		}
	}
	return nil
}

// Fields shows fields as Heads does heads.
func (k *Keys) Fields(fn func(*storage.Field) error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	byKey := func(a, b storage.ValueID) int { return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Field, b.Field)) }
	for _, id := range slices.SortedFunc(maps.Keys(k.fields), byKey) {
		f := k.fields[id]
		if storage.IsLarge(len(f.Value)) {
			f.Value = nil
		}
		if err := fn(&f); err != nil {
			return err
		}
	}
	return nil
}

// Uniques shows ids of unique pushes as the store and a snapshot do.
func (k *Keys) Uniques(fn func(*storage.Unique) error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	byKey := func(a, b storage.UniqueID) int {
		return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Identity, b.Identity))
	}
	for _, id := range slices.SortedFunc(maps.Keys(k.uniques), byKey) {
		u := k.uniques[id]
		if err := fn(&u); err != nil {
			return err
		}
	}
	return nil
}

// ReadValues reads large values.
func (k *Keys) ReadValues(ids []storage.ValueID, fn func(i int, value []byte, damage error)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, id := range ids {
		value := k.heads[id.ID].Value
		if id.IsField {
			value = k.fields[id].Value
		}
		if storage.IsLarge(len(value)) {
			fn(i, value, nil)
		} else {
			fn(i, nil, fmt.Errorf("%w: %v is not there", storage.ErrDamaged, id))
		}
	}
}

// Flush returns the flush record.
func (k *Keys) Flush() storage.Flush {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.flush
}

// Tally adds all heads, fields and ids to a tally.
func (k *Keys) Tally(t *storage.Tally) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for id, h := range k.heads {
		t.AddItem(storage.ValueID{ID: id}, h.Version)
	}
	for id, f := range k.fields {
		t.AddItem(id, f.Version)
	}
	for id := range k.uniques {
		t.AddUnique(id)
	}
}

// Items shows heads and fields as a snapshot does: with large values, fields behind their hash.
func (k *Keys) Items(fn func(v storage.ValueID, h *storage.Head, f *storage.Field, damage error) error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := slices.Collect(maps.Keys(k.fields))
	for id := range k.heads {
		all = append(all, storage.ValueID{ID: id})
	}
	slices.SortFunc(all, func(a, b storage.ValueID) int { // a head has the field 0
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Field, b.Field))
	})
	for _, v := range all {
		h, f := k.heads[v.ID], k.fields[v]
		var err error
		if v.IsField {
			err = fn(v, nil, &f, nil)
		} else {
			err = fn(v, &h, nil, nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
