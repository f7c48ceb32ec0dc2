package broker

import (
	"math"

	"github.com/holdfast-queue/holdfast/storage"
)

// Flush deletes everything of the present database, or of all: every queue, string and hash. One
// record says so; Work deletes what is on disk in slices, and that record at last.
func (tx *Tx) Flush(all bool) error {
	if err := tx.begin(); err != nil {
		return err
	}
	m, from, to := tx.m, tx.db, tx.db
	if all {
		from, to = 0, Databases-1
	}
	reused := m.reusesNumbers()
	for db := from; db <= to; db++ {
		m.flushed(db)
		m.leftovers = append(m.leftovers, m.names.Flush(db)...)
		m.flush[db].Keys = m.marks.LastKey + 1
		if !reused { // what an earlier flush drops stays dropped
			m.flush[db].Queues = m.marks.NextQueue
		}
	}
	m.open.ops.SetFlush(m.flush)
	m.queues.withSettings = nil      // to take hundreds of thousands out one by one takes long
	for _, q := range m.queues.all { // but for those that come meanwhile
		if q == nil || q.dropped {
			continue
		}
		if db := q.entry.Database(); db < from || db > to {
			m.queues.setSettings(q, q.settings)
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
	return nil
}

// reusesNumbers says that new queues get numbers that are free again.
func (m *Machine) reusesNumbers() bool { return m.marks.NextQueue == math.MaxUint32 }

// flushesReused says that a new queue would get a number that the flush under way drops.
func (m *Machine) flushesReused() bool {
	return m.flush[m.tx.db].Queues != 0 && m.reusesNumbers()
}

// endFlush removes the record of a flush when nothing is left of what it dropped. It is a part of
// Work.
func (m *Machine) endFlush() {
	if m.flush != (storage.Flush{}) && len(m.dropped)+len(m.leftovers) == 0 && !m.open.full(m.limits) {
		m.flush = storage.Flush{}
		m.open.ops.SetFlush(m.flush)
	}
}
