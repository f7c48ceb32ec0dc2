package broker_test

import (
	"maps"

	"github.com/holdfast-queue/holdfast/broker"
)

// tailed is what a listener that tails all queues knows: which packets each has, but for those that
// are done. A packet is told once when it comes and once when it goes.
type tailed map[string]map[broker.ID]bool

// tailAll begins to tail all queues, which hold what the model holds.
func (m *workModel) tailAll() {
	m.t.Helper()
	m.do(func(tx *broker.Tx) error {
		m.tx = tx
		m.advance()
		m.tailed = tailed{}
		for _, queue := range workQueues {
			tx.Tail(0, queue, true)
			m.tailed[queue] = map[broker.ID]bool{}
			for _, k := range m.in(queue, nil) {
				m.tailed[queue][k.ID] = true
			}
		}
		return nil
	})
	m.b.told = nil
}

// hear takes in what was told.
func (m *workModel) hear(known tailed, told []broker.Event) {
	m.t.Helper()
	for _, e := range told {
		if !e.Tail {
			continue
		}
		packets := known[e.Queue]
		switch e.Kind {
		case broker.EventPushed, broker.EventArrived:
			if packets[e.ID] {
				m.t.Fatalf("packet %d comes to %s a second time", e.ID, e.Queue)
			}
			packets[e.ID] = true
		case broker.EventMoved:
			if e.To != "" {
				delete(packets, e.ID)
			}
		case broker.EventPopped, broker.EventAcked, broker.EventExpired, broker.EventDropped, broker.EventDeleted, broker.EventCancelled:
			delete(packets, e.ID)
		case broker.EventPurged:
			clear(packets)
		case broker.EventMissed:
			m.t.Fatalf("%d events were left out", e.Messages)
		default:
			if !packets[e.ID] {
				m.t.Fatalf("packet %d of %s is %s, which is not there", e.ID, e.Queue, e.Kind)
			}
		}
	}
}

// compareTailed holds what was told, and what will be when it is on disk, against the model.
func (m *workModel) compareTailed() {
	m.t.Helper()
	m.hear(m.tailed, m.b.told)
	m.b.told = nil
	soon := tailed{}
	for queue, packets := range m.tailed {
		soon[queue] = maps.Clone(packets)
	}
	m.hear(soon, m.b.Events())
	m.hear(soon, m.b.Untold())
	for _, queue := range workQueues {
		want := map[broker.ID]bool{}
		for _, k := range m.in(queue, nil) {
			if want[k.ID] = true; k.State == broker.Done {
				delete(want, k.ID)
				delete(soon[queue], k.ID)
			}
		}
		if !maps.Equal(soon[queue], want) {
			m.t.Fatalf("who tails %s knows of %v, it holds %v", queue, soon[queue], want)
		}
	}
}
