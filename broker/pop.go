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

// Selection says which packets of a queue a consumer takes.
type Selection struct {
	End    End
	Group  bool // with the selected packet, every other of its key
	Narrow bool // no packet whose key or payload has more than MaxNarrow bytes: it stays queued
}

func (s Selection) ofIndex(b *Broker) index.Selection {
	return index.Selection{
		End: s.End, Group: s.Group, Narrow: s.Narrow,
		Limit: index.Limit{Packets: b.limits.group, Bytes: MaxGroupBytes},
	}
}

// Pop takes the best packet of the queue, and what else the selection says, for c. The reply goes to
// c's receiver: no packets if none can be selected, as in an unknown queue (pinpriq document,
// section pop).
func (tx *Tx) Pop(c *Consumer, name []byte, s Selection) error {
	if err := tx.begin(0); err != nil {
		return err
	}
	b := tx.b
	if b.spaceLevel(tx.now) >= storage.Stop {
		return ErrStopped
	}
	q := b.queues.find(name)
	if q == nil || !b.popGroup(q, s, c) {
		b.queueReply(c, len(b.open.records), replyPackets, 0)
	}
	return nil
}

// popGroup pops from q for c. It returns false, and answers nothing, if nothing can be selected.
func (b *Broker) popGroup(q *queue, s Selection, c *Consumer) bool {
	b.noteWide(q, s)
	selection := s.ofIndex(b)
	b.scratch = b.ix.Pop(q.ix, selection, b.scratch[:0])
	if len(b.scratch) == 0 {
		return false
	}
	first, owed := len(b.open.records), 0
	for _, p := range b.scratch {
		b.open.records = append(b.open.records, b.popRecord(q, p))
		owed += int(p.Size)
	}
	if len(b.open.misses) > 0 && b.open.missed == nil {
		b.open.missed, b.open.missedSelection = q, selection
	}
	b.queueReply(c, first, replyPackets, owed)
	b.markEmpty(q)
	return true
}

// noteWide logs, once a queue, that a selection leaves packets in it.
func (b *Broker) noteWide(q *queue, s Selection) {
	if !s.Narrow || q.wideNoted {
		return
	}
	if _, wide := b.ix.Widths(q.ix); wide {
		q.wideNoted = true
		b.log.Warn("packets stay queued: their keys or payloads are too long for the protocol of a consumer",
			"queue", q.name, "limit", MaxNarrow)
	}
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
