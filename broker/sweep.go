package broker

import (
	"slices"

	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/recovery"
)

// A queue of many packets is dropped with one record: its definition says so from then on. The
// queue has no name any more, so no call finds it. The committer deletes its packets in slices, and
// its definition with the last of them.

const (
	// dropAtOnce is the most packets that go together with their queue. More are left to the sweeper.
	dropAtOnce = 128
	// sweepSlice is how many packets the sweeper deletes, or looks at, before others have the lock.
	sweepSlice = 1024
)

// dropRoom is what dropQueue of a queue of that name, with so many packets, brings: deletes, or a
// definition.
func dropRoom(name string, packets int) Room {
	return Room{Records: 1, Bytes: len(name), Deletes: min(packets, dropAtOnce)}
}

// dropQueue deletes the queue with its settings and all that it holds. Whoever subscribes to it or
// waits for it does so by name, and goes on with a new queue of that name.
func (b *Broker) dropQueue(q *queue) {
	if n := b.ix.Counts(q.ix); n.Len() > dropAtOnce || n.Len() > n.Ready || q.settings != nil || b.ix.HasWindow(q.ix) {
		b.drop(q)
		if q.awaited() {
			b.transfer(q, b.addQueue(q.name))
		}
		return
	}
	b.scratch = b.ix.Next(q.ix, index.Selection{}, 0, dropAtOnce, b.scratch[:0])
	for _, p := range b.scratch {
		b.ix.Remove(p.ID)
		b.deletePacket(q, p)
	}
	b.touch(q)
	b.markEmpty(q)
}

// supersede drops the queue and returns a new one of its name, with its settings.
func (b *Broker) supersede(q *queue) (fresh *queue) {
	expiry, settings, roles := b.keys.QueueExpiry(q.ix), q.settings, q.roles
	b.drop(q)
	fresh = b.addQueue(q.name)
	b.keys.SetQueueExpiry(fresh.ix, expiry)
	fresh.counters = q.counters
	if settings != nil {
		b.queues.setSettings(fresh, settings)
		b.define(fresh)
	}
	for r, k := range roles {
		fresh.hold(role(r), k)
	}
	b.transfer(q, fresh)
	return fresh
}

// drop takes the queue's name away and leaves its packets to the sweeper.
func (b *Broker) drop(q *queue) {
	b.touch(q)
	b.leave(q)
	b.open.ops.PutQueue(b.definition(q))
}

// leave is drop for a queue that the store knows to be dropped.
func (b *Broker) leave(q *queue) {
	q.dropped = true
	b.keys.SetQueueExpiry(q.ix, 0)
	b.queues.unname(q)
	b.queues.setSettings(q, nil)
	b.forgetWorkers(q)
	b.dropped = append(b.dropped, q)
	b.signal()
}

// transfer gives the subscribers and waiters of one queue to another. Nobody has both: one name is
// one queue. The other takes its place among the deferred queues, too: who waits is served by the
// name that was filled first.
func (b *Broker) transfer(from, to *queue) {
	b.dispatch.Transfer(from.ix, to.ix)
	to.subscribers += from.subscribers
	from.subscribers = 0
	b.addFiltered(to, from.filtered)
	b.addFiltered(from, -from.filtered)
	b.ix.Refresh(to.ix)
	b.moveLine(from, to)
	if i := slices.Index(b.deferredQueues, from); i >= 0 {
		b.deferredQueues[i] = to
		from.deferred, to.deferred = false, true
	}
}

// renameQueue gives the queue another name. A queue that has that name holds nothing. Whoever
// subscribes to a name, or waits for it, stays with the name.
func (b *Broker) renameQueue(q *queue, name []byte) {
	b.touch(q)
	other := b.queues.find(name)
	if other == q {
		return
	}
	if other != nil {
		b.queues.unname(other)
	}
	old := q.name
	b.queues.unname(q)
	if q.awaited() {
		b.transfer(q, b.addQueue(old))
	}
	b.queues.setName(q, string(name))
	if other != nil {
		b.transfer(other, q)
		b.freeQueue(other)
	}
	b.open.ops.PutQueue(b.definition(q))
	b.touch(q)
	b.deliverQueue(q)
}

// loadDropped gives the sweeper the queues that were dropped before the start.
func (b *Broker) loadDropped(restored []recovery.Queue) {
	for _, r := range restored {
		q := &queue{id: r.ID, ix: r.Index, defined: true, dropped: true}
		b.queues.addNumber(q)
		b.dropped = append(b.dropped, q)
	}
}

// sweep deletes packets of dropped queues. It is the committer's, and returns true if it has to go
// on once others had the lock.
func (b *Broker) sweep() (more bool) {
	if len(b.dropped) == 0 || b.refusesDelivery() || b.open.ops.Len() >= b.limits.ops/2 {
		return false
	}
	q, n := b.dropped[0], min(sweepSlice, b.limits.ops/4)
	b.scratch = b.ix.Next(q.ix, index.Selection{}, 0, n, b.scratch[:0])
	for state := index.Ready; len(b.scratch) == 0 && state <= index.Done; state++ {
		b.scratch = b.ix.List(q.ix, state, index.Place{}, n, b.scratch)
	}
	for _, p := range b.scratch {
		b.ix.Remove(p.ID)
		b.deletePacket(q, p)
	}
	for ; n > len(b.scratch); n-- {
		identity, ok := b.ix.EndWindow(q.ix)
		if !ok {
			break
		}
		b.endUnique(q, identity)
	}
	if b.ix.Counts(q.ix).Len() == 0 && !b.ix.HasWindow(q.ix) {
		b.dropped = b.dropped[1:]
		b.freeQueue(q)
	}
	return len(b.dropped) > 0
}

// freeQueue ends a queue that holds nothing and has no name: nobody can get at it any more.
func (b *Broker) freeQueue(q *queue) {
	if b.ix.DropQueue(q.ix) != nil {
		return
	}
	if q.defined {
		b.open.ops.DeleteQueue(q.id)
	}
	b.queues.free(q)
}
