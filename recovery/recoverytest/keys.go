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
	want := storage.Mark{Version: version, Large: storage.IsLarge(len(value)), Size: len(value)}
	if old.Size == 0 { // what was dropped before a start
		want.Size = 0
	}
	if old != want {
		panic(fmt.Sprintf("%v: the batch says that the store had %+v, and it had %+v", v, old, want))
	}
}

// Items shows heads and fields as a snapshot does: with large values, fields behind their hash. A
// start takes no notice of the values.
func (k *Keys) Items(fn func(v storage.ValueID, h *storage.Head, f *storage.Field, damage error) error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := slices.AppendSeq(slices.Collect(maps.Keys(k.fields)), func(yield func(storage.ValueID) bool) {
		for id := range k.heads {
			yield(storage.ValueID{ID: id})
		}
	})
	slices.SortFunc(all, func(a, b storage.ValueID) int { // a head has the field 0
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Field, b.Field))
	})
	return each(all, func(v *storage.ValueID) error {
		if f, ok := k.fields[*v]; ok {
			return fn(*v, nil, &f, nil)
		}
		h := k.heads[v.ID]
		return fn(*v, &h, nil, nil)
	})
}

// Uniques shows ids of unique pushes as the store and a snapshot do.
func (k *Keys) Uniques(fn func(*storage.Unique) error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return each(slices.SortedFunc(maps.Values(k.uniques), func(a, b storage.Unique) int {
		return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Identity, b.Identity))
	}), fn)
}

// each calls fn with a copy of each of a list, until one gives an error.
func each[T any](list []T, fn func(*T) error) error {
	for _, one := range list {
		if err := fn(&one); err != nil {
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
	_ = k.Items(func(v storage.ValueID, h *storage.Head, f *storage.Field, _ error) error {
		if h != nil {
			t.AddItem(v, h.Version)
		} else {
			t.AddItem(v, f.Version)
		}
		return nil
	})
	_ = k.Uniques(func(u *storage.Unique) error { t.AddUnique(u.UniqueID); return nil })
}
