package broker

import (
	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/recovery"
)

// worker is a consumer of one queue, by the name that it claims with. A packet names the worker
// that claimed it last.
type worker struct {
	name    string
	number  uint32 // in workers.all, plus 1
	packets int    // that name it
	seen    int64  // Unix milliseconds
	listed  bool   // in its queue's workers
}

// workers are those of all queues. One that no packet names stays listed in its queue for
// WorkerTime. Past MaxWorkers one is known only while a packet names it.
type workers struct {
	all    []*worker // nil where the number is free
	free   []uint32
	listed int
}

// pruneWorkers is how many workers a queue lists before those that nobody needs are looked for.
const pruneWorkers = 64

// load adds what recovery found.
func (w *workers) load(restored []recovery.Worker, queues *queueTable) {
	for i, r := range restored {
		k := &worker{name: r.Name, number: uint32(i + 1), packets: r.Packets, seen: r.Seen}
		w.all = append(w.all, k)
		if q := queues.of(r.Queue); !q.dropped {
			w.list(q, k)
		}
	}
}

// name returns the name of a worker; none for the number 0.
func (w *workers) name(number uint32) string {
	if number == 0 {
		return ""
	}
	return w.all[number-1].name
}

// enter returns the worker of a queue with a name, and notes that it called.
func (b *Broker) enter(q *queue, name []byte) *worker {
	k := q.workers[string(name)]
	if k == nil {
		if len(q.workers) >= max(q.pruneAt, pruneWorkers) {
			b.pruneWorkers(q)
			q.pruneAt = 2 * len(q.workers)
		}
		k = &worker{name: string(name)}
		b.workers.add(k)
		b.workers.list(q, k)
	}
	k.seen = b.tx.now
	return k
}

func (w *workers) list(q *queue, k *worker) {
	if w.listed == MaxWorkers {
		return
	}
	if q.workers == nil {
		q.workers = make(map[string]*worker)
	}
	q.workers[k.name], k.listed = k, true
	w.listed++
}

// unlist is the reverse of list.
func (w *workers) unlist(q *queue, k *worker) {
	delete(q.workers, k.name)
	k.listed = false
	w.listed--
	w.release(k)
}

func (w *workers) add(k *worker) {
	if n := len(w.free); n > 0 {
		k.number = w.free[n-1]
		w.free = w.free[:n-1]
		w.all[k.number-1] = k
		return
	}
	w.all = append(w.all, k)
	k.number = uint32(len(w.all))
}

// release frees a worker's number if nothing needs that.
func (w *workers) release(k *worker) {
	if k.packets == 0 && !k.listed {
		w.all[k.number-1] = nil
		w.free = append(w.free, k.number)
	}
}

// pruneWorkers forgets the workers of a queue that no packet names and that were not seen lately.
func (b *Broker) pruneWorkers(q *queue) {
	for _, k := range q.workers {
		if k.packets == 0 && b.tx.now-k.seen >= WorkerTime {
			b.workers.unlist(q, k)
		}
	}
}

// forgetWorkers forgets the workers of a queue that ends.
func (b *Broker) forgetWorkers(q *queue) {
	for _, k := range q.workers {
		b.workers.unlist(q, k)
	}
	q.workers = nil
}

// seen notes that the worker of a claim made a call.
func (b *Broker) seen(d index.Delivery) {
	if d.Consumer != 0 {
		b.workers.all[d.Consumer-1].seen = b.tx.now
	}
}

// leaveWorker notes that a packet no longer names the worker that claimed it last.
func (b *Broker) leaveWorker(p index.Packet) {
	if p.Stored == 0 || p.Consumer == 0 {
		return
	}
	k := b.workers.all[p.Consumer-1]
	k.packets--
	b.workers.release(k)
}
