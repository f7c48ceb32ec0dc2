package broker

import (
	"cmp"
	"slices"

	"github.com/holdfast-queue/holdfast/index"
)

// Attach makes a connection of to, whose subscriptions take what the selection says. Tx.Detach ends
// it.
func (tx *Tx) Attach(to Receiver, delivery Selection) *Conn {
	tx.m.attached++
	tx.m.conned++
	return &Conn{number: tx.m.conned, to: to, delivery: delivery, class: plainClass(delivery.Fits16)}
}

// Conns is how many are attached: the connections of all protocols.
func (tx *Tx) Conns() int { return tx.m.attached }

// Number is that of the connection, which no other has since the start.
func (c *Conn) Number() uint64 { return c.number }

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
		m.conns = setAt(m.conns, int(c.sub), c, nil)
	}
	return c.sub
}

// Subscribe makes c a subscriber of the queue, which need not exist yet. A second subscription is
// ignored (pinpriq document, section subscribe). Deliveries need Ready. ErrWaiting if a request of
// c waits.
func (tx *Tx) Subscribe(c *Conn, name []byte) error {
	m := tx.m
	if c.parked {
		return ErrWaiting
	}
	if c.queues >= MaxSubscriptions {
		if w := m.waitersFor(name); w != nil && slices.Contains(m.dispatch.Lists(c.sub, nil), w.lists[consumerRole]) {
			return nil
		}
		return ErrTooManySubscriptions
	}
	joined, err := m.join(c, name, consumerRole)
	if joined {
		m.markConn(c)
	}
	if err == nil {
		tx.useRole(m.queueNamed(name), consumerRole)
	}
	return err
}

// join puts c among those who wait for a name to have that role; false if it is one of them.
func (m *Machine) join(c *Conn, name []byte, r role) (joined bool, err error) {
	if err := m.tx.mayAwait(name, r); err != nil {
		return false, err
	}
	w, err := m.await(name)
	if err != nil || !m.dispatch.Subscribe(m.subscriber(c), w.lists[r]) {
		return false, err
	}
	c.queues++
	if m.filters(c) {
		m.addFiltered(w, 1)
	}
	return true, nil
}

// mayAwait is mayUse for who waits for a name. Of one without a queue those who wait are the
// consumers.
func (tx *Tx) mayAwait(name []byte, r role) error {
	m := tx.m
	q, err := m.findQueue(name)
	if err == nil {
		err = checkName(name, 0)
	}
	if err == nil && q == nil && r == consumerRole && tx.caller != nil && exclusive(m.defaultsOf(string(name)), r) {
		_, err = m.onlyConsumer(m.roleHolderOf(tx.caller), m.waitersFor(name))
	}
	return cmp.Or(err, tx.mayUse(q, r))
}

// Awaits is for how many names c waits.
func (c *Conn) Awaits() int { return c.queues }

// Unsubscribe ends c's subscription of the queue, if there is one. Readiness that is left stays
// with the connection.
func (tx *Tx) Unsubscribe(c *Conn, name []byte) error {
	m := tx.m
	if w := m.waitersFor(name); w != nil && m.dispatch.Unsubscribe(c.sub, w.lists[consumerRole]) {
		c.queues--
		m.left(w)
	}
	return nil
}

// Subscriptions are the names of the queues that c subscribes to.
func (tx *Tx) Subscriptions(c *Conn) (names [][]byte) {
	if c.sub == 0 {
		return nil
	}
	for _, id := range tx.m.dispatch.Lists(c.sub, nil) {
		names = append(names, []byte(tx.m.lists[id].of.name))
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

// unsubscribeAll ends what c waits for, and its subscriptions, and takes its number in the
// dispatch, and so its readiness. The next push in line may fit.
func (m *Machine) unsubscribeAll(c *Conn) {
	if c.sub == 0 {
		return
	}
	m.setFills(c, false)
	m.ids = m.dispatch.Lists(c.sub, m.ids[:0])
	m.dispatch.Remove(c.sub)
	m.conns[c.sub] = nil
	c.sub, c.queues = 0, 0
	for _, id := range m.ids {
		w := m.lists[id]
		if m.filters(c) {
			m.addFiltered(w, -1)
		}
		if id == w.lists[producerRole] {
			m.mark(w)
		}
		m.left(w)
	}
	m.leaveClass(c)
}

// Resume ends a pause. Drivers call it when CaughtUp is true.
func (tx *Tx) Resume(c *Conn) {
	if c.paused && !c.detached {
		c.paused = false
		tx.m.dispatch.SetPaused(c.sub, false)
		tx.m.markConn(c)
	}
}
