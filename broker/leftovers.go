package broker

import (
	"github.com/holdfast-queue/holdfast/broker/keyspace"
	"github.com/holdfast-queue/holdfast/storage"
)

// Leftovers are keys that nobody can name any more, whose records are still on disk: the fields of
// hashes, and all keys after a Flush. Work deletes them in slices. A start finds what was left of
// them.

// maySweep says that the open batch takes deletes of what is left over: half of it is for others.
func (m *Machine) maySweep() bool {
	return !m.refusesDelivery() && m.open.ops.Len() < m.limits.MaxOps/2
}

// sweepKeys deletes records of leftovers. It is a part of Work.
func (m *Machine) sweepKeys() (more bool) {
	for n := min(sweepSlice, m.limits.MaxOps/4); n > 0 && len(m.leftovers) > 0 && m.maySweep(); n-- {
		last := len(m.leftovers) - 1
		if k := m.leftovers[last]; k == nil || !m.sweepRecord(k) {
			m.leftovers = m.leftovers[:last]
		}
	}
	if len(m.leftovers) == 0 {
		m.leftovers = nil
	}
	return len(m.leftovers) > 0 && m.maySweep()
}

// sweepRecord deletes one record of a key that is left over; false if it has none.
func (m *Machine) sweepRecord(k *keyspace.Entry) bool {
	if k.Version != 0 {
		m.open.ops.DeleteHead(k.ID, marked(&k.Value))
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
	m.open.ops.DeleteField(k.ID, f.ID, marked(&f.Value))
	k.RemoveField(f)
	return true
}

// sweepOrphans deletes delivery states that a start found without their packets, or with packets
// that had expired, which go with them. It is a part of Work.
func (m *Machine) sweepOrphans() (more bool) {
	for n := min(sweepSlice, m.limits.MaxOps/8); n > 0 && len(m.orphans) > 0 && m.maySweep(); n-- {
		last := len(m.orphans) - 1
		if o := &m.orphans[last]; o.Packet != (storage.PacketID{}) {
			m.open.ops.Delete(o.Packet, o.Removed)
		} else {
			m.open.ops.DeleteDelivery(o.Identity, o.Stored)
		}
		m.orphans = m.orphans[:last]
	}
	if len(m.orphans) == 0 {
		m.orphans = nil
	}
	return len(m.orphans) > 0 && m.maySweep()
}
