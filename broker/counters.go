package broker

import "github.com/holdfast-queue/holdfast/storage"

// countersTime is how old the counters on disk may be while they change, in milliseconds.
const countersTime = 1000

// countersSlice is how many counters the committer writes before others have the lock.
const countersSlice = 256

// count adds to a counter of a queue.
func (b *Broker) count(q *queue, counter *uint64, n int) {
	*counter += uint64(n)
	if !q.counted && n > 0 {
		q.counted = true
		if b.counted = append(b.counted, q); len(b.counted) == 1 {
			b.countersAt = b.tx.steady + countersTime
		}
	}
}

// saveCounters writes the counters that changed, if it is time for that or the broker closes. It is
// the committer's, and returns true if it has to go on once others had the lock.
func (b *Broker) saveCounters() (more bool) {
	if len(b.counted) == 0 || !b.closing && b.tx.steady < b.countersAt {
		return false
	}
	for n := 0; len(b.counted) > 0; n++ {
		if b.open.full(b.limits) || b.failure != nil || b.space >= storage.Stop {
			return false
		}
		if n == countersSlice {
			return true
		}
		q := b.counted[0]
		b.counted = b.counted[1:]
		q.counted = false
		if b.queues.has(q) && q.defined && !q.dropped {
			b.open.ops.PutCounters(q.id, q.counters)
		}
	}
	b.counted = nil
	return false
}
