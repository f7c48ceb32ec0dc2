package broker

import (
	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/storage"
)

// A key is a string or a hash as the index and the store have it. Its head is one record: name,
// expiry, and the value of a string. Each field of a hash is another. Every write has a new
// version.

// putHead brings the head of a key to the open batch again. Its value stays as it is.
func (b *Broker) putHead(k *index.Key) {
	if k.Large() {
		b.storeHead(k, &storage.Head{Size: k.Len(), KeepValue: true})
	} else {
		b.storeHead(k, &storage.Head{Value: k.Small})
	}
}

// storeHead puts a head, with the value that h has, under a new version.
func (b *Broker) storeHead(k *index.Key, h *storage.Head) {
	old := marked(&k.Value)
	k.Version = b.nextKey()
	b.name = append(b.name[:0], k.Name()...)
	h.ID, h.Kind, h.Name, h.Version, h.Expiry = k.ID, storage.Kind(k.Kind()), b.name, k.Version, k.Expiry()
	b.open.ops.PutHead(h, old)
}

// nextKey returns a number or version for a key or field that nothing had before.
func (b *Broker) nextKey() uint64 {
	b.marks.LastKey++
	return b.marks.LastKey
}

// deleteKey deletes a string or hash. The fields of a hash are left to the sweeper.
func (b *Broker) deleteKey(k *index.Key) {
	b.touchName(k.Name())
	b.keys.Remove(k)
	b.open.ops.DeleteHead(k.ID, marked(&k.Value))
	k.Version = 0
	if k.Kind() == index.HashKey {
		b.leftovers = append(b.leftovers, k)
		b.signal()
	}
}

// marked is what the storage must know of a head or field that it holds already.
func marked(v *index.Value) storage.Mark {
	return storage.Mark{Version: v.Version, Large: v.Version != 0 && v.Large()}
}
