package broker

import (
	"math"

	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/storage"
)

// queue is one queue that the server knows: one that holds packets, has subscribers, or was
// emptied a short while ago. A queue that is none of these does not exist.
type queue struct {
	name        string
	id          uint32        // storage's number; used again only when all numbers were used once
	ix          index.QueueID // index's number; used again after the queue is dropped
	wideNoted   bool          // noteWide has logged it
	defined     bool          // the store, or the open batch, holds the definition
	subscribers int           // consumers subscribed
	idle        bool          // listed in queueTable.idle
	deferred    bool          // listed in Broker.starved
}

// queueTable finds queues by name and by index number. It belongs to Broker.mu.
type queueTable struct {
	byName map[string]*queue
	all    []*queue // by index.QueueID; nil where the number is free
	idle   []*queue // emptied queues, the longest empty first; some may be in use again
	bytes  int      // of all names

	taken  map[uint32]bool // numbers of storage in use; nil until the mark of the next queue is at its end
	number uint32          // of storage: the last one that was free then
}

func (t *queueTable) load(restored []recovery.Queue) {
	t.byName = make(map[string]*queue, len(restored))
	for _, r := range restored {
		t.add(&queue{name: string(r.Name), id: r.ID, ix: r.Index, defined: true})
	}
}

func (t *queueTable) find(name []byte) *queue { return t.byName[string(name)] }

func (t *queueTable) of(id index.QueueID) *queue { return t.all[id] }

func (t *queueTable) add(q *queue) {
	for int(q.ix) >= len(t.all) {
		t.all = append(t.all, nil)
	}
	t.all[q.ix] = q
	t.byName[q.name] = q
	t.bytes += len(q.name)
	if t.taken != nil {
		t.taken[q.id] = true
	}
}

func (t *queueTable) drop(q *queue) {
	t.all[q.ix] = nil
	delete(t.byName, q.name)
	t.bytes -= len(q.name)
	delete(t.taken, q.id)
}

// nextNumber returns a number of storage that no queue has. It moves the mark of the next queue up
// to its end, above all numbers, and then gives those out again that have become free: clients that
// make queues and leave them empty use all numbers up in days. MaxQueues leaves some free.
func (t *queueTable) nextNumber(m *storage.Marks) uint32 {
	const end = math.MaxUint32
	if m.NextQueue < end {
		m.NextQueue++
		return m.NextQueue - 1
	}
	if t.taken == nil {
		t.taken = make(map[uint32]bool, len(t.byName))
		for _, q := range t.byName {
			t.taken[q.id] = true
		}
	}
	for ok := false; !ok; ok = !t.taken[t.number] {
		if t.number++; t.number == end {
			t.number = 1
		}
	}
	return t.number
}

// makeQueue returns the queue called name, known or new.
func (b *Broker) makeQueue(name []byte) (*queue, error) {
	if q := b.queues.find(name); q != nil {
		return q, nil
	}
	if len(b.queues.byName) >= MaxQueues || b.queues.bytes+len(name) > MaxNameBytes {
		return nil, ErrTooManyQueues
	}
	q := &queue{name: string(name), id: b.queues.nextNumber(&b.marks), ix: b.ix.AddQueue()}
	b.queues.add(q)
	return q, nil
}

// define brings q's definition to disk with the open batch, once.
func (b *Broker) define(q *queue) {
	if !q.defined {
		b.open.ops.PutQueue(storage.Queue{ID: q.id, Name: []byte(q.name), New: true})
		q.defined = true
	}
}

// markEmpty remembers that q may be empty.
func (b *Broker) markEmpty(q *queue) {
	if !q.idle && b.unused(q) {
		q.idle = true
		b.queues.idle = append(b.queues.idle, q)
	}
}

// evictEmpty forgets some of the queues that have been empty longest, once there are many. Each adds a
// record to the open batch, so it belongs to a moment when that has room.
func (b *Broker) evictEmpty() {
	for n := 0; n < evictAtOnce && len(b.queues.idle) > maxIdleQueues; n++ {
		old := b.queues.idle[0]
		b.queues.idle = b.queues.idle[1:]
		old.idle = false
		if b.unused(old) {
			b.dropQueue(old)
		}
	}
}

func (b *Broker) unused(q *queue) bool {
	return q.subscribers == 0 && b.ix.Counts(q.ix).Len() == 0
}

func (b *Broker) dropQueue(q *queue) {
	if err := b.ix.DropQueue(q.ix); err != nil {
		return // it holds packets after all; it will be retired again when they are gone
	}
	if q.defined {
		b.open.ops.DeleteQueue(q.id)
	}
	b.queues.drop(q)
}

func (q *queue) packet(p index.Packet) storage.PacketID {
	return storage.PacketID{Queue: q.id, Priority: p.Priority, Seq: p.Seq}
}
