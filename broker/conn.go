package broker

import (
	"slices"

	"github.com/holdfast-queue/holdfast/index"
)

// Attach makes a connection of to, whose subscriptions take what the selection says. Tx.Detach ends
// it.
func (tx *Tx) Attach(to Receiver, delivery Selection) *Conn {
	tx.m.attached++
	return &Conn{to: to, delivery: delivery, class: plainClass(delivery.Fits16)}
}

// Conns is how many are attached: the connections of all protocols.
func (tx *Tx) Conns() int { return tx.m.attached }

// Parked says that the connection's request waits.
func (c *Conn) Parked() bool { return c.parked }

// TimedOut says that the wait of the connection's request ends with the next Turn, by TimeOut.
func (c *Conn) TimedOut() bool { return c.until < 0 }

// CaughtUp says that nothing is delivered because too much was outstanding, and that half of
// MaxOutstandingBytes is left of it or less: it is time for Resume.
func (c *Conn) CaughtUp() bool { return c.paused && c.to.Unsent() <= MaxOutstandingBytes/2 }

// subscriber gives c a number in the dispatch.
func (m *Machine) subscriber(c *Conn) index.SubscriberID {
	if c.sub == 0 {
		c.sub = m.dispatch.Add(c.class)
		for int(c.sub) >= len(m.conns) {
			m.conns = append(m.conns, nil)
		}
		m.conns[c.sub] = c
	}
	return c.sub
}

// awaited returns the queues that somebody waits for or subscribes to, some of them several times.
func (m *Machine) awaited() (all []*queue) {
	for _, c := range m.conns {
		if c == nil {
			continue
		}
		for _, id := range m.dispatch.Queues(c.sub, nil) {
			all = append(all, m.queues.of(id))
		}
		if c.pushesTo != nil {
			all = append(all, c.pushesTo)
		}
	}
	return all
}

// Subscribe makes c a subscriber of the queue, which need not exist yet. A second subscription is
// ignored (pinpriq document, section subscribe). Deliveries need Ready.
func (tx *Tx) Subscribe(c *Conn, name []byte) error {
	m := tx.m
	if c.queues >= MaxSubscriptions {
		if q := m.queueNamed(name); q != nil && slices.Contains(m.dispatch.Queues(c.sub, nil), q.ix) {
			return nil
		}
		return ErrTooManySubscriptions
	}
	q, err := m.makeAwaited(name)
	if err != nil {
		return err
	}
	if err := tx.mayUse(q, consumerRole); err != nil {
		return err
	}
	tx.useRole(q, consumerRole)
	if m.dispatch.Subscribe(m.subscriber(c), q.ix) {
		c.queues++
		m.await(q, 1)
		m.markConn(c)
	}
	return nil
}

// makeAwaited is makeQueue for somebody who waits for the name.
func (m *Machine) makeAwaited(name []byte) (*queue, error) {
	full := m.awaiting >= m.maxAwaited || m.awaitedBytes+len(name) > MaxNameBytes/2
	if q := m.queueNamed(name); full && (q == nil || q.subscribers == 0) {
		return nil, ErrTooManyAwaited
	}
	return m.makeQueue(name)
}

// await notes that n more consumers wait for packets of a queue, or fewer.
func (m *Machine) await(q *queue, n int) {
	before := q.subscribers > 0
	q.subscribers += n
	switch after := q.subscribers > 0; {
	case after && !before:
		m.awaiting++
		m.awaitedBytes += len(q.entry.Name())
	case before && !after:
		m.awaiting--
		m.awaitedBytes -= len(q.entry.Name())
	}
}

// Awaits is for how many names c waits.
func (c *Conn) Awaits() int { return c.queues }

// Unsubscribe ends c's subscription of the queue, if there is one. Readiness that is left stays
// with the connection.
func (tx *Tx) Unsubscribe(c *Conn, name []byte) error {
	m := tx.m
	q := m.queueNamed(name)
	if q == nil || c.sub == 0 || !m.dispatch.Unsubscribe(c.sub, q.ix) {
		return nil
	}
	c.queues--
	m.await(q, -1)
	m.listIdle(q)
	return nil
}

// Subscriptions are the names of the queues that c subscribes to.
func (tx *Tx) Subscriptions(c *Conn) (names [][]byte) {
	if c.sub == 0 {
		return nil
	}
	for _, id := range tx.m.dispatch.Queues(c.sub, nil) {
		names = append(names, []byte(tx.m.queues.of(id).entry.Name()))
	}
	return names
}

// Ready lets c have n more deliveries, each from any queue it subscribes to, now or later.
func (tx *Tx) Ready(c *Conn, n uint32) error {
	tx.m.dispatch.Credit(tx.m.subscriber(c), n)
	tx.m.markConn(c)
	return nil
}

// Detach ends the connection: its subscriptions, watches and roles go, and its wait. Unlike other
// calls it works on a closing machine. A second call does nothing.
func (tx *Tx) Detach(c *Conn) {
	if c.detached {
		return
	}
	m := tx.m
	c.detached = true
	m.attached--
	tx.Unpark(c)
	m.unsubscribeAll(c)
	tx.Unwatch(c)
	m.leaveRoleHolder(c)
}

// unsubscribeAll ends c's subscriptions and takes its number in the dispatch, and so its readiness.
func (m *Machine) unsubscribeAll(c *Conn) {
	if c.sub == 0 {
		return
	}
	m.ids = m.dispatch.Queues(c.sub, m.ids[:0])
	m.dispatch.Remove(c.sub)
	m.conns[c.sub] = nil
	c.sub, c.queues = 0, 0
	for _, id := range m.ids {
		q := m.queues.of(id)
		m.await(q, -1)
		if m.filters(c) {
			m.addFiltered(q, -1)
		}
		m.listIdle(q)
	}
	m.leaveClass(c)
}

// Resume ends a pause. Drivers call it when CaughtUp is true.
func (tx *Tx) Resume(c *Conn) {
	if c.paused && !c.detached {
		c.paused = false
		tx.m.dispatch.Resume(c.sub)
		tx.m.markConn(c)
	}
}
