package broker

import (
	"container/heap"
	"slices"

	"github.com/holdfast-queue/holdfast/index"
)

// Waiter is one blocked pop, or a push that waits (WaitPush). Its methods are called with the
// broker's lock held, in whoever's transaction, and must not block.
type Waiter interface {
	// Ready is called once, when the queue has a packet and the waiter is first in line. The
	// connection no longer waits. Ready takes packets (Pop, MoveEnd) and replies. The name is valid
	// during the call. A push is made by it, when its turn comes.
	Ready(tx *Tx, queue []byte)
	// Expired is called once, at the deadline.
	Expired(tx *Tx)
	// Closed is called once, when all the queues are closed and have no unfinished packet left.
	Closed(tx *Tx)
}

// TakeWait is a take that waits.
type TakeWait struct {
	Queues [][]byte // which need not exist
	Filter *Filter  // nil: any packet will do
	Until  int64    // deadline on the clock of Tx.Steady; 0: none
}

// Wait makes c wait, once, for a packet in any of some queues, which have none now that it takes.
// Waiters and subscribers are one line, in order of arrival. Detach ends the wait. c must not be a
// subscriber. ErrQueueClosed if all the queues are drained.
func (tx *Tx) Wait(c *Conn, w Waiter, t TakeWait) error {
	if err := tx.begin(); err != nil {
		return err
	}
	b := tx.b
	switch {
	case c.waiter != nil || c.queues > 0:
		return ErrWaiting
	case len(t.Queues) > MaxSubscriptions:
		return ErrTooManySubscriptions
	}
	if tx.Drained(t.Queues) {
		return ErrQueueClosed
	}
	b.unsubscribeAll(c) // it may have been ready for nothing
	b.joinClass(c, t.Filter)
	b.dispatch.Credit(b.subscriber(c), 1)
	for _, name := range t.Queues {
		q, err := b.makeQueue(name)
		if err == nil {
			err = tx.mayUse(q, consumerRole)
		}
		if err != nil {
			b.unsubscribeAll(c)
			return err
		}
		if b.dispatch.Subscribe(b.subscriber(c), q.ix) {
			c.queues++
			q.subscribers++
			if b.filters(c) {
				b.addFiltered(q, 1)
			}
		}
	}
	for _, name := range t.Queues { // now that no queue refuses
		tx.useRole(b.queueNamed(name), consumerRole)
	}
	b.wait(c, w, t.Until)
	return nil
}

// wait notes that c waits.
func (b *Broker) wait(c *Conn, w Waiter, until int64) {
	c.waiter, c.until = w, until
	c.waiting.Store(true)
	if until != 0 {
		heap.Push(&b.waits, c)
		if until < b.wakeAt { // both on the steady clock
			b.signal()
		}
	}
}

// StopWaiting ends c's wait without a call of its waiter. It returns false if c does not wait.
func (tx *Tx) StopWaiting(c *Conn) bool {
	if c.waiter == nil {
		return false
	}
	tx.b.endWait(c)
	return true
}

// Waiting says that c waits. Any goroutine may ask.
func (c *Conn) Waiting() bool { return c.waiting.Load() }

// endWait takes c out of all lines.
func (b *Broker) endWait(c *Conn) {
	if c.until != 0 {
		heap.Remove(&b.waits, c.place)
	}
	b.unsubscribeAll(c)
	b.leaveLine(c)
	c.waiter, c.until = nil, 0
	c.waiting.Store(false)
	c.to.WaitEnded()
}

// serveWaiter lets c, which is first in line, take from q. It waits on if all that q has for it is
// damaged.
func (b *Broker) serveWaiter(q *queue, c *Conn) {
	if b.readable(q, b.classes[c.class].in(q)) {
		b.ready(q, c)
	}
}

// readable says that s selects a packet that can be read.
func (b *Broker) readable(q *queue, s index.Selection) bool {
	for best, ok := b.ix.Best(q.ix, s); ok; best, ok = b.ix.Best(q.ix, s) {
		b.one[0] = best
		if _, err := b.fetch(q, b.one[:], &s); err == nil {
			return true
		}
	}
	return false
}

// ready ends the wait of c: its turn has come.
func (b *Broker) ready(q *queue, c *Conn) {
	w := c.waiter
	b.endWait(c)
	tx, caller, db := &b.tx, b.tx.caller, b.tx.db
	tx.As(c)
	tx.atomic, tx.reply = true, MaxAtomicReply
	w.Ready(tx, []byte(q.entry.Name()))
	tx.atomic, tx.caller, tx.db = false, caller, db
}

// expireWaits ends the waits whose deadline is due. It returns false if the batch was full before
// all were ended.
func (b *Broker) expireWaits(tx *Tx) bool {
	for len(b.waits) > 0 && b.waits[0].until <= tx.steady {
		if b.open.full(b.limits) {
			return false
		}
		c := b.waits[0]
		w := c.waiter
		b.endWait(c)
		w.Expired(tx)
	}
	return true
}

// waitHeap is the waiting connections that have a deadline, the earliest first (container/heap).
type waitHeap []*Conn

func (h waitHeap) Len() int           { return len(h) }
func (h waitHeap) Less(i, j int) bool { return h[i].until < h[j].until }
func (h waitHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

// Push is called by container/heap.
func (h *waitHeap) Push(c any) {
	c.(*Conn).place = len(*h)
	*h = append(*h, c.(*Conn))
}

// Pop is called by container/heap.
func (h *waitHeap) Pop() any {
	last := len(*h) - 1
	c := (*h)[last]
	*h = slices.Delete(*h, last, last+1)
	return c
}
