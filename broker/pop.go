package broker

import (
	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/storage"
)

// End is the end of equal priority that a consumer takes from.
type End = index.End

// The two ends. The choice is the consumer's, not the queue's.
const (
	Newest = index.Newest // last pushed first (pinpriq document, section pop)
	Oldest = index.Oldest // first pushed first
)

// Selection says which packets of a queue a consumer takes.
type Selection struct {
	End    End
	Count  int  // how many packets at most; 0 is one
	Group  bool // with the selected packet, every other of its key; Count is 0 then
	Narrow bool // no packet whose key or payload has more than MaxNarrow bytes: it stays queued
}

// Pop takes what s selects from the queue, for c. The reply goes to c's receiver, with the tag. It
// has no packets if none can be selected or the queue is unknown (pinpriq document, section pop).
func (tx *Tx) Pop(c *Consumer, name []byte, s Selection, tag Tag) error {
	if err := tx.begin(Room{}); err != nil {
		return err
	}
	b := tx.b
	if b.spaceLevel(tx.now) >= storage.Stop {
		return ErrStopped
	}
	q := b.queues.find(name)
	if q != nil && tx.atomic {
		if err := tx.useGroup(q, s); err != nil {
			return err
		}
	}
	if q == nil || !b.popGroup(q, s, c, tag) {
		b.queueReply(c, len(b.open.records), replyPackets, tag, 0)
	}
	return nil
}

// useGroup takes what a pop would take from what Atomic reserved.
func (tx *Tx) useGroup(q *queue, s Selection) error {
	b := tx.b
	selection := b.selection(s)
	best, ok := b.ix.Best(q.ix, selection)
	if !ok {
		return nil
	}
	n, bytes := 1, int(best.Size)
	if s.Group {
		b.scratch = b.ix.Group(best.ID, selection, b.scratch[:0])
		n, bytes = len(b.scratch), 0
		for _, p := range b.scratch {
			bytes += int(p.Size)
		}
	}
	if err := tx.use(Room{Deletes: n}); err != nil {
		return err
	}
	return tx.useReply(bytes)
}

// selection turns s into a selection of the index, limited to what one reply can hold.
func (b *Broker) selection(s Selection) index.Selection {
	return index.Selection{
		End: s.End, Group: s.Group, Narrow: s.Narrow,
		Limit: index.Limit{Packets: b.limits.group, Bytes: MaxGroupBytes},
	}
}

// popGroup pops what s selects from q and queues the reply for c. It returns false, and queues
// nothing, if nothing can be selected. Every pop and delivery goes through it.
func (b *Broker) popGroup(q *queue, s Selection, c *Consumer, tag Tag) bool {
	b.logWide(q, s)
	selection := b.selection(s)
	b.scratch = b.ix.Pop(q.ix, selection, b.scratch[:0])
	if len(b.scratch) == 0 {
		return false
	}
	first, bytes := len(b.open.records), 0
	for _, p := range b.scratch {
		b.open.records = append(b.open.records, b.popRecord(q, p))
		bytes += int(p.Size)
	}
	if len(b.open.misses) > 0 && b.open.missed == nil {
		b.open.missed, b.open.missedSelection = q, selection
	}
	b.queueReply(c, first, replyPackets, tag, bytes)
	b.markEmpty(q)
	return true
}

// logWide logs, once a queue, that a selection leaves packets in it.
func (b *Broker) logWide(q *queue, s Selection) {
	if !s.Narrow || q.wideLogged {
		return
	}
	if _, wide := b.ix.Widths(q.ix); wide {
		q.wideLogged = true
		b.log.Warn("packets stay queued: their keys or payloads are too long for the protocol of a consumer",
			"queue", q.name, "limit", MaxNarrow)
	}
}

// popRecord removes a packet that has left the index from the store and returns its record. If that
// is on disk only, it returns nil and notes that the committer has to read it.
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

// deletePacket removes a packet that has left the index, or its place there, from the store.
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
