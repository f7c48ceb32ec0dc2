package broker

import (
	"maps"
	"math"
	"slices"

	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/storage"
)

// Flush deletes everything: every queue, string and hash. One record says so; the committer deletes
// what is on disk in slices, and that record at last.
func (tx *Tx) Flush() error {
	b := tx.b
	flush := storage.Flush{Keys: b.marks.LastKey + 1, Queues: b.marks.NextQueue}
	reused := b.reusesNumbers()
	if reused {
		flush.Queues = b.flush.Queues // what an earlier flush drops stays dropped
	}
	if err := tx.begin(tx.FlushRoom()); err != nil {
		return err
	}
	for name := range b.watches {
		if tx.Type([]byte(name)) != TypeNone {
			b.touchName(name)
		}
	}
	b.leftovers = append(b.leftovers, b.keys.All()...)
	b.keys = index.NewKeyspace()
	for _, q := range slices.Collect(maps.Values(b.queues.byName)) {
		b.leave(q)
		if reused {
			b.open.ops.PutQueue(b.definition(q))
		}
		if q.awaited() {
			b.transfer(q, b.addQueue(q.name))
		}
	}
	b.flush = flush
	b.open.ops.SetFlush(flush)
	return nil
}

// FlushRoom returns what a Flush may bring: one record, or one more for each queue where new queues
// have lower numbers.
func (tx *Tx) FlushRoom() Room {
	b := tx.b
	room := Room{Records: 1}
	if b.reusesNumbers() {
		room = room.Plus(Room{Records: len(b.queues.byName), Bytes: b.queues.bytes})
	}
	return room
}

// reusesNumbers says that new queues get numbers that are free again.
func (b *Broker) reusesNumbers() bool { return b.marks.NextQueue == math.MaxUint32 }

// flushesReused says that a new queue would get a number that the flush under way drops.
func (b *Broker) flushesReused() bool {
	return b.flush.Queues != 0 && b.reusesNumbers()
}

// endFlush removes the record of a flush when nothing is left of what it dropped. It is the
// committer's.
func (b *Broker) endFlush() {
	if b.flush != (storage.Flush{}) && len(b.dropped)+len(b.leftovers) == 0 && !b.open.full(b.limits) {
		b.flush = storage.Flush{}
		b.open.ops.SetFlush(b.flush)
	}
}
