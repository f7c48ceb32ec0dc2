package broker

import "github.com/holdfast-queue/holdfast/storage"

// countersTime is how old the counters on disk may be while they change, in milliseconds.
const countersTime = 1000

// countersSlice is how many counters are written before others have their turn.
const countersSlice = 256

// count adds n to a counter of a queue, and to the same counter of the whole server.
func (m *Machine) count(q *queue, counter, total *uint64, n int) {
	*counter += uint64(n)
	*total += uint64(n)
	if !q.counted && n > 0 {
		q.counted = true
		if m.counted = append(m.counted, q); len(m.counted) == 1 {
			m.countersAt = m.tx.steady + countersTime
		}
	}
}

// saveCounters writes the counters that changed, if it is time for that or the machine closes. It
// is a part of Work.
func (m *Machine) saveCounters() (more bool) {
	if len(m.counted) == 0 || !m.closing && m.tx.steady < m.countersAt {
		return false
	}
	for n := 0; len(m.counted) > 0; n++ {
		if m.open.full(m.limits) || m.space.Level >= storage.Stop {
			return false
		}
		if n == countersSlice && !m.closing {
			return true
		}
		q := m.counted[0]
		m.counted = m.counted[1:]
		q.counted = false
		if m.queues.has(q) && q.defined && !q.dropped {
			m.open.ops.PutCounters(q.id, q.counters)
		}
	}
	m.counted = nil
	return false
}
