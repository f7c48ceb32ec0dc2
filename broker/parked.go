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
// A take may wait to fill a batch: when its turn comes and there is less, it stays in line, for so
// many packets or for a moment. It holds nothing: others take what is there meanwhile. Of those who
// fill like batches one begins at a time, so that a packet wakes one of them.
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
	Claims bool    // what it takes is claimed
	As     []byte  // the name of the consumer that claims; empty: the client's
	Until  int64   // deadline on the clock of Tx.Steady; 0: none

	// Of a take that fills a batch, from one queue:
	Least   int   // its Selection.Least
	Fill    int64 // how long it waits for so many once there is one, in milliseconds
	Filling bool  // it was refused with ErrFilling, and Until is the end of that time
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
		if c.fills != p.Filling {
			m.setFills(c, p.Filling)
			m.setUntil(c, p.Until)
		}
		return nil
	}
	if err := m.lineUp(c, p); err != nil {
		return err
	}
	c.parked, c.as = true, string(p.As)
	m.setFills(c, p.Filling)
	m.setUntil(c, p.Until)
	return nil
}

// setUntil gives the wait of c a deadline, or none.
func (m *Machine) setUntil(c *Conn, until int64) {
	if c.until != 0 {
		heap.Remove(&m.parked, c.place)
	}
	if c.until = until; until != 0 {
		heap.Push(&m.parked, c)
	}
}

// setFills says whether c waits to fill a batch. When it no longer does another one may begin.
func (m *Machine) setFills(c *Conn, fills bool) {
	if c.fills == fills {
		return
	}
	k := m.classes[c.class]
	if c.fills = fills; fills {
		k.filling++
		return
	}
	k.filling--
	w := m.filledFrom(c)
	if k.filter != nil && w.queue != nil {
		m.ix.Refresh(w.queue.ix)
	}
	m.mark(w)
}

// filledFrom returns who waits for the one name from which c fills a batch.
func (m *Machine) filledFrom(c *Conn) *waiters {
	m.ids = m.dispatch.Lists(c.sub, m.ids[:0])
	return m.lists[m.ids[0]]
}

// lineUp puts c into the lines of the queues that it waits for.
func (m *Machine) lineUp(c *Conn, p Parking) error {
	r := consumerRole
	if p.Push {
		r = producerRole
	}
	m.unsubscribeAll(c) // it may have been ready for nothing
	var batch batchOf
	if p.Least > 0 {
		batch = batchOf{p.Queues[0], p.Least, p.Fill}
	}
	m.joinClass(c, p.Filter, batch, p.Claims)
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
	m.setUntil(c, 0)
	c.parked = false
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
	m.setUntil(c, -1)
}

// endWaits ends the waits whose deadline is due. Who fills a batch takes what there is then, and
// waits on if others have taken all.
func (m *Machine) endWaits() {
	for len(m.parked) > 0 && m.parked[0].until <= m.tx.steady && !m.open.full(m.limits) {
		c, w := m.parked[0], (*waiters)(nil)
		if c.fills {
			w = m.filledFrom(c)
		}
		m.tx.filled = c.fills
		m.again(c, w)
		m.tx.filled = false
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
