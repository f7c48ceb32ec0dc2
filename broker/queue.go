package broker

import (
	"container/list"
	"math"
	"slices"

	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/storage"
)

// queue is one queue that the server knows: one that holds packets, has subscribers, or was
// emptied a short while ago. Any other queue does not exist.
type queue struct {
	name        string
	id          uint32        // storage's number; used again only when all numbers were used once
	ix          index.QueueID // index's number; used again after the queue is dropped
	subscribers int           // consumers subscribed
	filtered    int           // of them, those that wait with a filter
	line        *list.List    // of *Consumer: pushes that wait for room; nil if there is none
	emptied     int64         // while idle: when it was listed, in Unix milliseconds
	idle        bool          // listed in queueTable.idle
	defined     bool          // the store, or the open batch, holds the definition
	stale       bool          // that has an expiry which ended when the queue was emptied
	deferred    bool          // listed in Broker.deferredQueues
	wideLogged  bool          // logWide has logged it
	deadLogged  bool          // deadLetter has logged it
	dropped     bool          // it has no name and is in Broker.dropped

	settings *Settings        // nil: the defaults, and the queue ends when it is empty
	orders   map[string]order // of the settings, see tags.go
	counters Counters
	counted  bool               // listed in Broker.counted
	roles    [2]*client         // see role.go
	workers  map[string]*worker // see workers.go
	pruneAt  int                // how many of them there are when they are pruned
}

// queueTable finds queues by name and by index number. It belongs to Broker.mu.
type queueTable struct {
	byName map[string]*queue
	peak   int      // the most names that byName has held: Go's maps never shrink
	all    []*queue // by index.QueueID; nil where the number is free
	idle   []*queue // emptied queues, the longest empty first; some may be in use again
	bytes  int      // of all names
	// lasting are the queues with settings, by storage's number: packets that died name them.
	lasting map[uint32]*queue

	taken  map[uint32]bool // numbers of storage in use; nil until the mark of the next queue is at its end
	number uint32          // of storage: the last one that was given out since then
}

func (t *queueTable) load(restored []recovery.Queue) {
	t.byName = make(map[string]*queue, len(restored))
	for _, r := range restored {
		q := &queue{name: string(r.Name), id: r.ID, ix: r.Index, defined: true, counters: r.Counters}
		t.add(q)
		t.setSettings(q, r.Settings)
	}
}

// setSettings gives a queue settings, nil for none.
func (t *queueTable) setSettings(q *queue, s *Settings) {
	q.settings, q.orders = s, ordersOf(s)
	q.endRoles()
	if s == nil {
		delete(t.lasting, q.id)
		return
	}
	if t.lasting == nil {
		t.lasting = make(map[uint32]*queue)
	}
	t.lasting[q.id] = q
}

// originName is the name of the queue with settings that has a number of storage; none if it is
// gone.
func (t *queueTable) originName(id uint32) string {
	if q := t.lasting[id]; q != nil {
		return q.name
	}
	return ""
}

func (t *queueTable) find(name []byte) *queue { return t.byName[string(name)] }

func (t *queueTable) of(id index.QueueID) *queue { return t.all[id] }

// has says that q was not dropped.
func (t *queueTable) has(q *queue) bool { return int(q.ix) < len(t.all) && t.all[q.ix] == q }

// add makes q known, with its name and number.
func (t *queueTable) add(q *queue) {
	t.addNumber(q)
	t.setName(q, q.name)
}

// addNumber makes a queue known that has no name.
func (t *queueTable) addNumber(q *queue) {
	for int(q.ix) >= len(t.all) {
		t.all = append(t.all, nil)
	}
	t.all[q.ix] = q
	if t.taken != nil {
		t.taken[q.id] = true
	}
}

// setName gives a queue without a name one that no queue has.
func (t *queueTable) setName(q *queue, name string) {
	q.name = name
	t.byName[name] = q
	t.peak = max(t.peak, len(t.byName))
	t.bytes += len(name)
}

// unname takes a queue's name away.
func (t *queueTable) unname(q *queue) {
	delete(t.byName, q.name)
	t.bytes -= len(q.name)
}

// free forgets a queue that has no name.
func (t *queueTable) free(q *queue) {
	t.all[q.ix] = nil
	delete(t.taken, q.id)
	n := len(t.byName)
	if n < t.peak/shrinkTable && t.peak > minShrinkTable || n == 0 && len(t.all) > minShrinkTable {
		t.shrink()
	}
}

// shrink gives back the memory of a table that has become much smaller.
func (t *queueTable) shrink() {
	byName := make(map[string]*queue, len(t.byName))
	for name, q := range t.byName {
		byName[name] = q
	}
	t.byName, t.peak = byName, len(byName)
	last := len(t.all) - 1
	for last >= 0 && t.all[last] == nil {
		last--
	}
	t.all = slices.Clone(t.all[:last+1])
}

// nextNumber returns a number of storage that no queue has. The mark of the next queue rises until
// all numbers were used once: clients that make queues and leave them empty get there in days. From
// then on nextNumber returns numbers that are free again, of which MaxQueues leaves some.
func (t *queueTable) nextNumber(m *storage.Marks) uint32 {
	const end = math.MaxUint32
	if m.NextQueue < end {
		m.NextQueue++
		return m.NextQueue - 1
	}
	if t.taken == nil {
		t.taken = make(map[uint32]bool, len(t.byName))
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

// findQueue returns the queue called name, nil if there is none. It returns ErrWrongType if a
// string or hash has the name.
func (b *Broker) findQueue(name []byte) (*queue, error) {
	q := b.queues.find(name)
	if (q == nil || !b.exists(q)) && b.isValue(name) {
		return nil, ErrWrongType
	}
	return q, nil
}

// makeQueue returns the queue called name, known or new. ErrWrongType as for findQueue.
func (b *Broker) makeQueue(name []byte) (*queue, error) {
	if q, err := b.findQueue(name); q != nil || err != nil {
		return q, err
	}
	if err := b.checkName(name, 0); err != nil {
		return nil, err
	}
	if len(b.queues.byName) >= MaxQueues || b.queues.bytes+len(name) > MaxNameBytes || b.flushesReused() {
		return nil, ErrTooManyQueues
	}
	return b.addQueue(string(name)), nil
}

// addQueue makes a queue with a name that no queue has.
func (b *Broker) addQueue(name string) *queue {
	q := &queue{name: name, id: b.queues.nextNumber(&b.marks), ix: b.ix.AddQueue()}
	b.queues.add(q)
	return q
}

// define brings q's definition to disk with the open batch, if it is not there as it should be.
func (b *Broker) define(q *queue) {
	if !q.isDefined() {
		d := b.definition(q)
		d.New = !q.defined
		b.open.ops.PutQueue(d)
		q.defined, q.stale = true, false
	}
}

// isDefined says that q's definition is on disk, or in the open batch, as it should be.
func (q *queue) isDefined() bool { return q.defined && !q.stale }

// definition is what the store holds of the queue besides its packets.
func (b *Broker) definition(q *queue) storage.Queue {
	return storage.Queue{
		ID: q.id, Name: []byte(q.name), Expiry: b.keys.QueueExpiry(q.ix), Dropped: q.dropped,
		Settings: q.settings, Counters: q.counters,
	}
}

// markEmpty lists q as idle if nothing uses it. It is dropped later, since it may be used again
// soon. An empty queue no longer expires, unless it has settings and so lasts. Its definition
// says so when it gets packets again: a pop has no room for that.
func (b *Broker) markEmpty(q *queue) {
	if b.ix.Counts(q.ix).Len() == 0 && q.settings == nil && b.keys.QueueExpiry(q.ix) != 0 {
		b.keys.SetQueueExpiry(q.ix, 0)
		q.stale = true
	}
	if !q.idle && b.unused(q) {
		q.idle, q.emptied = true, b.tx.now
		b.queues.idle = append(b.queues.idle, q)
	}
}

// tooManyIdle says that the committer has to evict empty queues now.
func (t *queueTable) tooManyIdle() bool { return len(t.idle) > maxIdleQueues }

// evictEmpty drops the queues that have been empty longest, n at most, while there are many. Each
// adds a record to the open batch, so that must have room.
func (b *Broker) evictEmpty(n int) {
	for ; n > 0 && len(b.queues.idle) > keepIdleQueues; n-- {
		b.evictFirst()
	}
}

// evictDue drops the empty queues that are too many, or have been empty for long. It is the
// committer's, and returns true if it has to go on once others had the lock.
func (b *Broker) evictDue() (more bool) {
	for n := 0; len(b.queues.idle) > 0; n++ {
		age := b.tx.now - b.queues.idle[0].emptied
		due := b.queues.tooManyIdle() || age >= maxIdleTime || age < 0
		if !due || b.open.full(b.limits) || b.refusesDelivery() {
			return false
		}
		if n == evictSlice {
			return true
		}
		b.evictFirst()
	}
	return false
}

// evictFirst drops the queue that has been empty longest, unless it is in use again.
func (b *Broker) evictFirst() {
	q := b.queues.idle[0]
	b.queues.idle[0] = nil // so that it can be freed while the list lives on
	if b.queues.idle = b.queues.idle[1:]; len(b.queues.idle) == 0 {
		b.queues.idle = nil
	}
	q.idle = false
	if b.queues.has(q) && b.unused(q) {
		b.queues.unname(q)
		b.forgetWorkers(q)
		b.freeQueue(q)
	}
}

func (b *Broker) unused(q *queue) bool {
	return !q.awaited() && !q.dropped && !b.exists(q) && !b.ix.HasWindow(q.ix)
}

// awaited says that somebody subscribes to the queue, or waits for it.
func (q *queue) awaited() bool { return q.subscribers > 0 || q.line != nil }

// exists says that the queue has its name: it holds packets, or it has settings.
func (b *Broker) exists(q *queue) bool { return q.settings != nil || b.ix.Counts(q.ix).Len() > 0 }

func (q *queue) packet(p index.Packet) storage.PacketID {
	return storage.PacketID{Queue: q.id, Priority: p.Priority, Seq: p.Seq}
}
