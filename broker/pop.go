package broker

import (
	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/storage"
)

// End is which end of equal priority a consumer takes from.
type End = index.End

// The two ends. The choice is the consumer's, not the queue's.
const (
	Newest = index.Newest // last pushed first (pinpriq document, section pop)
	Oldest = index.Oldest // first pushed first
)

// Pop takes the best packet of the queue, at the newest or oldest end of its priority, with all
// that have its key, for c. The reply goes to c's receiver: no packets if none is selectable,
// which an unknown queue answers as well (pinpriq document, section pop).
func (tx *Tx) Pop(c *Consumer, name []byte, end End) error {
	if err := tx.begin(0); err != nil {
		return err
	}
	b := tx.b
	if b.spaceLevel(tx.now) >= storage.Stop {
		return ErrStopped
	}
	q := b.queues.find(name)
	if q == nil || !b.popGroup(q, end, c) {
		b.queueReply(c, len(b.open.records), replyPackets, 0)
	}
	return nil
}

// popGroup pops from q for c. It returns false, and answers nothing, if nothing is selectable.
func (b *Broker) popGroup(q *queue, end End, c *Consumer) bool {
	b.scratch = b.ix.Pop(q.ix, index.Selection{
		End: end, Group: true, Limit: index.Limit{Packets: b.limits.group, Bytes: MaxGroupBytes},
	}, b.scratch[:0])
	if len(b.scratch) == 0 {
		return false
	}
	first, owed := len(b.open.records), 0
	for _, p := range b.scratch {
		b.open.records = append(b.open.records, b.popRecord(q, p))
		owed += int(p.Size)
	}
	if len(b.open.misses) > 0 && b.open.missed == nil {
		b.open.missed, b.open.missedEnd = q, end
	}
	b.queueReply(c, first, replyPackets, owed)
	b.markEmpty(q)
	return true
}

// popRecord removes a packet that left the index and returns its record, or nil after noting
// that the committer has to read it.
func (b *Broker) popRecord(q *queue, p index.Packet) []byte {
	if op, ok := b.open.pushed(p.Seq); ok {
		b.stats.cancelled.Add(1)
		record := b.open.ops.Record(op)
		b.open.ops.Cancel(op)
		return record
	}
	b.deletePacket(q, p)
	if record := b.cache.get(p.Ref, p.Seq); record != nil {
		return b.open.copy(record)
	}
	b.stats.misses.Add(1)
	b.open.misses = append(b.open.misses, miss{id: q.packet(p), record: int32(len(b.open.records)), expiry: p.Expiry})
	return nil
}

// deletePacket removes a packet that left the index from the store.
func (b *Broker) deletePacket(q *queue, p index.Packet) {
	if op, ok := b.open.pushed(p.Seq); ok {
		b.open.ops.Cancel(op)
		return
	}
	b.open.ops.Delete(q.packet(p), storage.Removed{
		Expires: p.Flags&storage.FlagExpires != 0,
		Large:   p.Flags&storage.FlagLarge != 0,
	})
}
