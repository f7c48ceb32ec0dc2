package broker

import (
	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/storage"
)

// deliverQueue gives packets of q to its waiting subscribers, the one ready longest first.
func (b *Broker) deliverQueue(q *queue) {
	for q.subscribers > 0 {
		s, ok := b.nextSubscriber(q)
		if !ok {
			return
		}
		if b.refuses() || b.open.full(b.limits) {
			b.deferQueue(q)
			return
		}
		c := b.consumer(s)
		if b.pauseIfBehind(c) {
			continue
		}
		if !b.popGroup(q, c.delivery, c) {
			return
		}
		b.dispatch.Spend(s)
	}
}

// nextSubscriber returns the subscriber that gets the next packet of q; false if none can take it.
func (b *Broker) nextSubscriber(q *queue) (index.SubscriberID, bool) {
	narrow, wide := b.ix.Widths(q.ix)
	if narrow || !wide {
		return b.dispatch.Waiting(q.ix, false)
	}
	if s, ok := b.dispatch.Waiting(q.ix, false); ok {
		b.noteWide(q, b.consumer(s).delivery)
	}
	return b.dispatch.Waiting(q.ix, true)
}

// fillConsumer gives c what its readiness allows from the queues it subscribes to: the best priority
// among them, then the newest.
func (tx *Tx) fillConsumer(c *Consumer) {
	b := tx.b
	for c.queues > 0 && b.dispatch.Credits(c.sub) > 0 && !b.pauseIfBehind(c) {
		if b.refuses() || b.open.full(b.limits) {
			b.deferConsumer(c)
			return
		}
		q := b.bestOf(c)
		if q == nil {
			return
		}
		b.popGroup(q, c.delivery, c)
		b.dispatch.Spend(c.sub)
	}
}

// bestOf returns the subscribed queue whose selection comes first, or nil.
func (b *Broker) bestOf(c *Consumer) *queue {
	var best index.Packet
	b.ids = b.dispatch.Queues(c.sub, b.ids[:0])
	for _, id := range b.ids {
		p, ok := b.ix.Best(id, c.delivery.ofIndex(b))
		if !ok {
			b.noteWide(b.queues.of(id), c.delivery)
			continue
		}
		if best.ID == 0 || p.Priority < best.Priority || p.Priority == best.Priority && p.Seq > best.Seq {
			best = p
		}
	}
	if best.ID == 0 {
		return nil
	}
	return b.queues.of(best.Queue)
}

// deferQueue remembers to deliver q's packets with the next batch.
func (b *Broker) deferQueue(q *queue) {
	if !q.deferred {
		q.deferred = true
		b.deferredQueues = append(b.deferredQueues, q)
	}
}

// deferConsumer remembers to serve c with the next batch.
func (b *Broker) deferConsumer(c *Consumer) {
	if !c.deferred {
		c.deferred = true
		b.deferredConsumers = append(b.deferredConsumers, c)
	}
}

// refuses says that no delivery may be begun: the broker is ending, or the disk is full.
func (b *Broker) refuses() bool {
	return b.closing || b.failure != nil || b.space >= storage.Stop
}

// deliverDeferred delivers to the subscribers that the last batch had no room for.
func (b *Broker) deliverDeferred() {
	hungry, starved := b.deferredConsumers, b.deferredQueues
	b.deferredConsumers, b.deferredQueues = nil, nil
	for _, c := range hungry {
		c.deferred = false
		if !c.detached {
			b.tx.fillConsumer(c)
		}
	}
	for _, q := range starved {
		q.deferred = false
		b.deliverQueue(q)
	}
}

// pauseIfBehind reports whether c has too much unsent to be given more. Its readiness is kept, and its
// receiver calls Resume when the backlog has gone down.
func (b *Broker) pauseIfBehind(c *Consumer) bool {
	if c.paused.Load() {
		return true
	}
	if c.outstandingBytes() <= MaxOutstandingBytes {
		return false
	}
	c.paused.Store(true)
	if c.outstandingBytes() <= MaxOutstandingBytes { // it went down meanwhile, and the receiver may not have seen held
		c.paused.Store(false)
		return false
	}
	b.dispatch.Pause(c.sub)
	return true
}
