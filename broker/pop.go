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
	End         End
	Count       int     // how many packets at most; 0 is one
	Group       bool    // with the selected packet, every other of its key; Count is 0 then
	WithDetails bool    // the reply has details
	Fits16      bool    // no packet whose key or payload has more than MaxNarrow bytes: it stays queued
	Filter      *Filter // nil: any packet
	MustFind    bool    // ErrNothing, instead of a reply, if there is nothing to take
}

// Pop takes what s selects from the queue, for c. The reply goes to c's receiver, with the tag. It
// has no packets if none can be selected or the queue is unknown (pinpriq document, section pop).
func (tx *Tx) Pop(c *Conn, name []byte, s Selection, tag Tag) error {
	if err := tx.beginTake(); err != nil {
		return err
	}
	b := tx.b
	q, err := tx.openForTake(name)
	if err == nil {
		err = b.checkFilter(q, s.Filter)
	}
	if err != nil {
		return err
	}
	ok := false
	if q != nil {
		ok, err = tx.popGroup(q, s, c, tag)
	}
	switch {
	case err != nil:
		return err
	case ok:
		tx.useRole(q, consumerRole)
	case s.MustFind:
		return ErrNothing
	default:
		b.queueReply(c, len(b.open.records), replyPackets, tag, 0)
	}
	return nil
}

// Takeable is how many packets a take may find in a queue, at most; 0 if it would find none. Only
// one that must find something is told of no packet that cannot be read. ErrInUse, and
// ErrNotInOrder as for CheckFilter.
func (tx *Tx) Takeable(name []byte, s Selection) (int, error) {
	b := tx.b
	q, err := tx.openForTake(name)
	if err == nil {
		err = b.checkFilter(q, s.Filter)
	}
	if q == nil || err != nil {
		return 0, err
	}
	if s.Filter != nil {
		if _, ok := b.ix.Best(q.ix, b.selection(q, s)); !ok {
			return 0, nil
		}
	}
	if s.MustFind && !b.readable(q, b.selection(q, s)) {
		return 0, nil
	}
	return b.ix.Counts(q.ix).Ready, nil
}

// replyBytes is what a packet counts for in a reply.
func (b *Broker) replyBytes(q *queue, p index.Packet, detail bool) int {
	bytes := weight(p) + packetOverhead
	if detail {
		bytes += b.detailBytes(q, p)
	}
	return bytes
}

// scratchBytes is what the packets of b.scratch count for in a reply.
func (b *Broker) scratchBytes(q *queue, detail bool) (bytes int) {
	for _, p := range b.scratch {
		bytes += b.replyBytes(q, p, detail)
	}
	return bytes
}

// selectPackets leaves in b.scratch what s selects, without taking it.
func (b *Broker) selectPackets(q *queue, s Selection, selection index.Selection) {
	b.scratch = b.scratch[:0]
	if !s.Group {
		n := min(max(s.Count, 1), selection.Limit.Packets)
		b.scratch = b.within(b.ix.Next(q.ix, selection, 0, n, b.scratch), selection.Limit)
	} else if best, ok := b.ix.Best(q.ix, selection); ok {
		b.scratch = b.ix.Group(best.ID, selection, b.scratch)
	}
	if s.WithDetails {
		b.cutDetailed(q)
	}
}

// cutDetailed leaves so many packets in b.scratch as a reply with details can hold.
func (b *Broker) cutDetailed(q *queue) {
	bytes := 0
	for i, p := range b.scratch {
		if bytes += b.replyBytes(q, p, true); i > 0 && bytes > MaxGroupBytes {
			b.scratch = b.scratch[:i]
			return
		}
	}
}

// selection turns s into a selection of a queue in the index, limited to what one reply can hold.
func (b *Broker) selection(q *queue, s Selection) index.Selection {
	return index.Selection{
		End: s.End, Group: s.Group, Fits16: s.Fits16, Filter: s.Filter.in(q),
		Limit: index.Limit{Packets: MaxGroup, Bytes: MaxGroupBytes},
	}
}

// popGroup pops what s selects from q and queues the reply for c. It returns false, and queues
// nothing, if nothing can be selected. Inside Atomic it may return the error of what goes beyond
// that. Every pop and delivery goes through it.
func (tx *Tx) popGroup(q *queue, s Selection, c *Conn, tag Tag) (ok bool, err error) {
	b := tx.b
	b.logWide(q, s)
	records := b.takeable(q, s, b.selection(q, s))
	if len(records) == 0 {
		return false, nil
	}
	first, bytes, kind := len(b.open.records), b.scratchBytes(q, s.WithDetails), replyPackets
	if err := tx.useReply(bytes); err != nil {
		return false, err
	}
	if s.WithDetails {
		kind = replyDetailed
	}
	for _, p := range b.scratch {
		if s.WithDetails {
			b.detail(q, p)
		}
		b.ix.Remove(p.ID)
		b.deletePacket(q, p)
	}
	b.open.appendRecords(records...)
	b.queueReply(c, first, kind, tag, bytes)
	b.count(q, &q.counters.Popped, len(b.scratch))
	b.changed(q)
	return true, nil
}

// within returns the packets up to the first that goes beyond the limit.
func (b *Broker) within(packets []index.Packet, l index.Limit) []index.Packet {
	bytes := int64(0)
	for i, p := range packets {
		if bytes += int64(weight(p)); i > 0 && bytes > l.Bytes {
			return packets[:i]
		}
	}
	return packets
}

// logWide logs, once a queue, that a selection leaves packets in it.
func (b *Broker) logWide(q *queue, s Selection) {
	if !s.Fits16 || q.wideLogged {
		return
	}
	if _, wide := b.ix.Widths(q.ix); wide {
		q.wideLogged = true
		b.log.Warn("packets stay queued: their keys or payloads are too long for the protocol of a consumer",
			"queue", q.entry.Name(), "limit", MaxNarrow)
	}
}

// deletePacket removes a packet that has left the index, or its place there, from the store, with
// its delivery state.
func (b *Broker) deletePacket(q *queue, p index.Packet) {
	b.leaveConsumer(p)
	if p.HasUnique {
		b.endUnique(q, p.Identity)
	}
	if op, ok := b.open.puts.find(q.packet(p)); ok {
		b.open.ops.Cancel(op)
		b.deleteDelivery(p)
		return
	}
	b.open.ops.Delete(q.packet(p), removed(p))
}

// deleteDelivery removes the records of a packet's delivery state from the store.
func (b *Broker) deleteDelivery(p index.Packet) {
	if p.Stored != 0 {
		b.open.ops.DeleteDelivery(p.Identity, storage.Stored(p.Stored))
	}
}

// removed is what the storage has to know of a packet that goes with its delivery state.
func removed(p index.Packet) storage.Removed {
	return storage.Removed{
		Expires: p.Flags&storage.FlagExpires != 0, Large: p.Flags&storage.FlagLarge != 0,
		Stored: storage.Stored(p.Stored), Identity: p.Identity,
	}
}
