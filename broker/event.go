package broker

import "github.com/holdfast-queue/holdfast/index"

// Events tell operators, and those who tail a queue, what has happened. They are collected with the
// open batch, and told when that is on disk.

// EventKind is what has happened.
type EventKind string

// What operators are told.
const (
	EventDead       EventKind = "dead"       // a packet died; who tails its queue is told, too
	EventBound      EventKind = "bound"      // a push has found no room in a queue, for the first time since there was some
	EventOld        EventKind = "old"        // the oldest ready packet is older than alert-age
	EventYoung      EventKind = "young"      // it no longer is
	EventDisk       EventKind = "disk"       // the disk refuses pushes, or all, or no longer does
	EventMemory     EventKind = "memory"     // the memory has pushes refused, or no longer does
	EventBackground EventKind = "background" // work of the storage fails again and again
	EventClock      EventKind = "clock"      // the wall clock has jumped by more than a minute
	EventShape      EventKind = "shape"      // queues keep the shape that they had, though their defaults have changed
)

// What happens in a queue that somebody tails, besides EventDead.
const (
	EventPushed   EventKind = "pushed"
	EventReady    EventKind = "ready"   // its delay is over, or Reschedule ended it
	EventDelayed  EventKind = "delayed" // by Reschedule, to another moment
	EventPopped   EventKind = "popped"
	EventClaimed  EventKind = "claimed"
	EventAcked    EventKind = "acked"
	EventNacked   EventKind = "nacked"
	EventReturned EventKind = "returned" // its lease ended, or it was harvested or redriven
	EventExpired  EventKind = "expired"
	EventMoved    EventKind = "moved"    // to another queue, or priority; without an id: all, to another name
	EventArrived  EventKind = "arrived"  // from another queue; without an id: all, from another name
	EventReplaced EventKind = "replaced" // by another value
	EventDropped  EventKind = "dropped"  // for a push, as the queue was full
	EventDeleted  EventKind = "deleted"
	EventDamaged  EventKind = "damaged" // it cannot be read, and is set aside
	EventPurged   EventKind = "purged"  // the queue went, with all that it held

	EventCancelled EventKind = "cancelled" // and gone: at once, or when its claim ended
)

// Fine is the State of an EventDisk or EventMemory when nothing is refused any more.
const Fine = "fine"

// EventMissed says that events of a queue were left out: there were too many at once.
const EventMissed EventKind = "missed"

// Event is something that has happened. What is 0 or empty does not belong to its kind, but for the
// priority and the bytes of a packet.
type Event struct {
	Kind EventKind
	// Tail says that it is for those who tail the queue; else it is for operators.
	Tail     bool
	At       int64 // Unix milliseconds
	Database uint8
	Queue    string // of those that are OfServer none

	Packet   bool // it is about one packet, which the next three tell of
	ID       ID
	Priority uint32
	Bytes    int // of key and payload

	Attempts int
	Consumer string // who claimed it
	To       string // the queue that it moved to
	Age      int64  // of the oldest ready packet, in milliseconds
	Ahead    int64  // how far the wall clock is ahead of where it was, in milliseconds; negative: behind
	Reason   string // why it died or came back, or why the background fails
	State    string // of the disk, or of the memory
	Messages int    // that were left out
	Queues   int    // that keep their shape
}

// OfServer says that it is about the server, and no queue.
func (e *Event) OfServer() bool {
	return e.Kind == EventDisk || e.Kind == EventMemory || e.Kind == EventBackground || e.Kind == EventClock || e.Kind == EventShape
}

// events holds the events of one batch.
type events struct {
	all  []Event
	used [2]int // of maxTold by those for operators, and of maxTailed by those for who tails
	left map[source]int
}

// source is a queue of which events were left out.
type source struct {
	watched
	tail bool
}

const (
	// The most events of one batch, for operators and for who tails. A million packets may die.
	maxTold   = 256
	maxTailed = 4096
	// maxMessages is how many messages to listeners either are at most, but for the last event: some
	// 30 ms. Where many listen there are fewer events.
	maxMessages = 1 << 15
	longMessage = 1 << 10 // bytes of text for which a message counts as one more

	keepEvents = 1024 // for which memory is kept
)

// tellAll has the events of a batch told, which is on disk, and forgets them.
func (m *Machine) tellAll(s *events) {
	m.told = append(m.told, s.all...)
	for of, n := range s.left {
		m.missedEvents[of] += n
	}
	*s = events{all: emptied(s.all, keepEvents)}
	m.tellMissed()
}

// tellMissed tells how many events of queues were left out: of some queues in each turn, as those
// may be many, too.
func (m *Machine) tellMissed() {
	messages := 0
	for of, n := range m.missedEvents {
		if messages >= maxMessages {
			return
		}
		e := Event{Kind: EventMissed, Tail: of.tail, At: m.tx.now, Database: of.db, Queue: of.name, Messages: n}
		messages += 1 + m.messages(&e)
		m.told = append(m.told, e)
		delete(m.missedEvents, of)
	}
}

// messages returns how many messages the listeners get of an event. All databases share the channel
// of those who tail.
func (m *Machine) messages(e *Event) (n int) {
	if n = m.operators; e.Tail {
		n = 0
		for db := range m.queues.names {
			n += m.tails[watched{uint8(db), e.Queue}]
		}
	}
	return n * (1 + (len(e.Queue)+len(e.To)+len(e.Reason))/longMessage)
}

// Events returns what may be told now: it is on disk. The next Turn forgets it.
func (m *Machine) Events() []Event { return m.told }

// tell notes an event of a queue.
func (m *Machine) tell(q *queue, e Event) {
	e.At, e.Database, e.Queue = m.tx.now, q.entry.Database(), q.entry.Name()
	s := &m.open.events
	of, most := &s.used[0], maxTold
	if e.Tail {
		of, most = &s.used[1], maxTailed
	}
	if *of < most {
		*of += 1 + m.messages(&e)*most/maxMessages
		s.all = append(s.all, e)
		return
	}
	if s.left == nil {
		s.left = make(map[source]int)
	}
	s.left[source{watched{e.Database, e.Queue}, e.Tail}]++
}

// tellServer notes an event of the server, which waits for no batch.
func (m *Machine) tellServer(e Event) {
	e.At = m.tx.now
	m.told = append(m.told, e)
}

// tail tells those who tail a queue, if there are any, what happens to a packet.
func (m *Machine) tail(q *queue, p index.Packet, kind EventKind) {
	if q.tailed {
		m.tailEvent(q, p, Event{Kind: kind})
	}
}

// tailEvent is tail with more to tell. It is called where q.tailed says that somebody listens.
func (m *Machine) tailEvent(q *queue, p index.Packet, e Event) {
	e.Tail, e.Packet = true, true
	e.ID, e.Priority, e.Bytes = idOf(p.Identity), p.Priority, int(p.Size)
	m.tell(q, e)
}

// Tail has what happens in a queue told, or ends that: each call with on has to be followed by one
// without. The queue need not exist.
func (tx *Tx) Tail(db uint8, name string, on bool) {
	m, of := tx.m, watched{db, name}
	if on {
		m.tails[of]++
	} else if m.tails[of]--; m.tails[of] == 0 {
		delete(m.tails, of)
	}
	if q := m.tailedQueue(of); q != nil {
		q.tailed = m.tails[of] > 0
	}
}

// Operator says that one more is told what operators are, or one less.
func (tx *Tx) Operator(on bool) {
	if on {
		tx.m.operators++
	} else {
		tx.m.operators--
	}
}

// tailedQueue returns the queue of a name that somebody tails, nil if there is none.
func (m *Machine) tailedQueue(of watched) *queue {
	if e := m.names.Find(of.db, []byte(of.name)); e != nil && e.Queue() != 0 {
		return m.queues.of(e.Queue())
	}
	return nil
}
