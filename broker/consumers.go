package broker

import (
	"slices"

	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/recovery"
)

// minConsumers is how many consumers a queue lists before those that nobody needs are looked for.
const minConsumers = 64

// load adds what recovery found.
func (w *consumers) load(restored []recovery.Worker, queues *queueTable) {
	for i, r := range restored {
		k := &consumer{name: r.Name, number: uint32(i + 1), packets: r.Packets, seen: r.Seen}
		w.all = append(w.all, k)
		if q := queues.of(r.Queue); !q.dropped {
			w.list(q, k)
		}
	}
}

// name returns the name of a consumer; none for the number 0.
func (w *consumers) name(number uint32) string {
	if number == 0 {
		return ""
	}
	return w.all[number-1].name
}

// enter returns the consumer of a queue with a name, and notes that it called.
func (m *Machine) enter(q *queue, name []byte) *consumer {
	k := q.consumers[string(name)]
	if k == nil {
		if len(q.consumers) >= max(q.pruneAt, minConsumers) {
			m.pruneConsumers(q)
			q.pruneAt = 2 * len(q.consumers)
		}
		k = &consumer{name: string(name)}
		m.consumers.add(k)
		m.consumers.list(q, k)
	}
	k.seen = m.tx.now
	return k
}

func (w *consumers) list(q *queue, k *consumer) {
	if w.listed == MaxConsumers {
		return
	}
	if q.consumers == nil {
		q.consumers = make(map[string]*consumer)
	}
	q.consumers[k.name], k.listed = k, true
	w.listed++
}

// unlist is the reverse of list.
func (w *consumers) unlist(q *queue, k *consumer) {
	delete(q.consumers, k.name)
	k.listed = false
	w.listed--
	w.release(k)
}

func (w *consumers) add(k *consumer) {
	if n := len(w.free); n > 0 {
		k.number = w.free[n-1]
		w.free = w.free[:n-1]
		w.all[k.number-1] = k
		return
	}
	w.all = append(w.all, k)
	k.number = uint32(len(w.all))
}

// release frees a consumer's number if nothing needs that.
func (w *consumers) release(k *consumer) {
	if k.packets == 0 && !k.listed {
		w.all[k.number-1] = nil
		w.free = append(w.free, k.number)
	}
}

// pruneConsumers forgets the consumers of a queue that no packet names and that were not seen
// lately.
func (m *Machine) pruneConsumers(q *queue) {
	for _, k := range q.consumers {
		if k.packets == 0 && m.tx.now-k.seen >= ConsumerTime {
			m.consumers.unlist(q, k)
		}
	}
}

// forgetConsumers forgets the consumers of a queue that ends.
func (m *Machine) forgetConsumers(q *queue) {
	for _, k := range q.consumers {
		m.consumers.unlist(q, k)
	}
	q.consumers = nil
}

// seen notes that the consumer of a claim made a call.
func (m *Machine) seen(d index.Delivery) {
	if d.Consumer != 0 {
		m.consumers.all[d.Consumer-1].seen = m.tx.now
	}
}

// heldClaims is how many claims of a queue held looks at.
const heldClaims = 64

// held says whether a consumer that is silent holds a packet of a queue.
func (m *Machine) held(q *queue) bool {
	w := &m.consumers
	all := len(w.all)-len(w.free) == w.listed // who holds a packet is listed
	if m.ix.Counts(q.ix).Claimed == 0 || all && len(q.consumers) <= heldClaims && !m.anySilent(q) {
		return false
	}
	m.scratch = m.ix.List(q.ix, index.Claimed, index.Place{}, heldClaims, m.scratch[:0])
	return slices.ContainsFunc(m.scratch, func(p index.Packet) bool {
		return p.Consumer != 0 && m.silent(m.consumers.all[p.Consumer-1])
	})
}

// silent says that a consumer has made no call for ConsumerTime. Calls before the start are not
// known.
func (m *Machine) silent(k *consumer) bool { return m.tx.now-max(k.seen, m.begun) >= ConsumerTime }

// anySilent says that a listed consumer is silent that packets name. Most queues have none: then
// their claims need no look.
func (m *Machine) anySilent(q *queue) bool {
	for _, k := range q.consumers {
		if k.packets > 0 && m.silent(k) {
			return true
		}
	}
	return false
}

// leaveConsumer notes that a packet no longer names the consumer that claimed it last.
func (m *Machine) leaveConsumer(p index.Packet) {
	if p.Stored == 0 || p.Consumer == 0 {
		return
	}
	k := m.consumers.all[p.Consumer-1]
	k.packets--
	m.consumers.release(k)
}
