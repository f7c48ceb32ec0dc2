package recovery

import (
	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/storage"
)

// keys reads all heads and fields. What has expired or is dropped, fields whose hash is gone, and
// hashes whose fields are gone become leftovers.
func (r *restorer) keys(src Source) error {
	hashes := make(map[uint64]*index.Key) // leftovers, too
	err := src.Heads(func(h *storage.Head) error {
		r.progress()
		r.tally.AddItem(storage.ValueID{ID: h.ID}, h.Version)
		k := r.head(h)
		if h.Kind == storage.Hash {
			hashes[h.ID] = k
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = src.Fields(func(f *storage.Field) error {
		r.progress()
		r.tally.AddItem(storage.ValueID{ID: f.Hash, Field: f.ID, IsField: true}, f.Version)
		k := hashes[f.Hash]
		if k == nil {
			k = r.leftover(f.Hash)
			hashes[f.Hash] = k
		}
		keep := r.state.Keys.Has(k)
		if old := k.Field(f.Name); keep && old != nil {
			r.sameName("fields of a hash", f.Name, f.ID)
			k.RemoveField(old)
			r.leftover(f.Hash).AddField(nil, old.ID).Value = old.Value
		}
		k.AddField(f.Name, f.ID).Value = value(f.Version, f.Value, f.Size, keep)
		return nil
	})
	for _, k := range hashes {
		if k.Fields() == 0 && r.state.Keys.Has(k) { // all of them are lost
			r.discard(k)
		}
	}
	return err
}

// head adds a string or a hash to the keyspace, or to the leftovers.
func (r *restorer) head(h *storage.Head) *index.Key {
	if h.Expired(r.Now) || r.flush.Drops(h.ID) {
		k := r.leftover(h.ID)
		k.Value = value(h.Version, h.Value, h.Size, false)
		return k
	}
	keys := r.state.Keys
	if old := keys.Find(h.Name); old != nil {
		r.sameName("keys", h.Name, h.ID)
		r.discard(old)
	}
	k := keys.Add(h.Name, index.KeyKind(h.Kind), h.ID)
	k.Value = value(h.Version, h.Value, h.Size, true)
	keys.SetExpiry(k, h.Expiry)
	return k
}

// sameName notes that of two records with a name the older one is left over.
func (r *restorer) sameName(what string, name []byte, id uint64) {
	if r.sameNames++; r.sameNames <= maxSameFindings {
		r.finding("two %s have the name %.100q: the newer one is used, with the number %d", what, name, id)
	}
}

// discard makes a key of the keyspace a leftover.
func (r *restorer) discard(k *index.Key) {
	r.state.Keys.Remove(k)
	r.state.Leftovers = append(r.state.Leftovers, k)
}

// leftover adds a key that is to be deleted, without anything of it so far.
func (r *restorer) leftover(id uint64) *index.Key {
	k := index.NewHash(id)
	k.Small = []byte{}
	r.state.Leftovers = append(r.state.Leftovers, k)
	return k
}

// value is a stored value in memory. A small one that is not kept is empty.
func value(version uint64, small []byte, size int, keep bool) index.Value {
	v := index.Value{Version: version}
	switch {
	case size > 0 && small == nil:
		v.Size = uint32(size)
	case keep:
		v.Small = append([]byte{}, small...)
	default:
		v.Small = []byte{}
	}
	return v
}
