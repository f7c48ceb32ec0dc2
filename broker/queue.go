package broker

import (
	"math"
	"slices"

	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/index/keyspace"
	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// loadQueues adds the queues that recovery found.
func (m *Machine) loadQueues(restored []recovery.Queue) {
	for _, r := range restored {
		q := &queue{id: r.ID, ix: r.Index, defined: true, counters: r.Counters, own: r.Settings, due: index.TakeDue{At: r.Due, Gap: r.DueGap}}
		m.queues.add(q)
		for _, s := range r.Shares {
			q.shares.put(s)
		}
		m.setName(q, m.names.Make(r.Database, r.Name))
		q.from = r.SharesFrom
		if m.refreshName(q); q.entry.Kind() == keyspace.Queue {
			m.names.SetExpiry(q.entry, r.Expiry)
		} else {
			q.stale = r.Expiry != 0
			m.listIdle(q)
		}
	}
}

// origin is the queue that a packet which died names by its number of storage; nil if it is gone.
func (m *Machine) origin(number uint32) *queue {
	if q := m.queues.origins[number]; q != nil && !m.isFlushed(q) && !m.isOver(q) {
		return q
	}
	return nil
}

func (m *Machine) originName(number uint32) string {
	if q := m.origin(number); q != nil {
		return q.entry.Name()
	}
	return ""
}

// named returns how many queues have names, and the bytes of those.
func (t *queueTable) named() (n, bytes int) {
	for _, names := range t.names {
		n, bytes = n+names.n, bytes+names.bytes
	}
	return n, bytes
}

func (t *queueTable) of(id index.QueueID) *queue { return t.all[id] }

// has says that q was not dropped.
func (t *queueTable) has(q *queue) bool { return int(q.ix) < len(t.all) && t.all[q.ix] == q }

// add makes a queue known that has no name yet.
func (t *queueTable) add(q *queue) {
	t.all = setAt(t.all, int(q.ix), q, nil)
	if t.taken != nil {
		t.taken[q.id] = true
	}
}

// free forgets a queue that has no name. It gives back the memory of a table that has become much
// smaller. That may not copy the table at each of the hundreds of thousands of queues of a flush.
func (t *queueTable) free(q *queue) {
	t.all[q.ix] = nil
	delete(t.taken, q.id)
	delete(t.origins, q.id)
	n := len(t.all)
	for n > 0 && t.all[n-1] == nil {
		n--
	}
	if t.all = t.all[:n]; n < cap(t.all)/shrinkTable && cap(t.all) > minShrinkTable {
		t.all = slices.Clone(t.all)
	}
}

// nextNumber returns a number of storage that no queue has. The mark of the next queue rises until
// all numbers were used once: clients that make queues and leave them empty get there in days. From
// then on nextNumber returns numbers that are free again, of which MaxQueues leaves some.
func (t *queueTable) nextNumber(m *content.Marks) uint32 {
	const end = math.MaxUint32
	if m.NextQueue < end {
		m.NextQueue++
		return m.NextQueue - 1
	}
	if t.taken == nil {
		t.taken = make(map[uint32]bool, len(t.all))
		for _, q := range t.all {
			if q != nil {
				t.taken[q.id] = true
			}
		}
	}
	for ok := false; !ok; ok = !t.taken[t.number] {
		if t.number++; t.number == end {
			t.number = 1
		}
	}
	return t.number
}

// setName gives a queue without a name one that no queue has.
func (m *Machine) setName(q *queue, e *keyspace.Entry) {
	q.entry = e
	names := &m.queues.names[e.Database()]
	names.n++
	names.bytes += len(e.Name())
	m.names.SetQueue(e, q.ix)
	q.tailed = len(m.tails) > 0 && m.tails[watched{e.Database(), e.Name()}] > 0
	m.follow(q)
	if w := m.awaited[watched{e.Database(), e.Name()}]; w != nil {
		m.meet(q, w)
	}
}

// takeName takes a queue's name away.
func (m *Machine) takeName(q *queue) {
	e := q.entry
	q.tailed = false
	m.part(q)
	if !m.names.Has(e) { // a flush has taken it
		return
	}
	names := &m.queues.names[e.Database()]
	names.n--
	names.bytes -= len(e.Name())
	if e.Kind() == keyspace.Queue {
		m.names.Set(e, keyspace.None)
	}
	m.names.SetQueue(e, 0)
}

// queueNamed returns the queue of a name; nil if there is none. One beside a string or hash is
// empty.
func (m *Machine) queueNamed(name []byte) *queue {
	if e := m.named(name); e != nil && e.Queue() != 0 {
		return m.queues.of(e.Queue())
	}
	return nil
}

// findQueue is queueNamed, but it returns ErrWrongType if a string or hash has the name.
func (m *Machine) findQueue(name []byte) (*queue, error) {
	switch e := m.named(name); {
	case e == nil:
		return nil, nil
	case e.IsValue():
		return nil, ErrWrongType
	default:
		q := m.queues.of(e.Queue())
		m.endDuePauses(q)
		return q, nil
	}
}

// makeQueue returns the queue called name, known or new. ErrWrongType as for findQueue. A new one
// goes again soon if it stays unused.
func (m *Machine) makeQueue(name []byte) (*queue, error) {
	if q, err := m.findQueue(name); q != nil || err != nil {
		return q, err
	}
	if err := m.checkNewQueue(name); err != nil {
		return nil, err
	}
	q := m.addQueue(m.tx.db, string(name))
	m.listIdle(q)
	return q, nil
}

// isOver says that the time of a queue's name is over, so that the queue goes soon.
func (m *Machine) isOver(q *queue) bool {
	at := q.expiry()
	return at != 0 && at <= m.tx.now
}

// endDuePauses ends the pauses of a queue, which may be nil, that are over.
func (m *Machine) endDuePauses(q *queue) {
	if q == nil || q.own == nil {
		return
	}
	if at := endOfPause(q.own); at != 0 && at <= m.tx.now {
		m.endPauses(q)
	}
}

// checkNewQueue says why no queue can be made for a name that has none.
func (m *Machine) checkNewQueue(name []byte) error {
	if err := checkName(name, 0); err != nil {
		return err
	}
	if n, bytes := m.queues.named(); n >= MaxQueues || bytes+len(name) > MaxNameBytes || m.flushesReused() {
		return ErrTooManyQueues
	}
	return nil
}

// addQueue makes a queue with a name that no queue has.
func (m *Machine) addQueue(db uint8, name string) *queue {
	q := &queue{id: m.queues.nextNumber(&m.marks), ix: m.ix.AddQueue(), flushes: m.flushes[db]}
	m.queues.add(q)
	m.setName(q, m.names.Make(db, []byte(name)))
	return q
}

// define brings q's definition to disk with the open batch, if it is not there as it should be.
func (m *Machine) define(q *queue) {
	if !q.defined || q.stale {
		d := m.definition(q)
		d.New = !q.defined
		m.open.ops.PutQueue(d)
		q.defined, q.stale = true, false
	}
}

// setFrom notes when the shares of a queue give again by its slow rate; 0: the next start says it.
func (m *Machine) setFrom(q *queue, at int64) {
	if q.from != at && !m.isGone(q) {
		q.from, q.stale = at, true
		m.define(q)
	}
}

// definition returns what the store has of the queue besides its packets.
func (m *Machine) definition(q *queue) content.Queue {
	due, from := q.due.At, q.from
	for _, at := range [...]*int64{&due, &from} {
		if *at != 0 {
			*at += m.tx.now - m.tx.steady // on the wall clock
		}
	}
	return content.Queue{
		ID: q.id, Database: q.entry.Database(), Name: []byte(q.entry.Name()), Expiry: q.expiry(), Dropped: q.dropped,
		Settings: q.own, Counters: q.counters, Rest: m.rests.Queues[q.id],
		Due: due, DueGap: q.due.Gap, SharesFrom: from,
	}
}

// expiry is when the queue expires, 0 for never.
func (q *queue) expiry() int64 {
	if q.dropped || q.entry.Kind() != keyspace.Queue { // beside a string it is empty
		return 0
	}
	return q.entry.Expiry()
}

// changed follows every change to what a queue holds, and to its settings. It tells those who watch
// its name, and those who wait for packets in it or for room.
func (m *Machine) changed(q *queue) {
	m.mark(q.waiters)
	if !q.dropped {
		m.changedName(q.entry)
		m.refreshName(q)
	}
}

// refreshName lets a queue have its name, or not, as it exists or not. An empty queue no longer
// expires. Its definition says so when it gets packets again, so a pop does not write it.
func (m *Machine) refreshName(q *queue) {
	e := q.entry
	switch exists := m.exists(q); {
	case exists && e.Kind() == keyspace.None:
		m.names.Set(e, keyspace.Queue)
	case !exists && e.Kind() == keyspace.Queue:
		q.stale = q.stale || e.Expiry() != 0
		m.names.Set(e, keyspace.None)
		m.listIdle(q)
	}
}

// listIdle lists a queue as idle if nothing uses it. It is dropped later, since it may be used
// again soon.
func (m *Machine) listIdle(q *queue) {
	if !m.unused(q) {
		return
	}
	if q.emptied = m.tx.now; !q.idle {
		q.idle = true
		m.queues.idle = append(m.queues.idle, q)
	}
}

func (m *Machine) unused(q *queue) bool {
	return q.waiters == nil && !q.dropped && !m.exists(q) && !m.ix.HasWindow(q.ix) && !m.isOrigin(q) && !m.keepsRate(q) && q.expired == nil
}

// keepsRate says that a queue would begin its rates anew if it was dropped. Whoever invents names
// fills no more than half of the table with such.
func (m *Machine) keepsRate(q *queue) bool {
	if !m.ix.IsAhead(q.ix) {
		return false
	}
	n, _ := m.queues.named()
	return n < MaxQueues/2
}

// isOrigin says that packets which died in the queue lie elsewhere, and would return to it.
func (m *Machine) isOrigin(q *queue) bool { return m.ix.IsOrigin(q.id) && m.queues.origins[q.id] == q }

// leaveOrigins lists queues as idle for which such packets alone were a use.
func (m *Machine) leaveOrigins() {
	for _, number := range m.ix.FreedOrigins() {
		if q := m.queues.origins[number]; q != nil {
			m.listIdle(q)
		}
	}
}

// exists says that the queue has its name: it holds packets, or it has settings of its own.
func (m *Machine) exists(q *queue) bool { return q.own != nil || m.ix.Counts(q.ix).Len() > 0 }

func (q *queue) packet(p index.Packet) content.PacketID {
	return content.PacketID{Queue: q.id, Priority: p.Priority, Seq: p.Seq}
}

// elements returns n elements of a list from a position on. They are valid until the next call.
func (m *Machine) elements(q *queue, from, n int) []index.Packet {
	m.scratch = m.ix.Elements(q.ix, from, n, m.scratch[:0])
	return m.scratch
}

// isPausedOut says that no packet of a queue may be taken now.
func (q *queue) isPausedOut() bool { return q.settings != nil && q.settings.PauseOut }

// drained says that a queue will never give a packet again: it is closed, and none is unfinished.
func (m *Machine) drained(q *queue) bool {
	if q == nil || q.settings == nil || !q.settings.Closed {
		return false
	}
	n, _ := m.ix.Counts(q.ix).Unfinished()
	return n == 0
}

// isFlushed says that a Flush has dropped a queue, which has yet to be retired. No call finds it by
// its name.
func (m *Machine) isFlushed(q *queue) bool {
	return !q.dropped && q.flushes != m.flushes[q.entry.Database()]
}

// isGone says that nothing of a queue is to be written any more.
func (m *Machine) isGone(q *queue) bool { return !m.queues.has(q) || q.dropped || m.isFlushed(q) }

// flushesReused says that a new queue would get a number that the flush under way drops.
func (m *Machine) flushesReused() bool {
	return m.flush[m.tx.db].Queues != 0 && m.reusesNumbers()
}

// reusesNumbers says that new queues get numbers that are free again.
func (m *Machine) reusesNumbers() bool { return m.marks.NextQueue == math.MaxUint32 }

// Drained says that all of the queues are closed, and have no packet that is ready, delayed or
// claimed: they will never give one again.
func (tx *Tx) Drained(names [][]byte) bool {
	for _, name := range names {
		if !tx.m.drained(tx.m.queueNamed(name)) {
			return false
		}
	}
	return true
}
