package sim

import (
	"maps"

	"github.com/holdfast-queue/holdfast/broker"
)

// tail is what somebody who tails a queue knows: which packets it has. A packet is told once when
// it comes, and once when it goes. One that is done is told again only if it moves.
type tail struct {
	packets map[int64]bool
	unknown bool // it has to look anew: events were left out, the queue is another one, or LSET gave an id
}

// tailAll begins to tail all queues of database 0, with the first request after a start.
func (w *world) tailAll(tx *broker.Tx) {
	if w.tails != nil {
		return
	}
	w.tails = map[string]*tail{}
	for _, q := range queues {
		tx.Tail(0, q, true)
		w.tails[q] = &tail{packets: w.model.Holds("0" + q)}
	}
}

// hear learns from events of what is on disk.
func (w *world) hear(events []broker.Event) {
	for _, e := range events {
		t := w.tails[e.Queue]
		if !e.Tail || t == nil || w.dead {
			continue
		}
		w.f.did["event "+string(e.Kind)]++
		switch id := int64(e.ID); {
		case e.Kind == broker.EventMissed, e.Kind == broker.EventReplaced, e.Kind == broker.EventArrived && !e.Packet:
			t.unknown = true
		case e.Kind == broker.EventPurged, e.Kind == broker.EventMoved && !e.Packet:
			clear(t.packets)
		case e.Kind == broker.EventPushed, e.Kind == broker.EventArrived:
			if t.packets[id] && !t.unknown {
				w.Fatalf("packet %d comes to %s a second time", id, e.Queue)
			}
			t.packets[id] = true
		case e.Kind == broker.EventMoved && e.To == "": // to another priority, or to the queue with the empty name
			t.unknown = t.unknown || !w.model.Holds("0" + e.Queue)[id]
		case e.Kind == broker.EventMoved, goes[e.Kind]:
			delete(t.packets, id)
		case !t.packets[id] && !t.unknown:
			w.Fatalf("packet %d of %s is %s, and is not there\nThe model has\n%s", id, e.Queue, e.Kind, w.model.Dump())
		}
	}
}

// goes are the events with which a packet goes.
var goes = map[broker.EventKind]bool{
	broker.EventPopped: true, broker.EventAcked: true, broker.EventExpired: true, broker.EventDropped: true,
	broker.EventDeleted: true, broker.EventCancelled: true,
}

// compareTails compares all that was told with the model, once everything is on disk.
func (w *world) compareTails() {
	for q, t := range w.tails {
		want := w.model.Holds("0" + q)
		if t.unknown {
			t.packets, t.unknown = maps.Clone(want), false
		}
		for id, lives := range want {
			if !lives {
				delete(t.packets, id)
				delete(want, id)
			}
		}
		if !maps.Equal(t.packets, want) {
			w.Fatalf("who tails %s knows of %v, want %v\nThe model has\n%s", q, t.packets, want, w.model.Dump())
		}
	}
}
