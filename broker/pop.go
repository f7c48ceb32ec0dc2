package broker

import (
	"slices"

	"github.com/holdfast-queue/holdfast/index"
)

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
// at most so many packets, nor more than the Atomic may take, and returns their records. They are
// not taken yet. There are none if the
// queue is unknown or gives nothing now; with MustFind there is ErrNothing instead.
func (tx *Tx) take(name []byte, s Selection, most int) (q *queue, records [][]byte, err error) {
	m := tx.m
	m.scratch = m.scratch[:0]
	if q, err = tx.open(name, takes); err == nil {
		err = m.checkFilter(q, s.Filter)
	}
	if tx.atomic {
		if most = min(most, tx.MayChange()); most == 0 && err == nil {
			err = ErrTooManyChanged
		}
	}
	if err != nil {
		return nil, nil, err
	}
	if err = tx.canTake(); err != nil && s.MustFind && !m.selects(q, s) {
		err = nil // who waits for a packet waits on
	} else if err == nil && q != nil {
		records, err = tx.selectFrom(q, s, most)
	}
	if len(m.scratch) == 0 && s.MustFind && err == nil {
		err = ErrNothing
	}
	if tx.atomic {
		tx.changed += len(m.scratch)
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
	if s.unread {
		m.selectAlive(q, s, selection)
		return nil, nil
	}
	if records, err = tx.takeable(q, s, selection); err == nil {
		err = tx.useReply(m.scratchBytes(q, s.WithDetails))
	}
	return records, err
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

// selectPackets leaves in m.scratch what s selects, without taking it, and so many more.
func (m *Machine) selectPackets(q *queue, s Selection, selection index.Selection, more int) {
	m.scratch = m.scratch[:0]
	if !s.Group {
		m.scratch = m.ix.Next(q.ix, selection, 0, s.most(selection)+more, m.scratch)
	} else if best, ok := m.ix.Best(q.ix, selection); ok {
		selection.Limit.Packets += more
		selection.Limit.Bytes += int64(more) << 10
		m.scratch = m.ix.Group(best.ID, selection, m.scratch)
	}
}

// most is how many packets s selects.
func (s *Selection) most(selection index.Selection) int {
	if s.Group {
		return selection.Limit.Packets
	}
	return min(max(s.Count, 1), selection.Limit.Packets)
}

// cutDetailed leaves so many packets in m.scratch as a reply with details can hold.
func (m *Machine) cutDetailed(q *queue) {
	size := func(p index.Packet) int { return m.replyBytes(q, p, true) }
	m.scratch = m.scratch[:fitting(m.scratch, MaxGroupBytes, size)]
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
		m.tail(q, p, EventPopped)
	}
	m.count(q, &q.counters.Popped, &m.totals.Popped, len(m.scratch))
	m.changed(q)
	return m.finding(records)
}

// maxExpired is how many packets that have expired a take passes over: some 100 ms.
const maxExpired = 1 << 16

// selectAlive leaves in m.scratch what s selects, without taking it. What has expired goes first,
// so no take finds it, also where far more is due than a turn does by itself. Beyond maxExpired
// less is selected. Settle ends at a full batch already, since it goes on in the next turn.
func (m *Machine) selectAlive(q *queue, s Selection, selection index.Selection) {
	left := maxExpired
	for again, more := true, 0; again; more = advanceSlice { // by so many at a time: there may be thousands
		m.selectPackets(q, s, selection, more)
		again = false
		for _, p := range m.scratch {
			if m.expired(p) && left > 0 && !(m.settling && m.open.full(m.limits)) {
				m.ix.Remove(p.ID)
				m.expire(q, p)
				left--
				again = true
			}
		}
	}
	m.scratch = slices.DeleteFunc(m.scratch, m.expired)
	m.scratch = m.scratch[:min(len(m.scratch), s.most(selection))]
	m.scratch = m.scratch[:fitting(m.scratch, MaxGroupBytes, weight)]
	if s.WithDetails {
		m.cutDetailed(q)
	}
}

// takeable leaves in m.scratch what s selects, without taking it, and returns the records. What
// cannot be read is set aside, and others are selected. ErrReplyTooLarge.
func (tx *Tx) takeable(q *queue, s Selection, selection index.Selection) (records [][]byte, err error) {
	m := tx.m
	for {
		m.selectAlive(q, s, selection)
		if err := tx.mayReply(m.scratchBytes(q, s.WithDetails)); err != nil {
			return nil, err
		}
		if records, err = m.fetch(q, m.scratch, &selection); err == nil {
			return records, nil
		}
	}
}
