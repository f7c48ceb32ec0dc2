package broker

import (
	"github.com/holdfast-queue/holdfast/index/keyspace"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// A key is a string or a hash as the index and the store have it. Its head is one record: name,
// expiry, and the value of a string. Each field of a hash is another. Every write has a new
// version.

// putHead brings the head of a key to the open batch again. Its value stays as it is.
func (m *Machine) putHead(k *keyspace.Entry) {
	if k.Large() {
		m.storeHead(k, &content.Head{Size: k.Len(), KeepValue: true})
	} else {
		m.storeHead(k, &content.Head{Value: k.Small})
	}
}

// storeHead puts a head, with the value that h has, under a new version.
func (m *Machine) storeHead(k *keyspace.Entry, h *content.Head) {
	old := marked(&k.Value)
	k.Version = m.nextKey()
	m.name = append(m.name[:0], k.Name()...)
	h.ID, h.Kind, h.Database, h.Name, h.Version, h.Expiry = k.ID, content.Kind(k.Kind()), k.Database(), m.name, k.Version, k.Expiry()
	h.Rest = m.rests.Items[content.ValueID{ID: k.ID}]
	m.open.ops.PutHead(h, old)
}

// nextKey returns a number or version for a key or field that nothing had before.
func (m *Machine) nextKey() uint64 {
	m.marks.LastKey++
	return m.marks.LastKey
}

// findKey returns the string or hash that has the name, nil if nothing has it. ErrWrongType.
func (m *Machine) findKey(name []byte, kind keyspace.Kind) (*keyspace.Entry, error) {
	switch k := m.named(name); k.Kind() {
	case kind:
		return k, nil
	case keyspace.None:
		return nil, nil
	}
	return nil, ErrWrongType
}

// addValue makes a string or a hash of a name that stands for nothing.
func (m *Machine) addValue(name []byte, kind keyspace.Kind) *keyspace.Entry {
	k := m.names.Make(m.tx.db, name)
	m.names.Set(k, kind)
	k.ID = m.nextKey()
	return k
}

// deleteValue deletes a string or hash. The fields of a hash are left to Work.
func (m *Machine) deleteValue(k *keyspace.Entry) {
	m.changedName(k)
	m.open.ops.DeleteHead(k.ID, marked(&k.Value))
	if k.Kind() == keyspace.String {
		m.names.Set(k, keyspace.None)
		return
	}
	k.Version = 0
	discard(m, []*keyspace.Entry{m.names.Detach(k)}, (*Machine).removeKey)
}

// marked returns what the storage must know about a head or field that it has already.
func marked(v *keyspace.Value) content.Mark {
	return content.Mark{Version: v.Version, Large: v.Version != 0 && v.Large(), Size: v.Len()}
}

// removeKey deletes a record of a key that nobody can name any more, nil for none.
func (m *Machine) removeKey(k *keyspace.Entry) (more bool) {
	switch {
	case k == nil:
		return false
	case k.Version != 0:
		m.open.ops.DeleteHead(k.ID, marked(&k.Value))
		k.Version = 0
	case k.Kind() == keyspace.Hash && k.Fields() > 0:
		f := k.LastField()
		m.open.ops.DeleteField(k.ID, f.ID, marked(&f.Value))
		k.RemoveField(f)
	}
	return k.Kind() == keyspace.Hash && k.Fields() > 0
}
