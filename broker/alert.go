package broker

import (
	"math"

	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/storage"
)

// Some events are told once, until what they tell of is over. A look each second finds that out, so
// that nothing which happens all the time pays for it.

const (
	alertTime  = 1000 // milliseconds between two looks at a queue, at least
	alertSlice = 1024 // steps before others have their turn
	alertPause = 50   // milliseconds between two slices
	// fineTime is how long the disk must refuse nothing before that is told: refusals may come and go.
	fineTime = 5000
)

// alerts are the queues to look at: those with an alert-age, and those whose bound was reached.
type alerts struct {
	queues []*queue
	next   int   // of queues, to look at
	at     int64 // when, on the steady clock
}

// alert has the looks see a queue from now on.
func (m *Machine) alert(q *queue) {
	if !q.alerts {
		q.alerts = true
		m.alerts.queues = append(m.alerts.queues, q)
	}
}

// lookAtAlerts makes a slice of a look, if it is time for that.
func (m *Machine) lookAtAlerts() {
	a := &m.alerts
	if len(a.queues) == 0 || m.tx.steady < a.at {
		return
	}
	a.at = m.tx.steady + alertPause
	for steps := 0; steps < alertSlice; steps++ {
		if a.next >= len(a.queues) {
			a.next, a.at = 0, m.tx.steady+alertTime
			return
		}
		q := a.queues[a.next]
		more, keep := m.lookAt(q)
		if steps += more; keep {
			a.next++
			continue
		}
		q.alerts = false
		last := len(a.queues) - 1
		a.queues[a.next], a.queues[last] = a.queues[last], nil
		a.queues = a.queues[:last]
	}
}

// lookAt finds out whether what was told of a queue is still so, and returns whether that is to be
// looked at again.
func (m *Machine) lookAt(q *queue) (steps int, keep bool) {
	s, since := settingsOf(q), int64(0)
	gone := m.isGone(q)
	if !gone && s.AlertAge > 0 {
		since, steps = m.since(q)
	}
	if old := m.overdue(s, since); old != q.old {
		q.old = old
		e := Event{Kind: EventYoung}
		if since != 0 {
			e.Age = m.tx.now - since
		}
		if old {
			e.Kind = EventOld
		}
		m.tell(q, e)
	}
	q.full = q.full && !gone && m.nearlyFull(q)
	return steps, !gone && (s.AlertAge > 0 || q.full)
}

// overdue says that a queue whose oldest ready packet was pushed at since is late by its alert-age.
func (m *Machine) overdue(s *Settings, since int64) bool {
	return s.AlertAge > 0 && since != 0 && m.tx.now-since > s.AlertAge
}

// since is when the ready packet of a queue that was pushed first was pushed, as Surveyed.Since
// says, and in how many steps that was found.
func (m *Machine) since(q *queue) (at int64, steps int) {
	if m.ix.Counts(q.ix).Ready == 0 {
		return 0, 0
	}
	at = math.MaxInt64
	steps = m.ix.Eldest(q.ix, middle, surveyPriorities, func(p index.Packet) { at = min(at, m.pushTimes.at(p.Identity)) })
	return at, steps
}

// tellBound tells that a push has found no room in a queue.
func (m *Machine) tellBound(q *queue) {
	if !q.full {
		q.full = true
		m.alert(q)
		m.tell(q, Event{Kind: EventBound})
	}
}

// nearlyFull says that a queue holds more than nine tenths of its bound. One that was full is told
// of again only after that: a queue at its bound goes below it with each packet.
func (m *Machine) nearlyFull(q *queue) bool {
	s := settingsOf(q)
	packets, bytes := m.ix.Counts(q.ix).Unfinished()
	return s.Bound > 0 && int64(packets) > s.Bound/10*9+s.Bound%10*9/10 || s.BoundBytes > 0 && bytes > s.BoundBytes/10*9
}

// refusal is what was told of something that has the server refuse.
type refusal struct {
	told   storage.Level
	better int64 // since when less is refused, on the steady clock; 0: it is not
}

// tellRefusal tells the level of something, if that is another one and lasts, and what is refused
// at Stop.
func (m *Machine) tellRefusal(r *refusal, kind EventKind, level storage.Level, stop string) {
	if level >= r.told {
		r.better = 0
	} else if r.better == 0 {
		r.better = m.tx.steady
	}
	if level > r.told || r.better != 0 && m.tx.steady-r.better >= fineTime {
		r.told, r.better = level, 0
		m.tellServer(Event{Kind: kind, State: [...]string{Fine, "refuses pushes", stop}[level]})
	}
}

// tellJump tells that the wall clock has jumped by some milliseconds, or was put back before a
// start.
func (m *Machine) tellJump(by int64) {
	if jump := storage.Jump.Milliseconds(); by > jump || by < -jump {
		m.tellServer(Event{Kind: EventClock, Ahead: by})
	}
}

// tellStorage tells what is refused because of the disk or the memory now, and which work of the
// storage fails again and again.
func (m *Machine) tellStorage() {
	level := m.space.Level
	if m.stuck {
		level = storage.Stop
	}
	m.tellRefusal(&m.disk, EventDisk, level, "refuses all")
	m.tellRefusal(&m.memory, EventMemory, m.space.Memory.Level, "refuses pushes and claims")
	if m.space.Repeats != m.repeats {
		m.repeats = m.space.Repeats
		m.tellServer(Event{Kind: EventBackground, Reason: m.space.Repeated})
	}
}
