package broker

import (
	"container/heap"
	"slices"
)

// A request that can be carried out only later waits: its connection is parked, under the names of
// the queues that it waits for. When one of them changes so that its turn may have come, the same
// request is made again, from its first byte. One that cannot be carried out then parks again, and
// keeps its place and its deadline.
//
// Those who take from a queue are one line with its subscribers, in order of arrival. Pushes that
// wait for room stand in a line of their own: the first one's turn comes when the queue takes it.
// Others that push meanwhile are refused or wait behind it, also if there were room for them. Those
// who take come first: who pushes and who takes never wait for each other.

// Parking is what a request waits for.
type Parking struct {
	// Queues need not exist. A push has one. A request without any waits for something else: TimeOut
	// makes it again.
	Queues [][]byte
	Filter *Filter // of a take; nil: any packet will do
	Push   bool    // it waits for room, not for packets
	As     []byte  // the name of the consumer that claims; empty: the client's
	Until  int64   // deadline on the clock of Tx.Steady; 0: none
}

// Park makes the request of c wait. Receiver.Again makes it again; Detach ends the wait. c must not
// be a subscriber. ErrQueueClosed if all the queues of a take are drained. ErrTooManyAwaited.
func (tx *Tx) Park(c *Conn, p Parking) error {
	m := tx.m
	switch {
	case !c.again && (c.parked || c.queues > 0):
		return ErrWaiting
	case len(p.Queues) > MaxSubscriptions:
		return ErrTooManySubscriptions
	case !p.Push && len(p.Queues) > 0 && tx.Drained(p.Queues):
		return ErrQueueClosed
	case c.again:
		c.stays = true
		return nil
	}
	if err := m.lineUp(c, p); err != nil {
		return err
	}
	c.parked, c.until, c.as = true, p.Until, string(p.As)
	if c.until != 0 {
		heap.Push(&m.parked, c)
	}
	return nil
}

// lineUp puts c into the lines of the queues that it waits for.
func (m *Machine) lineUp(c *Conn, p Parking) error {
	r := consumerRole
	if p.Push {
		r = producerRole
	}
	m.unsubscribeAll(c) // it may have been ready for nothing
	m.joinClass(c, p.Filter)
	m.dispatch.Credit(m.subscriber(c), 1)
	for _, name := range p.Queues {
		if _, err := m.join(c, name, r); err != nil {
			m.unsubscribeAll(c)
			return err
		}
	}
	for _, name := range p.Queues { // now that no queue refuses
		m.tx.useRole(m.queueNamed(name), r)
	}
	return nil
}

// Unpark ends the wait of c without an answer. It returns false if c does not wait.
func (tx *Tx) Unpark(c *Conn) bool {
	if !c.parked {
		return false
	}
	tx.m.unpark(c)
	return true
}

// unpark ends the wait of c.
func (m *Machine) unpark(c *Conn) {
	if c.until != 0 {
		heap.Remove(&m.parked, c.place)
	}
	c.parked, c.until = false, 0
	m.unsubscribeAll(c)
}

// again has the request of c made again, the last time if its time is over. It returns false if
// that parked again.
func (m *Machine) again(c *Conn, w *waiters) (done bool) {
	tx, caller, db, settling := &m.tx, m.tx.caller, m.tx.db, m.settling
	tx.As(c)
	m.settling = true // what it changes is worked off when it has ended: c itself may be next
	c.again, c.stays = true, false
	var name []byte
	if w != nil {
		name = []byte(w.of.name)
	}
	c.to.Again(tx, name)
	c.again = false
	m.settling = settling
	tx.caller, tx.db = caller, db
	if c.stays && w != nil {
		return false
	}
	if c.parked {
		m.unpark(c)
	}
	return true
}

// TimeOut lets the request of c end, which waits, in the next Turn, as at its deadline.
func (tx *Tx) TimeOut(c *Conn) {
	m := tx.m
	m.unsubscribeAll(c)
	had := c.until != 0
	if c.until = -1; had {
		heap.Fix(&m.parked, c.place)
	} else {
		heap.Push(&m.parked, c)
	}
}

// endWaits ends the waits whose deadline is due.
func (m *Machine) endWaits() {
	for len(m.parked) > 0 && m.parked[0].until <= m.tx.steady && !m.open.full(m.limits) {
		m.again(m.parked[0], nil)
	}
}

// parkedHeap is the parked connections that have a deadline, the earliest first (container/heap).
type parkedHeap []*Conn

func (h parkedHeap) Len() int           { return len(h) }
func (h parkedHeap) Less(i, j int) bool { return h[i].until < h[j].until }
func (h parkedHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

// Push is called by container/heap.
func (h *parkedHeap) Push(c any) {
	c.(*Conn).place = len(*h)
	*h = append(*h, c.(*Conn))
}

// Pop is called by container/heap.
func (h *parkedHeap) Pop() any {
	last := len(*h) - 1
	c := (*h)[last]
	*h = slices.Delete(*h, last, last+1)
	return c
}
