package broker

import (
	"math"

	"github.com/holdfast-queue/holdfast/storage"
)

// Flush deletes everything of the present database, or of all: every queue, string and hash. One
// record says so; the committer deletes what is on disk in slices, and that record at last.
func (tx *Tx) Flush(all bool) error {
	if err := tx.begin(); err != nil {
		return err
	}
	b, from, to := tx.b, tx.db, tx.db
	if all {
		from, to = 0, Databases-1
	}
	reused := b.reusesNumbers()
	for db := from; db <= to; db++ {
		b.flushed(db)
		b.leftovers = append(b.leftovers, b.names.Flush(db)...)
		b.flush[db].Keys = b.marks.LastKey + 1
		if !reused { // what an earlier flush drops stays dropped
			b.flush[db].Queues = b.marks.NextQueue
		}
	}
	b.open.ops.SetFlush(b.flush)
	b.queues.withSettings = nil      // to take hundreds of thousands out one by one takes long
	for _, q := range b.queues.all { // but for those that come meanwhile
		if q == nil || q.dropped {
			continue
		}
		if db := q.entry.Database(); db < from || db > to {
			b.queues.setSettings(q, q.settings)
			continue
		}
		b.retire(q)
		if reused {
			b.open.ops.PutQueue(b.definition(q))
		}
		if q.awaited() {
			b.moveWaiters(q, b.addQueue(q.entry.Database(), q.entry.Name()))
		}
	}
	return nil
}

// reusesNumbers says that new queues get numbers that are free again.
func (b *Broker) reusesNumbers() bool { return b.marks.NextQueue == math.MaxUint32 }

// flushesReused says that a new queue would get a number that the flush under way drops.
func (b *Broker) flushesReused() bool {
	return b.flush[b.tx.db].Queues != 0 && b.reusesNumbers()
}

// endFlush removes the record of a flush when nothing is left of what it dropped. It is the
// committer's.
func (b *Broker) endFlush() {
	if b.flush != (storage.Flush{}) && len(b.dropped)+len(b.leftovers) == 0 && !b.open.full(b.limits) {
		b.flush = storage.Flush{}
		b.open.ops.SetFlush(b.flush)
	}
}
