package broker

import (
	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/storage"
)

// A delivery is a pop that the broker makes for a subscriber. A waiter (wait.go) stands in the same
// line and pops by itself when its turn comes. One rule says when: no queue keeps a packet while
// somebody waits who can take it. It has two sides:
//
//	a packet comes, deliverQueue              a connection is ready, fillConn
//
//	  queue                                     queue A   queue B   queue C
//	    │ best packet                               └─────────┼─────────┘ best packet of all
//	    ▼                                                     ▼
//	  the connection that waits longest                   connection
//	  (again while both are there)                        (again while it has readiness)
//
// A waiter with a filter can take only what that accepts. The queue asks about the lanes that got
// packets since it asked before (class.go), so a push costs the same however many lanes there are.
//
// A queue that is paused out (gate.go) keeps its packets. Both sides end early in two cases. A
// connection with too much outstanding is paused: it leaves the wait lists of all its queues until
// Resume. And where a delivery cannot be made now (refusesDelivery, or the open batch is full) the
// queue or the connection is deferred: deliverDeferred tries again when a fresh batch is opened,
// when the disk has space again, and when an Atomic ends.

// deliverQueue gives packets of q to the subscribers that wait for them, the longest waiting first.
func (b *Broker) deliverQueue(q *queue) {
	if q.subscribers > 0 && b.drained(q) {
		b.endDrained(q)
		return
	}
	for q.subscribers > 0 && !q.isPausedOut() {
		if b.refusesDelivery() || b.open.full(b.limits) {
			b.deferQueue(q)
			return
		}
		s, ok := b.nextSubscriber(q)
		if !ok {
			break
		}
		c := b.conn(s)
		if c.waiter != nil {
			b.serveWaiter(q, c)
			continue
		}
		if b.pauseIfBehind(c) {
			continue
		}
		if ok, _ := b.tx.popGroup(q, c.delivery, c, 0); ok { // else all that it selected is damaged
			b.dispatch.Spend(s)
		}
	}
	if q.filtered > 0 {
		b.ix.ClearChanged(q.ix)
	}
}

// fillConn gives c what its readiness allows from the queues it subscribes to.
func (b *Broker) fillConn(c *Conn) {
	for c.queues > 0 && b.dispatch.Credits(c.sub) > 0 && !b.pauseIfBehind(c) {
		if b.refusesDelivery() || b.open.full(b.limits) {
			b.deferConn(c)
			return
		}
		q := b.bestQueue(c)
		if q == nil {
			return
		}
		if ok, _ := b.tx.popGroup(q, c.delivery, c, 0); ok { // else as in deliverQueue
			b.dispatch.Spend(c.sub)
		}
	}
}

// bestQueue returns the queue of c's that has the best packet: the lowest priority number, then the
// end of the sequences that c takes from. It is nil if none has one that can be selected.
func (b *Broker) bestQueue(c *Conn) *queue {
	var best index.Packet
	b.ids = b.dispatch.Queues(c.sub, b.ids[:0])
	for _, id := range b.ids {
		q := b.queues.of(id)
		if q.isPausedOut() {
			continue
		}
		p, ok := b.ix.Best(id, b.selection(q, c.delivery))
		if !ok {
			b.logWide(q, c.delivery)
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
	return b.queues.of(best.Queue)
}

// refusesDelivery says that no delivery may be made now: the broker is ending, the disk is full, or
// an Atomic is under way, which may take the packets itself.
func (b *Broker) refusesDelivery() bool {
	return b.closing || b.failure != nil || b.space >= storage.Stop || b.tx.atomic
}

// pauseIfBehind says whether c is paused, after pausing it if too much is outstanding. It keeps its
// readiness.
func (b *Broker) pauseIfBehind(c *Conn) (paused bool) {
	if c.paused.Load() {
		return true
	}
	if c.outstandingBytes() <= MaxOutstandingBytes {
		return false
	}
	c.paused.Store(true)
	if c.outstandingBytes() <= MaxOutstandingBytes { // the receiver may have caught up without seeing the pause
		c.paused.Store(false)
		return false
	}
	b.dispatch.Pause(c.sub)
	return true
}

func (b *Broker) deferQueue(q *queue) {
	if !q.deferred {
		q.deferred = true
		b.deferredQueues = append(b.deferredQueues, q)
	}
}

func (b *Broker) deferConn(c *Conn) {
	if !c.deferred {
		c.deferred = true
		b.deferredConns = append(b.deferredConns, c)
	}
}

// deliverDeferred makes the deliveries that were deferred, also those that they cause: a waiter
// that moves a packet to another queue defers that. Pushes that waited for room are made, too. What
// cannot be made now stays deferred.
func (b *Broker) deliverDeferred() {
	for size := -1; len(b.deferredConns)+len(b.deferredQueues) > 0; {
		if b.open.size() == size || b.refusesDelivery() || b.open.full(b.limits) {
			return
		}
		size = b.open.size()
		conns, queues := b.deferredConns, b.deferredQueues
		b.deferredConns, b.deferredQueues = nil, nil
		for _, c := range conns {
			c.deferred = false
			if !c.detached {
				b.fillConn(c)
			}
		}
		for _, q := range queues {
			q.deferred = false
			b.deliverQueue(q)
			b.admitLine(q)
		}
	}
}
