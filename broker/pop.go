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
	MustFind    bool    // ErrNothing, in place of no packets, if there is nothing to take
}

// Found is the packets that a call took or looked at, with their details if it was asked for them.
// All of it is valid until the next call.
type Found struct {
	Packets []Packet
	Details []Detail
}

// Pop takes what s selects from the queue. It finds no packets if none can be selected or the queue
// is unknown (pinpriq document, section pop).
func (tx *Tx) Pop(name []byte, s Selection) (Found, error) {
	q, records, err := tx.take(name, s, MaxGroup)
	if len(records) == 0 || err != nil {
		return Found{}, err
	}
	tx.useRole(q, consumerRole)
	return tx.remove(q, s, records), nil
}

// take begins every call that takes packets: it leaves in m.scratch what s selects from the queue,
// at most so many packets, and returns their records. They are not taken yet. There are none if the
// queue is unknown or gives nothing now; with MustFind there is ErrNothing instead.
func (tx *Tx) take(name []byte, s Selection, most int) (q *queue, records [][]byte, err error) {
	m := tx.m
	if q, err = tx.open(name, takes); err == nil {
		err = m.checkFilter(q, s.Filter)
	}
	if err != nil {
		return nil, nil, err
	}
	if err = tx.canTake(); err != nil && s.MustFind && !m.selects(q, s) {
		err = nil // who waits for a packet waits on
	} else if err == nil && q != nil {
		records, err = tx.selectFrom(q, s, most)
	}
	if len(records) == 0 && s.MustFind && err == nil {
		err = ErrNothing
	}
	return q, records, err
}

// selects says that s selects something from a queue, which may be nil.
func (m *Machine) selects(q *queue, s Selection) bool {
	if q == nil {
		return false
	}
	_, ok := m.ix.Best(q.ix, m.selection(q, s))
	return ok
}

// selectFrom is take for a queue that gives.
func (tx *Tx) selectFrom(q *queue, s Selection, most int) (records [][]byte, err error) {
	m := tx.m
	m.logWide(q, s)
	selection := m.selection(q, s)
	selection.Limit.Packets = most
	records = m.takeable(q, s, selection)
	return records, tx.useReply(m.scratchBytes(q, s.WithDetails))
}

// replyBytes is what a packet counts for in a reply.
func (m *Machine) replyBytes(q *queue, p index.Packet, detail bool) int {
	bytes := weight(p) + packetOverhead
	if detail {
		bytes += m.detailBytes(q, p)
	}
	return bytes
}

// scratchBytes is what the packets of m.scratch count for in a reply.
func (m *Machine) scratchBytes(q *queue, detail bool) (bytes int) {
	for _, p := range m.scratch {
		bytes += m.replyBytes(q, p, detail)
	}
	return bytes
}

// selectPackets leaves in m.scratch what s selects, without taking it.
func (m *Machine) selectPackets(q *queue, s Selection, selection index.Selection) {
	m.scratch = m.scratch[:0]
	if !s.Group {
		n := min(max(s.Count, 1), selection.Limit.Packets)
		m.scratch = m.within(m.ix.Next(q.ix, selection, 0, n, m.scratch), selection.Limit)
	} else if best, ok := m.ix.Best(q.ix, selection); ok {
		m.scratch = m.ix.Group(best.ID, selection, m.scratch)
	}
	if s.WithDetails {
		m.cutDetailed(q)
	}
}

// cutDetailed leaves so many packets in m.scratch as a reply with details can hold.
func (m *Machine) cutDetailed(q *queue) {
	bytes := 0
	for i, p := range m.scratch {
		if bytes += m.replyBytes(q, p, true); i > 0 && bytes > MaxGroupBytes {
			m.scratch = m.scratch[:i]
			return
		}
	}
}

// selection turns s into a selection of a queue in the index, limited to what one reply can hold.
func (m *Machine) selection(q *queue, s Selection) index.Selection {
	return index.Selection{
		End: s.End, Group: s.Group, Fits16: s.Fits16, Filter: s.Filter.in(q),
		Limit: index.Limit{Packets: MaxGroup, Bytes: MaxGroupBytes},
	}
}

// remove takes for good what take has selected.
func (tx *Tx) remove(q *queue, s Selection, records [][]byte) Found {
	m := tx.m
	m.found.Details = m.found.Details[:0]
	for _, p := range m.scratch {
		if s.WithDetails {
			m.detail(q, p)
		}
		m.ix.Remove(p.ID)
		m.deletePacket(q, p)
	}
	m.count(q, &q.counters.Popped, len(m.scratch))
	m.changed(q)
	return m.finding(records)
}

// within returns the packets up to the first that goes beyond the limit.
func (m *Machine) within(packets []index.Packet, l index.Limit) []index.Packet {
	bytes := int64(0)
	for i, p := range packets {
		if bytes += int64(weight(p)); i > 0 && bytes > l.Bytes {
			return packets[:i]
		}
	}
	return packets
}

// logWide logs, once a queue, that a selection leaves packets in it.
func (m *Machine) logWide(q *queue, s Selection) {
	if !s.Fits16 || q.wideLogged {
		return
	}
	if _, wide := m.ix.Widths(q.ix); wide {
		q.wideLogged = true
		m.log.Warn("packets stay queued: their keys or payloads are too long for the protocol of a consumer",
			"queue", q.entry.Name(), "limit", MaxNarrow)
	}
}

// deletePacket removes a packet that has left the index, or its place there, from the store, with
// its delivery state.
func (m *Machine) deletePacket(q *queue, p index.Packet) {
	m.leaveConsumer(p)
	if p.HasUnique {
		m.endUnique(q, p.Identity)
	}
	if op, ok := m.open.puts.find(q.packet(p)); ok {
		m.open.ops.Cancel(op)
		m.deleteDelivery(p)
		return
	}
	m.open.ops.Delete(q.packet(p), removed(p))
}

// deleteDelivery removes the records of a packet's delivery state from the store.
func (m *Machine) deleteDelivery(p index.Packet) {
	if p.Stored != 0 {
		m.open.ops.DeleteDelivery(p.Identity, storage.Stored(p.Stored))
	}
}

// removed is what the storage has to know of a packet that goes with its delivery state.
func removed(p index.Packet) storage.Removed {
	return storage.Removed{
		Expires: p.Flags&storage.FlagExpires != 0, Large: p.Flags&storage.FlagLarge != 0,
		Stored: storage.Stored(p.Stored), Identity: p.Identity,
	}
}
