package broker

import (
	"fmt"

	"github.com/holdfast-queue/holdfast/index"
)

// Who waits, for packets or for room, waits for a name, whatever has that. A name that is only
// awaited has no queue. Where a queue gets a name or loses it, those who wait stay where they are.

// waitersFor returns who waits for a name, nil if nobody does.
func (m *Machine) waitersFor(name []byte) *waiters { return m.awaited[watched{m.tx.db, string(name)}] }

// await is waitersFor where somebody is about to wait: left follows if nobody does in the end.
func (m *Machine) await(name []byte) (*waiters, error) {
	if w := m.waitersFor(name); w != nil {
		return w, nil
	}
	if len(m.awaited) >= m.maxAwaited || m.awaitedBytes+len(name) > MaxNameBytes/2 {
		return nil, ErrTooManyAwaited
	}
	w := &waiters{of: watched{m.tx.db, string(name)}}
	for r := range w.lists {
		w.lists[r] = m.dispatch.AddList()
		m.lists = setAt(m.lists, int(w.lists[r]), w, nil)
	}
	m.awaited[w.of] = w
	m.awaitedBytes += len(name)
	if q := m.queueNamed(name); q != nil {
		m.meet(q, w)
	}
	return w, nil
}

// left forgets who waits for a name if nobody does any more.
func (m *Machine) left(w *waiters) {
	if m.waits(w, producerRole) || m.waits(w, consumerRole) {
		return
	}
	for _, id := range w.lists {
		m.dispatch.RemoveList(id)
		m.lists[id] = nil
	}
	w.lists = [2]index.WaitListID{} // it may be marked, and others may get them
	delete(m.awaited, w.of)
	m.awaitedBytes -= len(w.of.name)
	if q := w.queue; q != nil {
		m.part(q)
		m.listIdle(q)
	}
	if len(m.awaited) > 0 {
		return
	}
	if m.lists = emptied(m.lists, minShrinkTable); m.lists == nil { // there were many
		m.awaited = make(map[watched]*waiters)
	}
}

// waits says that somebody waits for a name, who would have that role of its queue.
func (m *Machine) waits(w *waiters, r role) bool {
	return w != nil && !m.dispatch.IsEmpty(w.lists[r])
}

// takers returns who waits for packets of a name, or subscribes to it.
func (m *Machine) takers(w *waiters) []index.SubscriberID {
	if w == nil {
		return nil
	}
	return m.dispatch.Subscribers(w.lists[consumerRole], nil)
}

// onlyConsumer returns the client that may be the only consumer of a queue, nil if anybody may: the
// one that has the role, if only is not nil, and all who wait for packets of its name. ErrInUse if
// they are several.
func (m *Machine) onlyConsumer(only *roleHolder, w *waiters) (*roleHolder, error) {
	for _, s := range m.takers(w) {
		k := m.roleHolderOf(m.conn(s))
		if only != nil && only != k {
			return nil, fmt.Errorf("%w: %q and %q wait for packets, so none can be the only consumer", ErrInUse, only.name, k.name)
		}
		only = k
	}
	return only, nil
}

// keepRole lets those who wait for a queue be its only consumer, if it has one and they are one
// client.
func (m *Machine) keepRole(q *queue) {
	if exclusive(q.settings, consumerRole) {
		if only, err := m.onlyConsumer(q.roles[consumerRole], q.waiters); err == nil {
			q.grantRole(consumerRole, only)
		}
	}
}

// meet brings a queue together with those who wait for its name.
func (m *Machine) meet(q *queue, w *waiters) {
	q.waiters, w.queue = w, q
	m.dispatch.AskAnew(w.lists[consumerRole])
	if w.filtered > 0 {
		m.ix.NoteFresh(q.ix, true)
		m.ix.Refresh(q.ix)
	}
	m.keepRole(q)
}

// part takes a queue away from those who wait for its name.
func (m *Machine) part(q *queue) {
	w := q.waiters
	if w == nil {
		return
	}
	q.waiters, w.queue = nil, nil
	m.ix.NoteFresh(q.ix, false)
	if m.waits(w, producerRole) {
		m.mark(w)
	}
}

// mark notes that something has changed for those who wait for a name, if there are any.
func (m *Machine) mark(w *waiters) {
	if w != nil && !w.marked {
		w.marked = true
		m.dirty = append(m.dirty, w)
	}
}

// addFiltered notes that n more wait with a filter; fewer if n is negative. While there are any,
// the index notes which lanes of the queue get packets.
func (m *Machine) addFiltered(w *waiters, n int32) {
	had := w.filtered > 0
	if w.filtered += n; had != (w.filtered > 0) && w.queue != nil {
		m.ix.NoteFresh(w.queue.ix, !had)
	}
}
