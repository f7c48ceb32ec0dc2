package broker

import (
	"slices"

	"github.com/holdfast-queue/holdfast/index"
)

// taken holds the packets that a call takes from a queue, with their records. It is valid until the
// next call.
type taken struct {
	q       *queue
	packets []index.Packet
	records [][]byte
}

// Pop takes what s selects from the queue. It finds no packets if none can be selected or the queue
// is unknown (pinpriq document, section pop).
func (tx *Tx) Pop(name []byte, s Selection) (Found, error) {
	t, err := tx.take(name, s, MaxGroup)
	if len(t.packets) == 0 || err != nil {
		return Found{}, err
	}
	tx.useRole(t.q, consumerRole)
	return tx.remove(t, s), nil
}

// take begins every call that takes packets: it returns what s selects from the queue: no more than
// most packets, nor than the Atomic may take, but for a whole group. They are not taken yet. There
// are none if the queue is unknown or gives nothing now; with MustFind there is ErrNothing instead.
func (tx *Tx) take(name []byte, s Selection, most int) (t taken, err error) {
	m := tx.m
	if t.q, err = tx.open(name, takes); err == nil {
		err = m.checkFilter(t.q, s.Filter)
	}
	if tx.atomic {
		left := tx.MayChange()
		if left == 0 && err == nil {
			err = ErrTooManyChanged
		}
		if !s.Group || s.Count > 0 { // a whole group is one take
			most = min(most, left)
		}
	}
	if err != nil {
		return taken{}, err
	}
	if t.q != nil && tx.fills(t.q, &s) {
		return t, ErrFilling
	}
	if err = tx.mayTake(t.q, &s); err != nil && s.MustFind && !m.selects(t.q, &s) {
		err = nil // who waits for a packet waits on
	} else if err == nil && t.q != nil {
		t, err = tx.selectFrom(t.q, &s, most)
	}
	if err == nil && len(t.packets) > 0 && tx.fills(t.q, &s) { // some had expired
		return taken{q: t.q}, ErrFilling
	}
	if len(t.packets) == 0 && s.MustFind && err == nil {
		err = ErrNothing
	}
	if tx.atomic {
		tx.changed += len(t.packets)
	}
	return t, err
}

// fills says that s waits for more packets than a queue gives now.
func (tx *Tx) fills(q *queue, s *Selection) bool {
	if s.Least == 0 || tx.filled {
		return false
	}
	n := tx.m.ix.Ready(q.ix, tx.m.selection(q, s), s.Least)
	return 0 < n && n < s.Least
}

// selects says that s selects something from a queue, which may be nil.
func (m *Machine) selects(q *queue, s *Selection) bool {
	if q == nil {
		return false
	}
	_, ok := m.ix.Best(q.ix, m.selection(q, s))
	return ok
}

// selectFrom is take for a queue that gives.
func (tx *Tx) selectFrom(q *queue, s *Selection, most int) (t taken, err error) {
	m := tx.m
	m.logWide(q, s.Fits16)
	selection := m.selection(q, s)
	selection.Limit.Packets = most
	if s.unread {
		t.q = q
		t.packets, err = m.selectAlive(q, s, &selection)
		return t, err
	}
	if t, err = tx.takeable(q, s, &selection); err == nil {
		err = tx.useReply(m.replyBytes(q, t.packets, s.WithDetails))
	}
	return t, err
}

// packetBytes returns the bytes that a packet counts as in a reply.
func (m *Machine) packetBytes(q *queue, p index.Packet, detail bool) int {
	bytes := weight(p) + packetOverhead
	if detail {
		bytes += m.detailBytes(q, p)
	}
	return bytes
}

// replyBytes returns the bytes that packets count as in a reply.
func (m *Machine) replyBytes(q *queue, packets []index.Packet, detail bool) (bytes int) {
	for _, p := range packets {
		bytes += m.packetBytes(q, p, detail)
	}
	return bytes
}

// selectPackets returns the packets that s selects, and more packets than that. It takes none.
func (m *Machine) selectPackets(q *queue, s *Selection, selection *index.Selection, more int) []index.Packet {
	packets := m.scratch[:0]
	if !s.Group {
		packets = m.ix.Next(q.ix, *selection, 0, s.most(selection)+more, packets)
	} else if best, ok := m.ix.Best(q.ix, *selection); ok {
		group := *selection
		group.Limit.Packets += more
		group.Limit.Bytes += int64(more) << 10
		packets = m.ix.Group(best.ID, group, packets)
	}
	m.scratch = packets
	return packets
}

// most returns how many packets s selects, at most.
func (s *Selection) most(selection *index.Selection) int {
	if s.Group && s.Count == 0 {
		return selection.Limit.Packets
	}
	return min(max(s.Count, 1), selection.Limit.Packets)
}

// cutDetailed returns as many of the first packets as a reply with details can hold.
func (m *Machine) cutDetailed(q *queue, packets []index.Packet) []index.Packet {
	size := func(p index.Packet) int { return m.packetBytes(q, p, true) }
	return packets[:fitting(packets, MaxGroupBytes, size)]
}

// selection turns s into a selection of a queue in the index, limited to what one reply can hold.
func (m *Machine) selection(q *queue, s *Selection) index.Selection {
	return index.Selection{
		End: s.End, Group: s.Group, Fits16: s.Fits16, Filter: s.Filter.forQueue(q), Share: s.Filter.share(), Claims: s.claims, Limits: true,
		Limit: index.Limit{Packets: MaxGroup, Bytes: MaxGroupBytes},
	}
}

// remove takes for good what take has selected.
func (tx *Tx) remove(t taken, s Selection) Found {
	m, q := tx.m, t.q
	m.found.Details = m.found.Details[:0]
	for _, p := range t.packets {
		if s.WithDetails {
			m.detail(q, p)
		}
		m.ix.Take(p.ID)
		m.ix.Remove(p.ID)
		m.deletePacket(q, p)
		m.tail(q, p, EventPopped)
	}
	m.count(q, &q.counters.Popped, &m.totals.Popped, len(t.packets))
	q.taken = tx.now
	m.changed(q)
	return m.finding(t.records)
}

// maxExpired is how many packets that have expired a take deletes: some 15 ms.
const maxExpired = 1 << 12

// selectAlive returns what s selects, without taking it. What has expired goes first, so no take
// finds it, also where far more is due than a turn does by itself. ErrSweeping at maxExpired;
// settle, which goes on in the next turn by itself, finds nothing then.
func (m *Machine) selectAlive(q *queue, s *Selection, selection *index.Selection) (packets []index.Packet, err error) {
	left := maxExpired
	drop := func() (n int) {
		for _, p := range packets {
			if m.expired(p) && left > 0 && !(m.settling && m.open.full(m.limits)) {
				m.ix.Remove(p.ID)
				m.expire(q, p)
				n++
				left--
			}
		}
		return n
	}
	ahead := advanceSlice // of one key in strict order there is no more than the first
	for packets = m.selectPackets(q, s, selection, 0); drop() > 0; packets = m.selectPackets(q, s, selection, 0) {
		more := *selection // thousands may have expired, and limits let few be taken
		more.Limits = false
		packets = m.selectPackets(q, s, &more, ahead)
		ahead = min(ahead, 2*max(0, drop()-1))
	}
	switch {
	case left > 0:
	case m.settling:
		m.tx.settled = maxSettled
		m.changed(q)
		return nil, nil
	default:
		return nil, ErrSweeping
	}
	packets = slices.DeleteFunc(packets, m.expired)
	packets = packets[:min(len(packets), s.most(selection))]
	packets = packets[:fitting(packets, MaxGroupBytes, weight)]
	if s.WithDetails {
		packets = m.cutDetailed(q, packets)
	}
	return packets, nil
}

// takeable returns what s selects, without taking it. What cannot be read is set aside, and others
// are selected. ErrReplyTooLarge, ErrSweeping.
func (tx *Tx) takeable(q *queue, s *Selection, selection *index.Selection) (t taken, err error) {
	m := tx.m
	for t.q = q; ; {
		if t.packets, err = m.selectAlive(q, s, selection); err == nil {
			err = tx.mayReply(m.replyBytes(q, t.packets, s.WithDetails))
		}
		if err != nil {
			return t, err
		}
		if t.records, err = m.fetch(q, t.packets, selection); err == nil {
			return t, nil
		}
	}
}
