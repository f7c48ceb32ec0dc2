package recovery

import (
	"github.com/holdfast-queue/holdfast/index/keyspace"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// item reads a head or a field. What is dropped, fields whose hash is gone, and hashes whose fields
// are gone become leftovers.
func (r *restorer) item(v content.ValueID, h *content.Head, f *content.Field, damage error) error {
	if damage != nil {
		return damage
	}
	r.progress()
	if h != nil {
		r.tally.AddItem(v, h.Version)
		keepRest(&r.state.Rests.Items, v, h.Rest)
		r.endHash()
		if k := r.head(h); h.Kind == content.Hash {
			r.hash = k
		}
		return nil
	}
	r.tally.AddItem(v, f.Version)
	keepRest(&r.state.Rests.Items, v, f.Rest)
	if r.hash == nil || r.hash.ID != f.Hash {
		r.endHash()
		r.hash = r.leftover(f.Hash)
	}
	keep := r.state.Names.Has(r.hash)
	if old := r.hash.Field(f.Name); keep && old != nil {
		r.sameName("fields of a hash", f.Name, f.ID)
		r.hash.RemoveField(old)
		r.leftover(f.Hash).AddField(nil, old.ID).Value = old.Value
	}
	r.hash.AddField(f.Name, f.ID).Value = value(f.Version, f.Value, f.Size, keep && !r.NoIndex)
	return nil
}

// endHash discards the last hash if all of its fields are lost.
func (r *restorer) endHash() {
	if r.hash != nil && r.hash.Fields() == 0 && r.state.Names.Has(r.hash) {
		r.discard(r.hash)
	}
	r.hash = nil
}

// head adds a string or a hash to the directory, or to the leftovers. One that has expired keeps
// its name until the broker deletes it: what takes the name would else meet it at another start.
func (r *restorer) head(h *content.Head) *keyspace.Entry {
	if r.flush.Drops(h) {
		k := r.leftover(h.ID)
		k.Value = value(h.Version, h.Value, h.Size, false)
		return k
	}
	names := r.state.Names
	if old := names.Find(h.Database, h.Name); old != nil {
		r.sameName("keys", h.Name, h.ID)
		r.discard(old)
	}
	k := names.Make(h.Database, h.Name)
	names.Set(k, keyspace.Kind(h.Kind))
	k.ID, k.Value = h.ID, value(h.Version, h.Value, h.Size, !r.NoIndex)
	names.SetExpiry(k, h.Expiry)
	r.state.Report.Keys++
	return k
}

// sameName notes that two records have the same name: the older one is left over.
func (r *restorer) sameName(what string, name []byte, id uint64) {
	r.some(&r.sameNames, "two %s have the name %.100q: the newer one is used, with the number %d", what, name, id)
}

// discard makes a string or hash of the directory a leftover.
func (r *restorer) discard(k *keyspace.Entry) {
	r.state.Report.Keys--
	r.state.Leftovers = append(r.state.Leftovers, r.state.Names.Detach(k))
}

// leftover adds a key that is to be deleted, without anything of it so far.
func (r *restorer) leftover(id uint64) *keyspace.Entry {
	k := keyspace.NewHash(id)
	r.state.Leftovers = append(r.state.Leftovers, k)
	return k
}

// value is a stored value in memory. A small one that is not kept is empty.
func value(version uint64, small []byte, size int, keep bool) keyspace.Value {
	v := keyspace.Value{Version: version}
	switch {
	case content.IsLarge(size), size > 0 && small == nil:
		v.Size = uint32(size)
	case keep:
		v.Small = append([]byte{}, small...)
	default:
		v.Small = []byte{}
	}
	return v
}
