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
	if err := tx.beginTake(Room{}); err != nil {
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

// Takeable is how many packets a take may find in a queue, at most; 0 if it would find none.
// ErrInUse, and ErrNotInOrder as for CheckFilter.
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
		Limit: index.Limit{Packets: b.limits.group, Bytes: MaxGroupBytes},
	}
}

// popGroup pops what s selects from q and queues the reply for c. It returns false, and queues
// nothing, if nothing can be selected. Inside Atomic it may return the error of what goes beyond
// that. Every pop and delivery goes through it.
func (tx *Tx) popGroup(q *queue, s Selection, c *Conn, tag Tag) (ok bool, err error) {
	b := tx.b
	b.logWide(q, s)
	selection, atOnce := b.selection(q, s), !tx.atomic && !s.WithDetails && s.Count <= 1
	if atOnce {
		b.scratch = b.ix.Pop(q.ix, selection, b.scratch[:0])
	} else {
		b.selectPackets(q, s, selection)
	}
	if len(b.scratch) == 0 {
		return false, nil
	}
	first, bytes, kind := len(b.open.records), b.scratchBytes(q, s.WithDetails), replyPackets
	if tx.atomic {
		if err = tx.use(Room{Deletes: len(b.scratch)}); err == nil {
			err = tx.useReply(bytes)
		}
		if err != nil {
			return false, err
		}
	}
	if s.WithDetails {
		kind = replyDetailed
	}
	for _, p := range b.scratch {
		if s.WithDetails {
			b.detail(q, p)
		}
		if !atOnce {
			b.ix.Remove(p.ID)
		}
		b.popRecord(q, p)
	}
	if len(b.open.misses) > 0 {
		b.open.readAhead(q, selection)
	}
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

// popRecord removes a packet that has left the index from the store and appends its record to the
// reply that is being made.
func (b *Broker) popRecord(q *queue, p index.Packet) {
	at := b.locate(q.packet(p), p.Ref)
	b.replyRecord(at, p.Expiry)
	b.deleteRecord(q, p, at.op)
}

// deletePacket removes a packet that has left the index, or its place there, from the store.
func (b *Broker) deletePacket(q *queue, p index.Packet) {
	op, ok := b.open.puts.find(q.packet(p))
	if !ok {
		op = -1
	}
	b.deleteRecord(q, p, op)
}

// deleteRecord removes a packet from the store, with its delivery state. op is the operation of the
// open batch that puts it, or -1.
func (b *Broker) deleteRecord(q *queue, p index.Packet, op int) {
	b.leaveConsumer(p)
	if p.HasUnique {
		b.endUnique(q, p.Identity)
	}
	if op >= 0 {
		b.stats.cancelled.Add(1)
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
