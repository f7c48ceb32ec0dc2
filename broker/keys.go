package broker

import (
	"github.com/holdfast-queue/holdfast/broker/keyspace"
	"github.com/holdfast-queue/holdfast/storage"
)

// A key is a string or a hash as the index and the store have it. Its head is one record: name,
// expiry, and the value of a string. Each field of a hash is another. Every write has a new
// version.

// putHead brings the head of a key to the open batch again. Its value stays as it is.
func (b *Broker) putHead(k *keyspace.Entry) {
	if k.Large() {
		b.storeHead(k, &storage.Head{Size: k.Len(), KeepValue: true})
	} else {
		b.storeHead(k, &storage.Head{Value: k.Small})
	}
}

// storeHead puts a head, with the value that h has, under a new version.
func (b *Broker) storeHead(k *keyspace.Entry, h *storage.Head) {
	old := marked(&k.Value)
	k.Version = b.nextKey()
	b.name = append(b.name[:0], k.Name()...)
	h.ID, h.Kind, h.Database, h.Name, h.Version, h.Expiry = k.ID, storage.Kind(k.Kind()), k.Database(), b.name, k.Version, k.Expiry()
	b.open.ops.PutHead(h, old)
}

// nextKey returns a number or version for a key or field that nothing had before.
func (b *Broker) nextKey() uint64 {
	b.marks.LastKey++
	return b.marks.LastKey
}

// findKey returns the string or hash that has the name, nil if nothing has it. ErrWrongType.
func (b *Broker) findKey(name []byte, kind keyspace.Kind) (*keyspace.Entry, error) {
	switch k := b.named(name); typeOf(k) {
	case kind:
		return k, nil
	case keyspace.None:
		return nil, nil
	}
	return nil, ErrWrongType
}

// addValue makes a string or a hash of a name that stands for nothing.
func (b *Broker) addValue(name []byte, kind keyspace.Kind) *keyspace.Entry {
	k := b.names.Make(b.tx.db, name)
	b.names.Set(k, kind)
	k.ID = b.nextKey()
	return k
}

// deleteValue deletes a string or hash. The fields of a hash are left to the sweeper.
func (b *Broker) deleteValue(k *keyspace.Entry) {
	b.changedName(k)
	b.open.ops.DeleteHead(k.ID, marked(&k.Value))
	if k.Kind() == keyspace.String {
		b.names.Set(k, keyspace.None)
		return
	}
	k.Version = 0
	b.leftovers = append(b.leftovers, b.names.Detach(k))
	b.signal()
}

// marked is what the storage must know of a head or field that it holds already.
func marked(v *keyspace.Value) storage.Mark {
	return storage.Mark{Version: v.Version, Large: v.Version != 0 && v.Large()}
}
