package broker

import (
	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/index/keyspace"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// A queue of many packets is dropped with one record: its definition says so from then on. The
// queue has no name any more, so no call finds it. Work deletes its packets in slices, and
// its definition with the last of them (garbage.go).

const (
	// dropAtOnce is the most packets that go together with their queue. More are left to Work.
	dropAtOnce = 128
	// mayDropAtOnce is the most that the queues of one Atomic, or of a Turn, have then.
	mayDropAtOnce = 4096
)

// dropQueue deletes the queue with its settings and all that it holds. Whoever waits for its name
// waits on.
func (m *Machine) dropQueue(q *queue) {
	n := m.ix.Counts(q.ix)
	few := n.Len() <= min(dropAtOnce, mayDropAtOnce-m.tx.dropped)
	if few && n.Len() == n.Ready && q.own == nil && !m.ix.HasWindow(q.ix) {
		m.tx.dropped += n.Len()
		m.dropNow(q, m.remains(q, dropAtOnce), EventDeleted)
		if m.holdsNothing(q) {
			return
		}
	}
	m.dropLater(q)
}

// remains returns some packets of a queue that ends, n at most, whatever keeps takes from them.
// They are valid until the next call.
func (m *Machine) remains(q *queue, n int) []index.Packet {
	m.scratch = m.scratch[:0]
	for state := index.Ready; len(m.scratch) < n && state <= index.Damaged; state++ {
		m.scratch = m.ix.List(q.ix, state, index.Place{}, n-len(m.scratch), m.scratch)
	}
	return m.scratch
}

// holdsNothing says that a queue which ends holds nothing any more. That is a mistake of the
// machine's if it does: nothing is lost by it, as Work deletes the rest.
func (m *Machine) holdsNothing(q *queue) bool {
	n := m.ix.Counts(q.ix).Len()
	if n == 0 && !m.ix.HasWindow(q.ix) {
		return true
	}
	m.log.Error("a queue that ends holds something: it goes in slices", "queue", q.id, "packets", n)
	mistake("a queue that ends holds something")
	return false
}

// mistake is told what the machine should never come to. In tests it panics.
var mistake = func(string) {}

// dropNow deletes packets of a queue. kind says why to those who tail it.
func (m *Machine) dropNow(q *queue, packets []index.Packet, kind EventKind) {
	m.dropBefore(q, packets, kind)
	m.changed(q)
}

// dropBefore is dropNow where the call brings packets to the queue next: it is not empty meanwhile.
func (m *Machine) dropBefore(q *queue, packets []index.Packet, kind EventKind) {
	for _, p := range packets {
		m.tail(q, p, kind)
		m.ix.Remove(p.ID)
		m.deletePacket(q, p)
	}
}

// dropLater takes the queue's name away and leaves its packets to Work.
func (m *Machine) dropLater(q *queue) {
	m.changedName(q.entry)
	if q.tailed {
		m.tell(q, Event{Kind: EventPurged, Tail: true})
	}
	m.retire(q)
	m.open.ops.PutQueue(m.definition(q))
}

// retire is dropLater for a queue that the store knows to be dropped.
func (m *Machine) retire(q *queue) {
	q.dropped = true
	m.takeName(q)
	m.setSettings(q, nil)
	m.forgetConsumers(q)
	m.forgetProducers(q)
	m.garbage = append(m.garbage, q)
	m.forgetShares(q)
}

// replaceQueue drops the queue and returns a new one of its name, with its settings. The caller
// fills it, or it has settings.
func (m *Machine) replaceQueue(q *queue) (fresh *queue) {
	expiry, own, roles, shares, due := q.expiry(), q.own, q.roles, q.shares.all, m.ix.DueOf(q.ix)
	m.dropLater(q)
	fresh = m.addQueue(q.entry.Database(), q.entry.Name())
	m.names.Set(fresh.entry, keyspace.Queue)
	m.names.SetExpiry(fresh.entry, expiry)
	fresh.counters = q.counters
	if own != nil {
		m.setSettings(fresh, own)
	}
	m.ix.GoOn(fresh.ix, due)
	m.define(fresh)
	for _, s := range shares {
		if its := *s; !its.Empty() && !its.OnlyRests() { // these may be too many
			its.ShareID = content.ShareID{Queue: fresh.id}
			m.putShare(fresh, &its, true)
		}
	}
	for r, k := range roles {
		fresh.grantRole(role(r), k)
	}
	return fresh
}

// renameQueue gives the queue another name of its database. A queue that has that name holds
// nothing. Whoever subscribes to a name, or waits for it, stays with the name.
func (m *Machine) renameQueue(q *queue, name []byte) {
	old, expiry, other := q.entry, q.expiry(), m.queueNamed(name)
	m.changedName(old)
	if q.tailed {
		m.tell(q, Event{Kind: EventMoved, Tail: true, To: string(name)})
	}
	m.takeName(q)
	if other != nil && other.expired != nil {
		m.dropLater(other)
	} else if other != nil {
		m.release(other)
	}
	q.own = withoutItself(q.own, string(name))
	m.setName(q, m.names.Make(old.Database(), name))
	if q.tailed {
		m.tell(q, Event{Kind: EventArrived, Tail: true})
	}
	m.changed(q)
	m.names.SetExpiry(q.entry, expiry)
	m.open.ops.PutQueue(m.definition(q))
}

// release ends a queue that holds nothing, with its name: nobody can get at it any more. Were
// anything left, it would stay garbage, and release return false.
func (m *Machine) release(q *queue) bool {
	switch empty := m.holdsNothing(q); {
	case !empty && !q.dropped:
		m.dropLater(q)
		return false
	case !empty:
		return false
	case !q.dropped:
		m.takeName(q)
	}
	m.forgetConsumers(q)
	m.forgetProducers(q)
	m.forgetShares(q)
	_ = m.ix.DropQueue(q.ix) // it is empty
	if q.defined {
		m.open.ops.DeleteQueue(q.id)
	}
	delete(m.rests.Queues, q.id) // which is given again
	m.queues.free(q)
	return true
}

// forgetShares has Work delete what the shares of a queue that ends have of their own.
func (m *Machine) forgetShares(q *queue) {
	discard(m, q.shares.all, func(m *Machine, s *Share) (more bool) {
		if !s.Empty() {
			m.open.ops.DeleteShare(s.ShareID)
		}
		return false
	})
	q.shares = shares{}
}

// evictDue drops the empty queues that are too many, or have been empty for long. It is a
// part of Work.
func (m *Machine) evictDue() (more bool) {
	for n := 0; len(m.queues.idle) > 0; n++ {
		age := m.tx.now - m.queues.idle[0].emptied
		due := len(m.queues.idle) > maxIdleQueues || age >= maxIdleTime || age < 0
		if !due || m.open.full(m.limits) || m.refusesDelivery() {
			return false
		}
		if n >= evictSlice && len(m.queues.idle) <= maxIdleQueues {
			return true
		}
		q := m.queues.idle[0]
		m.queues.idle[0], m.queues.idle = nil, m.queues.idle[1:] // nil, so that it can be freed
		q.idle = false
		if m.queues.has(q) && m.unused(q) { // it may be in use again
			m.release(q)
		}
	}
	m.queues.idle = nil
	return false
}

// Flush deletes everything of the present database, or of all: every queue, string and hash. One
// record says so, which drops what has a lower number. Work deletes that from the disk.
func (tx *Tx) Flush(all bool) error {
	m, from, to := tx.m, tx.db, tx.db
	if all {
		from, to = 0, Databases-1
	}
	reused := m.reusesNumbers()
	m.flushed(from, to)
	for db := from; db <= to; db++ {
		m.flushes[db]++
		discard(m, m.names.Flush(db), (*Machine).removeKey)
		m.queues.names[db].n, m.queues.names[db].bytes = 0, 0
		m.flush[db].Keys = m.marks.LastKey + 1
		if !reused { // what an earlier flush drops stays dropped
			m.flush[db].Queues = m.marks.NextQueue
		}
	}
	m.open.ops.SetFlush(m.flush)
	tx.looked += len(m.lists) + len(m.watchers) + 2*len(m.tails)
	for _, w := range m.lists {
		if w != nil && w.queue != nil && m.isFlushed(w.queue) {
			m.part(w.queue)
		}
	}
	if reused {
		for _, q := range m.queues.all {
			if q != nil && m.isFlushed(q) {
				m.retire(q)
				m.open.ops.PutQueue(m.definition(q))
			}
		}
	} // else Work retires them
	left := flushedQueues(len(m.queues.all))
	m.garbage = append(m.garbage, &left)
	return nil
}

// flushedQueues are the queues below a number of the index that a Flush has dropped.
type flushedQueues int

func (left *flushedQueues) sweep(m *Machine, n int) (looked int, over bool) {
	to := min(int(*left), len(m.queues.all))
	from := max(0, to-n)
	for _, q := range m.queues.all[from:to] {
		if q != nil && m.isFlushed(q) {
			m.retire(q)
		}
	}
	*left = flushedQueues(from)
	return n, from == 0
}

// sweep deletes packets and windows of a dropped queue, and the queue with the last of them.
func (q *queue) sweep(m *Machine, n int) (looked int, over bool) {
	if q.expired != nil { // the definition goes last
		looked, over = q.expired.sweep(m, n)
		return looked, over && q.expired != nil
	}
	packets := m.remains(q, n)
	m.dropNow(q, packets, EventDeleted)
	for looked = len(packets); looked < n; looked++ {
		identity, ok := m.ix.EndWindow(q.ix)
		if !ok {
			break
		}
		m.endUnique(q, identity)
	}
	if m.ix.Counts(q.ix).Len() > 0 || m.ix.HasWindow(q.ix) {
		return looked, false
	}
	return looked + 1, m.release(q)
}
