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

// access is what a call does with the packets of the queue that it is about.
type access uint8

const (
	changes access = 1 << iota // refused with ErrStopped if the disk is full
	takes                      // finds no queue that gives nothing now; ErrInUse if another client is its only consumer
	known                      // ErrUnknownQueue if nothing is called so
	looks   access = 0         // none of these
)

// open begins a call that is about a queue which need not exist. It returns nil if nothing is called
// so. Whoever takes something has the consumer's role from then on.
func (tx *Tx) open(name []byte, a access) (q *queue, err error) {
	if err = tx.begin(); err == nil && a&changes != 0 {
		err = tx.canTake()
	}
	if err == nil {
		q, err = tx.m.findQueue(name)
	}
	switch {
	case err != nil:
		return nil, err
	case a&known != 0 && (q == nil || !tx.m.exists(q)):
		return nil, ErrUnknownQueue
	case a&takes != 0 && q != nil:
		if err := tx.mayUse(q, consumerRole); err != nil || q.isPausedOut() {
			return nil, err
		}
	}
	return q, nil
}

// openToPush begins a call that brings packets to a queue, which is made if it is not known.
func (tx *Tx) openToPush(name []byte, l load, tags []PacketTag) (q *queue, err error) {
	m := tx.m
	if err = tx.CanStore(); err == nil {
		err = tx.begin()
	}
	if err == nil {
		q, err = m.makeQueue(name)
	}
	if err == nil {
		err = m.checkTags(q, tags)
	}
	if err == nil {
		err = tx.checkPush(q, l)
	}
	if err != nil {
		return nil, err
	}
	m.define(q)
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
