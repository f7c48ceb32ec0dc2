package broker

import (
	"slices"

	"github.com/holdfast-queue/holdfast/broker/keyspace"
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

// dropQueue deletes the queue with its settings and all that it holds. Whoever subscribes to it or
// waits for it does so by name, and goes on with a new queue of that name.
func (b *Broker) dropQueue(q *queue) {
	if n := b.ix.Counts(q.ix); n.Len() <= dropAtOnce && n.Len() == n.Ready && q.settings == nil && !b.ix.HasWindow(q.ix) {
		b.dropNow(q, b.ix.Next(q.ix, index.Selection{}, 0, dropAtOnce, b.scratch[:0]))
		return
	}
	b.dropLater(q)
	if q.awaited() {
		b.moveWaiters(q, b.addQueue(q.entry.Database(), q.entry.Name()))
	}
}

// dropNow deletes packets of a queue.
func (b *Broker) dropNow(q *queue, packets []index.Packet) {
	for _, p := range packets {
		b.ix.Remove(p.ID)
		b.deletePacket(q, p)
	}
	b.changed(q)
}

// dropLater takes the queue's name away and leaves its packets to the sweeper.
func (b *Broker) dropLater(q *queue) {
	b.changedName(q.entry)
	b.retire(q)
	b.open.ops.PutQueue(b.definition(q))
}

// retire is dropLater for a queue that the store knows to be dropped.
func (b *Broker) retire(q *queue) {
	q.dropped = true
	b.takeName(q)
	b.queues.setSettings(q, nil)
	b.forgetConsumers(q)
	b.dropped = append(b.dropped, q)
	b.signal()
}

// replaceQueue drops the queue and returns a new one of its name, with its settings. The caller
// fills it, or it has settings.
func (b *Broker) replaceQueue(q *queue) (fresh *queue) {
	expiry, settings, roles := q.expiry(), q.settings, q.roles
	b.dropLater(q)
	fresh = b.addQueue(q.entry.Database(), q.entry.Name())
	b.names.Set(fresh.entry, keyspace.Queue)
	b.names.SetExpiry(fresh.entry, expiry)
	fresh.counters = q.counters
	if settings != nil {
		b.setSettings(fresh, settings)
	}
	b.define(fresh)
	for r, k := range roles {
		fresh.grantRole(role(r), k)
	}
	b.moveWaiters(q, fresh)
	return fresh
}

// moveWaiters gives the subscribers and waiters of one queue to another. Nobody has both: one name
// is one queue. The other takes its place among the deferred queues, too: who waits is served by
// the name that was filled first.
func (b *Broker) moveWaiters(from, to *queue) {
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

// renameQueue gives the queue another name of its database. A queue that has that name holds
// nothing. Whoever subscribes to a name, or waits for it, stays with the name.
func (b *Broker) renameQueue(q *queue, name []byte) {
	old, expiry, other := q.entry, q.expiry(), b.queueNamed(name)
	b.changedName(old)
	if other != nil {
		b.takeName(other)
	}
	b.takeName(q)
	if q.awaited() {
		b.moveWaiters(q, b.addQueue(old.Database(), old.Name()))
	}
	b.setName(q, b.names.Make(old.Database(), name))
	if other != nil {
		b.moveWaiters(other, q)
		b.release(other)
	}
	b.changed(q)
	b.names.SetExpiry(q.entry, expiry)
	b.open.ops.PutQueue(b.definition(q))
	b.deliverQueue(q)
}

// loadDropped gives the sweeper the queues that were dropped before the start.
func (b *Broker) loadDropped(restored []recovery.Queue) {
	for _, r := range restored {
		q := &queue{id: r.ID, ix: r.Index, defined: true, dropped: true}
		b.queues.add(q)
		b.dropped = append(b.dropped, q)
	}
}

// sweep deletes packets of dropped queues. It is the committer's, and returns true if it has to go
// on once others had the lock.
func (b *Broker) sweep() (more bool) {
	if len(b.dropped) == 0 || !b.maySweep() {
		return false
	}
	q, n := b.dropped[0], min(sweepSlice, b.limits.MaxOps/4)
	b.scratch = b.ix.Next(q.ix, index.Selection{}, 0, n, b.scratch[:0])
	for state := index.Ready; len(b.scratch) == 0 && state <= index.Damaged; state++ {
		b.scratch = b.ix.List(q.ix, state, index.Place{}, n, b.scratch)
	}
	packets := b.scratch
	b.dropNow(q, packets)
	for ; n > len(packets); n-- {
		identity, ok := b.ix.EndWindow(q.ix)
		if !ok {
			break
		}
		b.endUnique(q, identity)
	}
	if b.ix.Counts(q.ix).Len() == 0 && !b.ix.HasWindow(q.ix) {
		b.dropped = b.dropped[1:]
		b.release(q)
	}
	return len(b.dropped) > 0
}

// release ends a queue that holds nothing and has no name: nobody can get at it any more.
func (b *Broker) release(q *queue) {
	b.forgetConsumers(q)
	if b.ix.DropQueue(q.ix) != nil {
		return
	}
	if q.defined {
		b.open.ops.DeleteQueue(q.id)
	}
	b.queues.free(q)
}
