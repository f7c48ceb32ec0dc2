package broker

import (
	"slices"

	"github.com/holdfast-queue/holdfast/index"
)

// A delivery is a pop that the machine makes for a subscriber. A request that waits (parked.go)
// stands in the same line, and is made again when its turn comes. One rule says when: no queue
// keeps a packet while somebody waits who can take it. It has two sides:
//
//	a packet comes, deliver                   a connection is ready, fillConn
//
//	  queue                                     queue A   queue B   queue C
//	    │ best packet                               └─────────┼─────────┘ best packet of all
//	    ▼                                                     ▼
//	  the connection that waits longest                   connection
//	  (again while both are there)                        (again while it has readiness)
//
// Calls only mark the names whose queues change and the connections that are ready. Turn and the
// end of Atomic call settle, which works off what is marked, and nobody else does: the driver knows
// then that nothing is replied between two turns. What settle cannot do now stays marked, because
// the open batch is full or the disk is, or others should have their turn.
//
// A request with a filter can take only what that accepts. The queue asks about the lanes that got
// packets since it asked before (class.go), so a push costs the same however many lanes there are.
// Who waits for a share, or for a value of a tag, is asked only where such a lane is among them.
// A queue that is paused out (admit.go) keeps its packets. A connection with too much outstanding
// is paused: it leaves the wait lists of all its queues until Resume.

// settle gives those who wait what the calls until now have brought, and what that brings: a
// request that is made again may move a packet to another queue.
func (m *Machine) settle() {
	if m.settling || len(m.dirty)+len(m.dirtyConns) == 0 {
		return
	}
	m.settling = true
	for len(m.dirty)+len(m.dirtyConns) > 0 && !m.refusesDelivery() && !m.settledEnough() {
		conns, names := m.dirtyConns, m.dirty
		m.dirtyConns, m.dirty = nil, nil
		m.fillAll(conns)
		m.deliverAll(names)
		if m.dirtyConns == nil && m.dirty == nil {
			m.dirtyConns, m.dirty = conns[:0], names[:0]
		}
	}
	m.settling = false
}

// fillAll and deliverAll work off what was marked. What they do not come to stays marked, and is
// first in the next turn: those that got a part of theirs come behind it.
func (m *Machine) fillAll(conns []*Conn) {
	for i, c := range conns {
		if m.settledEnough() {
			m.dirtyConns = slices.Concat(conns[i:], m.dirtyConns)
			return
		}
		if c.marked = false; !c.detached {
			m.fillConn(c)
		}
	}
}

func (m *Machine) deliverAll(names []*waiters) {
	for i, w := range names {
		if m.settledEnough() {
			m.dirty = slices.Concat(names[i:], m.dirty)
			return
		}
		w.marked = false
		m.deliver(w)
		m.admitLine(w)
	}
}

// deliver gives packets of a name's queue to those who wait for them, the longest waiting first.
func (m *Machine) deliver(w *waiters) {
	if m.drained(w.queue) {
		m.endDrained(w)
		return
	}
	tried := (*queue)(nil) // it may have come to nothing, as who is first there wants something else
	for parked := (*Conn)(nil); w.queue != nil && !m.isOver(w.queue) && !w.queue.isPausedOut(); {
		if m.settledEnough() {
			m.mark(w)
			return
		}
		s, ok, cut := m.nextSubscriber(w)
		if cut {
			m.mark(w)
			return
		}
		if !ok {
			break
		}
		c := m.conn(s)
		switch {
		case c == parked: // nobody else can take what is there
			return
		case c.parked:
			if f := m.classes[c.class].filter; f != nil {
				m.chargeFilter(w.queue, f, m.ix.LanesIn(w.queue.ix, f.Share))
			}
			if !m.again(c, w) {
				parked = c
			}
		case m.pauseIfBehind(c):
		default:
			if q := m.better(w, c); q != nil && q != tried {
				if q.waiters.busy { // which goes on there
					m.mark(w)
					return
				}
				q.waiters.marked, w.busy, tried = false, true, q
				m.deliver(q.waiters)
				w.busy = false
				continue
			}
			m.give(w.queue, c)
			tried = nil
		}
	}
	if w.filtered > 0 && w.queue != nil {
		m.ix.ClearChanged(w.queue.ix)
	}
}

// better returns the queue that has the best packet for a subscriber, if that is not the one of w,
// and those who wait there have yet to get what is in it. Then it is their turn first.
func (m *Machine) better(w *waiters, c *Conn) *queue {
	if c.queues < 2 {
		return nil
	}
	q := m.bestQueue(c)
	if q == nil || q == w.queue || !q.waiters.marked && !q.waiters.busy {
		return nil
	}
	return q
}

// give makes a delivery from q to a subscriber, unless all that it selects is damaged, or it passes
// over too many shares that give nothing any more.
func (m *Machine) give(q *queue, c *Conn) {
	t, err := m.tx.selectFrom(q, &c.delivery, MaxGroup)
	if err != nil || len(t.packets) == 0 {
		m.tx.settled += maxSettled / 10
		return
	}
	m.dispatch.Spend(c.sub)
	c.to.Deliver(m.tx.remove(t, c.delivery).Packets)
}

// fillConn gives c what its readiness allows from the queues it subscribes to.
func (m *Machine) fillConn(c *Conn) {
	for c.queues > 0 && m.dispatch.Credits(c.sub) > 0 && !m.pauseIfBehind(c) {
		if m.settledEnough() {
			m.markConn(c)
			return
		}
		q := m.bestQueue(c)
		if q == nil {
			return
		}
		m.give(q, c)
	}
}

// bestQueue returns the queue of c's that has the best packet: the lowest priority number, then the
// end of the sequences that c takes from. It is nil if none has one that can be selected.
func (m *Machine) bestQueue(c *Conn) *queue {
	var best index.Packet
	m.ids = m.dispatch.Lists(c.sub, m.ids[:0])
	m.tx.settled += len(m.ids)
	for _, id := range m.ids {
		q := m.lists[id].queue
		if q == nil || m.isOver(q) || q.isPausedOut() {
			continue
		}
		m.passWide(q, c.delivery.Fits16)
		p, ok := m.best(q, m.selection(q, &c.delivery))
		if !ok {
			continue
		}
		if best.ID == 0 || p.Priority < best.Priority ||
			p.Priority == best.Priority && (p.Seq < best.Seq) == (c.delivery.End == Oldest) {
			best = p
		}
	}
	if best.ID == 0 {
		return nil
	}
	return m.queues.of(best.Queue)
}

// pauseIfBehind says whether c is paused, after pausing it if too much is outstanding. It keeps its
// readiness.
func (m *Machine) pauseIfBehind(c *Conn) (paused bool) {
	if !c.paused && c.to.Unsent() > MaxOutstandingBytes {
		c.paused = true
		m.dispatch.SetPaused(c.sub, true)
	}
	return c.paused
}

// endDrained ends the waits for the name of a drained queue, but for those for another one that is
// not.
func (m *Machine) endDrained(w *waiters) {
	for _, s := range m.takers(w) {
		c := m.conn(s)
		if !c.parked || !m.waitsInVain(c) {
			continue
		}
		if m.settledEnough() {
			m.mark(w)
			return
		}
		m.again(c, w)
	}
}

// waitsInVain says that all queues that c waits for are drained.
func (m *Machine) waitsInVain(c *Conn) bool {
	m.ids = m.dispatch.Lists(c.sub, m.ids[:0])
	return !slices.ContainsFunc(m.ids, func(id index.WaitListID) bool { return !m.drained(m.lists[id].queue) })
}

// admitLine lets those push whose turn has come. What they push goes to those who wait for it, and
// so may make room for the next.
func (m *Machine) admitLine(w *waiters) {
	first := func(_ index.Class, asked uint64) (uint64, bool) { return asked, true }
	for {
		s, ok := m.dispatch.Waiting(w.lists[producerRole], 0, first)
		if q := w.queue; !ok || q != nil && q.settings != nil && q.settings.PauseIn && !q.settings.Closed {
			return
		}
		if m.settledEnough() {
			m.mark(w)
			return
		}
		m.tx.turn = true
		done := m.again(m.conn(s), w)
		m.tx.turn = false
		if !done {
			return
		}
		m.deliver(w)
	}
}

// markConn notes that a connection may have become ready for what is there.
func (m *Machine) markConn(c *Conn) {
	if !c.marked {
		c.marked = true
		m.dirtyConns = append(m.dirtyConns, c)
	}
}
