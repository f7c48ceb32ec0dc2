package broker

import (
	"slices"

	"github.com/holdfast-queue/holdfast/index"
)

// A queue has a gate at each end. Pushes pass the one, and takes the other: a queue that is paused
// keeps what it has, and one that is closed gets nothing more. Reads see everything.

// checkOpen says why a queue takes nothing in from the caller.
func (tx *Tx) checkOpen(q *queue, l load) error {
	switch s := q.settings; {
	case s == nil || l.packets == 0: // what is there may change
		return nil
	case s.Closed:
		return ErrQueueClosed
	case s.PauseIn:
		return ErrPaused
	}
	return tx.mayUse(q, producerRole)
}

// isPausedOut says that no packet of a queue may be taken now.
func (q *queue) isPausedOut() bool { return q.settings != nil && q.settings.PauseOut }

// openForTake is findQueue for a take: it returns nil as well if the queue gives nothing now.
// ErrInUse if another client is its only consumer. Whoever takes something has the role from then
// on.
func (tx *Tx) openForTake(name []byte) (*queue, error) {
	q, err := tx.m.findQueue(name)
	if q == nil || err != nil {
		return nil, err
	}
	if err := tx.mayUse(q, consumerRole); err != nil {
		return nil, err
	}
	if q.isPausedOut() {
		return nil, nil
	}
	return q, nil
}

// Close closes a queue for ever, and makes it if there is none. It returns false if it was closed
// before.
func (tx *Tx) Close(name []byte) (closed bool, err error) {
	s, _, err := tx.Settings(name)
	if err != nil || s.Closed {
		return false, err
	}
	s.Closed = true
	err = tx.SetSettings(name, s)
	return err == nil, err
}

// drained says that a queue will never give a packet again: it is closed, and none is unfinished.
func (m *Machine) drained(q *queue) bool {
	if q.settings == nil || !q.settings.Closed {
		return false
	}
	n, _ := m.ix.Counts(q.ix).Unfinished()
	return n == 0
}

// Drained says that all of the queues are closed, and have no packet that is ready, delayed or
// claimed: they will never give one again.
func (tx *Tx) Drained(names [][]byte) bool {
	for _, name := range names {
		if q := tx.m.queueNamed(name); q == nil || !tx.m.drained(q) {
			return false
		}
	}
	return true
}

// endDrained ends the waits for a drained queue, but for those for another one that is not.
func (m *Machine) endDrained(q *queue) {
	for _, s := range m.dispatch.Subscribers(q.ix, nil) {
		c := m.conn(s)
		if !c.parked || !m.waitsInVain(c) {
			continue
		}
		if m.open.full(m.limits) {
			m.mark(q)
			return
		}
		m.again(c, q)
	}
}

// waitsInVain says that all queues that c waits for are drained.
func (m *Machine) waitsInVain(c *Conn) bool {
	m.ids = m.dispatch.Queues(c.sub, m.ids[:0])
	return !slices.ContainsFunc(m.ids, func(id index.QueueID) bool { return !m.drained(m.queues.of(id)) })
}
