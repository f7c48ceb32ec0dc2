package recoverytest

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// Keys are the heads, fields, ids of unique pushes and records of shares of a store in memory: what
// Apply brought is what its other methods show. The zero value is empty. Any goroutine may call its
// methods.
type Keys struct {
	mu      sync.Mutex // guards what follows
	heads   map[uint64]content.Head
	fields  map[content.ValueID]content.Field
	uniques map[content.UniqueID]content.Unique
	shares  map[content.ShareID]content.Share
	flush   content.Flush
}

// Apply carries the operations of a batch out that are about them and the flush record. It
// panics if the batch is wrong about what was there before: a store would miscount.
func (k *Keys) Apply(b *content.Batch) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.heads == nil {
		k.heads, k.fields = map[uint64]content.Head{}, map[content.ValueID]content.Field{}
		k.uniques, k.shares = map[content.UniqueID]content.Unique{}, map[content.ShareID]content.Share{}
	}
	b.Each(func(op content.Op) {
		h, f := op.Head, op.Field
		id := content.ValueID{ID: f.Hash, Field: f.ID, IsField: true}
		switch op.Kind {
		case content.OpPutHead, content.OpDeleteHead:
			check(content.ValueID{ID: h.ID}, op.Old, k.heads[h.ID].Version, k.heads[h.ID].Value)
		case content.OpPutField, content.OpDeleteField:
			check(id, op.Old, k.fields[id].Version, k.fields[id].Value)
		}
		switch op.Kind {
		case content.OpPutHead:
			if h.KeepValue {
				h.Value = k.heads[h.ID].Value
			}
			h.Name, h.Value, h.KeepValue = bytes.Clone(h.Name), bytes.Clone(h.Value), false
			k.heads[h.ID] = h
		case content.OpDeleteHead:
			delete(k.heads, h.ID)
		case content.OpPutField:
			if f.KeepValue {
				f.Value = k.fields[id].Value
			}
			f.Name, f.Value, f.KeepValue = bytes.Clone(f.Name), bytes.Clone(f.Value), false
			k.fields[id] = f
		case content.OpDeleteField:
			delete(k.fields, id)
		case content.OpPutUnique:
			op.Unique.ID = bytes.Clone(op.Unique.ID)
			k.uniques[op.Unique.UniqueID] = op.Unique
		case content.OpDeleteUnique:
			if _, there := k.uniques[op.Unique.UniqueID]; !there {
				panic(fmt.Sprintf("%v: the batch deletes what the store does not have", op.Unique.UniqueID))
			}
			delete(k.uniques, op.Unique.UniqueID)
		case content.OpPutShare:
			op.Share.Name = bytes.Clone(op.Share.Name)
			k.shares[op.Share.ShareID] = op.Share
		case content.OpDeleteShare:
			if _, there := k.shares[op.Share.ShareID]; !there {
				panic(fmt.Sprintf("%v: the batch deletes what the store does not have", op.Share.ShareID))
			}
			delete(k.shares, op.Share.ShareID)
		case content.OpSetFlush:
			k.flush = op.Flush
		}
	})
}

func check(v content.ValueID, old content.Mark, version uint64, value []byte) {
	want := content.Mark{Version: version, Large: content.IsLarge(len(value)), Size: len(value)}
	if old.Size == 0 { // what was dropped before a start
		want.Size = 0
	}
	if old != want {
		panic(fmt.Sprintf("%v: the batch says that the store had %+v, and it had %+v", v, old, want))
	}
}

// Items shows heads and fields as a snapshot does: with large values, fields behind their hash. A
// start takes no notice of the values.
func (k *Keys) Items(fn func(v content.ValueID, h *content.Head, f *content.Field, damage error) error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := slices.AppendSeq(slices.Collect(maps.Keys(k.fields)), func(yield func(content.ValueID) bool) {
		for id := range k.heads {
			yield(content.ValueID{ID: id})
		}
	})
	slices.SortFunc(all, func(a, b content.ValueID) int { // a head has the field 0
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Field, b.Field))
	})
	return each(all, func(v *content.ValueID) error {
		if f, ok := k.fields[*v]; ok {
			return fn(*v, nil, &f, nil)
		}
		h := k.heads[v.ID]
		return fn(*v, &h, nil, nil)
	})
}

// Uniques shows ids of unique pushes as the store and a snapshot do.
func (k *Keys) Uniques(fn func(*content.Unique) error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return each(slices.SortedFunc(maps.Values(k.uniques), func(a, b content.Unique) int {
		return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Identity, b.Identity))
	}), fn)
}

// Shares shows what shares have of their own as the store and a snapshot do.
func (k *Keys) Shares(fn func(*content.Share) error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return each(slices.SortedFunc(maps.Values(k.shares), func(a, b content.Share) int {
		return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Number, b.Number))
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
func (k *Keys) ReadValues(ids []content.ValueID, fn func(i int, value []byte, damage error)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, id := range ids {
		value := k.heads[id.ID].Value
		if id.IsField {
			value = k.fields[id].Value
		}
		if content.IsLarge(len(value)) {
			fn(i, value, nil)
		} else {
			fn(i, nil, fmt.Errorf("%w: %v is not there", storage.ErrDamaged, id))
		}
	}
}

// Flush returns the flush record.
func (k *Keys) Flush() content.Flush {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.flush
}

// Tally adds all heads, fields and ids to a tally.
func (k *Keys) Tally(t *content.Tally) {
	_ = k.Items(func(v content.ValueID, h *content.Head, f *content.Field, _ error) error {
		if h != nil {
			t.AddItem(v, h.Version)
		} else {
			t.AddItem(v, f.Version)
		}
		return nil
	})
	_ = k.Uniques(func(u *content.Unique) error { t.AddUnique(u.UniqueID); return nil })
}
