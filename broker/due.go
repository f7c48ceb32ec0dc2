package broker

import (
	"cmp"

	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// What is due goes on in slices, so a call may come to it before its turn: to a packet that has
// expired, a window or a pause that is over. Whoever asks for one of them by name or id asks here.
// Here its end is made first, and the index is asked again. No other file asks the index for what
// has an id. What a look counts or pages through may still be there a moment longer.

// happened follows a change that the index has made because its moment came.
func (m *Machine) happened(e index.Event) {
	q := m.queues.of(e.Packet.Queue)
	if m.isFlushed(q) {
		m.retire(q)
	}
	switch e.Kind {
	case index.Expired:
		m.expire(q, e.Packet)
	case index.LeaseEnded:
		m.leaseEnded(q, e.Packet)
	case index.Alarm:
		m.endPauses(q)
	case index.MayTake:
		if e.HasRested {
			m.endRest(q, e.Rested)
		}
		m.mark(q.waiters)
		m.listIdle(q)
	case index.WindowEnded:
		m.endUnique(q, e.Packet.Identity)
		m.listIdle(q)
	default:
		m.tail(q, e.Packet, EventReady)
		m.changed(q)
	}
}

// expired says that a packet's time has passed.
func (m *Machine) expired(p index.Packet) bool { return p.Expiry != 0 && p.Expiry <= m.tx.now }

// expire deletes a packet that has expired and left the index. One that is done was counted by Ack.
func (m *Machine) expire(q *queue, p index.Packet) {
	m.deletePacket(q, p)
	if p.State != index.Done {
		m.count(q, &q.counters.Expired, &m.totals.Expired, 1)
	}
	m.tail(q, p, EventExpired)
	m.changed(q)
}

// holder returns the identity of who has an id of unique pushes now; false if nobody has.
func (m *Machine) holder(q *queue, unique []byte) (identity uint64, ok bool) {
	for {
		e, due := m.ix.AdvanceHolder(q.ix, unique, m.tx.now, m.tx.steady)
		if !due {
			return m.ix.Holder(q.ix, unique)
		}
		m.happened(e)
	}
}

// current returns a packet as it is now; false if it is gone.
func (m *Machine) current(p index.Packet) (index.Packet, bool) {
	for {
		e, due := m.ix.AdvancePacket(p.ID, m.tx.now, m.tx.steady)
		if !due {
			return m.ix.Get(p.ID)
		}
		m.happened(e)
	}
}

// find returns the packet of a queue with an id.
func (m *Machine) find(q *queue, id ID) (p index.Packet, ok bool) {
	if p, ok = m.ix.Find(id.identity()); ok && p.Queue == q.ix {
		p, ok = m.current(p)
	}
	return p, ok && p.Queue == q.ix
}

// knows says that the index has a packet that the store shows, there or in another place. So it is
// alive or ends by itself: it came since the start, and the clock has been put back meanwhile.
func (m *Machine) knows(id content.PacketID, meta *content.Meta) bool {
	_, ok := m.ix.Find(cmp.Or(meta.Identity, id.Seq))
	return ok
}

// lent is find for who has claimed a packet: a claim lasts until its end is made. Nobody else has
// the packet until then, so who answers meanwhile is not too late.
func (m *Machine) lent(q *queue, id ID) (p index.Packet, ok bool) {
	p, ok = m.ix.Find(id.identity())
	return p, ok && p.Queue == q.ix && p.State == index.Claimed
}

// only is index.Only of what is there now.
func (m *Machine) only(q *queue, key []byte) (p index.Packet, n int) {
	if p, n = m.ix.Only(q.ix, key); n == 1 {
		if now, ok := m.current(p); !ok || now != p {
			return m.ix.Only(q.ix, key)
		}
	}
	return p, n
}

// best is index.Best of what has not expired, behind advanceSlice packets that have.
func (m *Machine) best(q *queue, s index.Selection) (p index.Packet, ok bool) {
	p, ok = m.ix.Best(q.ix, s)
	for n := 0; ok && m.expired(p) && n < advanceSlice && !(m.settling && m.open.full(m.limits)); n++ {
		m.current(p)
		p, ok = m.ix.Best(q.ix, s)
	}
	return p, ok
}
