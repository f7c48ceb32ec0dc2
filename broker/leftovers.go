package broker

import (
	"github.com/holdfast-queue/holdfast/broker/keyspace"
	"github.com/holdfast-queue/holdfast/storage"
)

// Leftovers are keys that nobody can name any more, whose records are still on disk: the fields of
// hashes, and all keys after a Flush. The committer deletes them in slices. A start finds what was
// left of them.

// maySweep says that the open batch takes deletes of what is left over: half of it is for others.
func (b *Broker) maySweep() bool {
	return !b.refusesDelivery() && b.open.ops.Len() < b.limits.MaxOps/2
}

// sweepKeys deletes records of leftovers. It is the committer's, and returns true if it has to go
// on once others had the lock.
func (b *Broker) sweepKeys() (more bool) {
	for n := min(sweepSlice, b.limits.MaxOps/4); n > 0 && len(b.leftovers) > 0 && b.maySweep(); n-- {
		last := len(b.leftovers) - 1
		if k := b.leftovers[last]; k == nil || !b.sweepRecord(k) {
			b.leftovers = b.leftovers[:last]
		}
	}
	if len(b.leftovers) == 0 {
		b.leftovers = nil
	}
	return len(b.leftovers) > 0 && b.maySweep()
}

// sweepRecord deletes one record of a key that is left over; false if it has none.
func (b *Broker) sweepRecord(k *keyspace.Entry) bool {
	if k.Version != 0 {
		b.open.ops.DeleteHead(k.ID, marked(&k.Value))
		k.Version = 0
		return true
	}
	if k.Kind() != keyspace.Hash {
		return false
	}
	f := k.LastField()
	if f == nil {
		return false
	}
	b.open.ops.DeleteField(k.ID, f.ID, marked(&f.Value))
	k.RemoveField(f)
	return true
}

// sweepOrphans deletes delivery states that a start found without their packets, or with packets
// that had expired, which go with them. It is the committer's, and returns true if it has to go on
// once others had the lock.
func (b *Broker) sweepOrphans() (more bool) {
	for n := min(sweepSlice, b.limits.MaxOps/8); n > 0 && len(b.orphans) > 0 && b.maySweep(); n-- {
		last := len(b.orphans) - 1
		if o := &b.orphans[last]; o.Packet != (storage.PacketID{}) {
			b.open.ops.Delete(o.Packet, o.Removed)
		} else {
			b.open.ops.DeleteDelivery(o.Identity, o.Stored)
		}
		b.orphans = b.orphans[:last]
	}
	if len(b.orphans) == 0 {
		b.orphans = nil
	}
	return len(b.orphans) > 0 && b.maySweep()
}
