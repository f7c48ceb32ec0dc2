package broker

import (
	"math"
	"slices"

	"github.com/holdfast-queue/holdfast/broker/keyspace"
	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/storage"
)

// Garbage is what no call finds any more, and whose records are still on disk: dropped queues, the
// fields of hashes, and all that a Flush drops. Work deletes it in slices. A start finds what was
// left of it, and records that lost what they belong to.

// sweepSlice is how many records go, or are looked at, before others have their turn.
const sweepSlice = 1024

// garbage is some of it.
type garbage interface {
	// sweep deletes some of its records, about n at most. It returns how many it looked at, and
	// whether nothing is left.
	sweep(m *Machine, n int) (looked int, over bool)
}

// sweep deletes a slice of the garbage. It takes half of the open batch: the rest is for others.
// When all is deleted that a Flush dropped, the record of that goes. It is a part of Work.
func (m *Machine) sweep() (more bool) {
	for n := min(sweepSlice, m.limits.MaxOps/4); n > 0 && len(m.garbage) > 0 && m.maySweep(); {
		last := len(m.garbage) - 1 // so that the list of what a Flush has dropped stays short
		looked, over := m.garbage[last].sweep(m, n)
		if n -= looked; over {
			m.garbage = slices.Delete(m.garbage, last, last+1)
		}
	}
	if len(m.garbage) > 0 {
		return m.maySweep()
	}
	m.garbage = nil
	if m.flush != (storage.Flush{}) && !m.open.full(m.limits) {
		m.flush = storage.Flush{}
		m.open.ops.SetFlush(m.flush)
	}
	return false
}

func (m *Machine) maySweep() bool {
	return !m.refusesDelivery() && m.open.ops.Len() < m.limits.MaxOps/2
}

// sweep deletes packets and windows of a dropped queue, and the queue with the last of them.
func (q *queue) sweep(m *Machine, n int) (looked int, over bool) {
	packets := m.ix.Next(q.ix, index.Selection{}, 0, n, m.scratch[:0])
	for state := index.Ready; len(packets) == 0 && state <= index.Damaged; state++ {
		packets = m.ix.List(q.ix, state, index.Place{}, n, packets)
	}
	m.scratch = packets
	m.dropNow(q, packets)
	for looked = len(packets); looked < n; looked++ {
		identity, ok := m.ix.EndWindow(q.ix)
		if !ok {
			break
		}
		m.endUnique(q, identity)
	}
	if m.ix.Counts(q.ix).Len() > 0 || m.ix.HasWindow(q.ix) {
		return looked, false
	}
	m.release(q)
	return looked + 1, true
}

// pile is garbage of one kind. remove deletes a record of x, and returns true if that has more.
type pile[T any] struct {
	left   []T
	remove func(m *Machine, x T) (more bool)
}

func (p *pile[T]) sweep(m *Machine, n int) (looked int, over bool) {
	for ; looked < n && len(p.left) > 0; looked++ {
		if last := len(p.left) - 1; !p.remove(m, p.left[last]) {
			p.left = p.left[:last]
		}
	}
	return looked, len(p.left) == 0
}

// discard makes garbage of one kind.
func discard[T any](m *Machine, all []T, remove func(m *Machine, x T) (more bool)) {
	if len(all) > 0 {
		m.garbage = append(m.garbage, &pile[T]{all, remove})
	}
}

// loadGarbage gives Work what a start has found.
func (m *Machine) loadGarbage(state *recovery.State) {
	for _, r := range state.Dropped {
		q := &queue{id: r.ID, ix: r.Index, defined: true, dropped: true}
		m.queues.add(q)
		m.garbage = append(m.garbage, q)
	}
	discard(m, state.Leftovers, (*Machine).removeKey)
	discard(m, state.Orphans, func(m *Machine, o recovery.Orphan) (more bool) {
		if o.Packet != (storage.PacketID{}) { // it has expired, and its delivery state goes with it
			m.open.ops.Delete(o.Packet, o.Removed)
		} else {
			m.open.ops.DeleteDelivery(o.Identity, o.Stored)
		}
		return false
	})
	discard(m, state.EndedUniques, func(m *Machine, id storage.UniqueID) (more bool) {
		m.open.ops.DeleteUnique(id)
		return false
	})
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

// Flush deletes everything of the present database, or of all: every queue, string and hash. One
// record says so, which drops what has a lower number. Work deletes that from the disk.
func (tx *Tx) Flush(all bool) error {
	m, from, to := tx.m, tx.db, tx.db
	if all {
		from, to = 0, Databases-1
	}
	reused := m.reusesNumbers()
	for db := from; db <= to; db++ {
		m.flushed(db)
		discard(m, m.names.Flush(db), (*Machine).removeKey)
		m.queues.names[db].n, m.queues.names[db].bytes = 0, 0
		m.flush[db].Keys = m.marks.LastKey + 1
		if !reused { // what an earlier flush drops stays dropped
			m.flush[db].Queues = m.marks.NextQueue
		}
	}
	m.open.ops.SetFlush(m.flush)
	for _, q := range m.queues.all {
		if q == nil || !reused && !q.awaited() || q.dropped { // Work retires the others
			continue
		}
		if db := q.entry.Database(); db < from || db > to {
			continue
		}
		m.retire(q)
		if reused {
			m.open.ops.PutQueue(m.definition(q))
		}
		if q.awaited() {
			m.moveWaiters(q, m.addQueue(q.entry.Database(), q.entry.Name()))
		}
	}
	left := flushedQueues(len(m.queues.all))
	m.garbage = append(m.garbage, &left)
	return nil
}

// flushedQueues are the queues below a number of the index that a Flush has dropped.
type flushedQueues int

func (left *flushedQueues) sweep(m *Machine, n int) (looked int, over bool) {
	to := min(int(*left), len(m.queues.all))
	from := max(0, to-n)
	for _, q := range m.queues.all[from:to] {
		if q != nil && m.isFlushed(q) {
			m.retire(q)
		}
	}
	*left = flushedQueues(from)
	return n, from == 0
}

// isFlushed says that a Flush has dropped a queue, which has yet to be retired. No call finds it by
// its name.
func (m *Machine) isFlushed(q *queue) bool {
	return !q.dropped && q.id < m.flush[q.entry.Database()].Queues
}

// reusesNumbers says that new queues get numbers that are free again.
func (m *Machine) reusesNumbers() bool { return m.marks.NextQueue == math.MaxUint32 }

// flushesReused says that a new queue would get a number that the flush under way drops.
func (m *Machine) flushesReused() bool {
	return m.flush[m.tx.db].Queues != 0 && m.reusesNumbers()
}
