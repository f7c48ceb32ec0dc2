package broker

// notePush notes that the caller pushes packets. A connection knows which producer it was, so most
// pushes look nothing up.
func (m *Machine) notePush(q *queue, packets int) {
	c := m.tx.caller
	if c == nil {
		return
	}
	if k := c.pushed; k != nil && k.of == q {
		k.Seen, k.Conn = m.tx.now, c.number
		k.Pushed += uint64(packets)
		return
	}
	name := m.roleHolderOf(c).name
	name = name[:min(len(name), MaxConsumer)]
	k := q.producers[name]
	if k == nil {
		full := len(q.producers) >= MaxProducers && m.tx.now >= q.producersFull
		if full || len(q.producers) >= max(q.producersAt, minConsumers) {
			m.pruneProducers(q)
			q.producersAt, q.producersFull = 2*len(q.producers), m.tx.now+ConsumerTime/10
		}
		if m.producers == MaxConsumers || len(q.producers) >= MaxProducers {
			return
		}
		if q.producers == nil {
			q.producers = make(map[string]*producer)
		}
		k = &producer{Producer{Name: name}, q}
		q.producers[name] = k
		m.producers++
	}
	c.pushed = k
	m.notePush(q, packets)
}

// pruneProducers forgets the producers of a queue that have not pushed lately.
func (m *Machine) pruneProducers(q *queue) {
	for _, k := range q.producers {
		if m.tx.now-k.Seen >= ConsumerTime {
			m.forgetProducer(q, k)
		}
	}
}

func (m *Machine) forgetProducer(q *queue, k *producer) {
	delete(q.producers, k.Name)
	k.of = nil
	m.producers--
}

// forgetProducers forgets the producers of a queue that ends.
func (m *Machine) forgetProducers(q *queue) {
	for _, k := range q.producers {
		m.forgetProducer(q, k)
	}
	q.producers = nil
}
