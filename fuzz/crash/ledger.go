package crash

import (
	"math"
	"sync"
	"time"
)

// state is what the clients know of a packet that was sent.
type state uint8

const (
	maybe  state = iota // sent; no later reply on its connection yet
	acked               // a later reply came: it was on disk
	popped              // some client holds it
	gone                // it was not there when all were taken out, and must never come
)

// entry is one packet in the ledger. Times are nanoseconds of the run; 0 is not known.
type entry struct {
	key   keyOf
	sent  int64 // it was pushed after this
	by    int64 // and before this, if it was pushed at all
	ttl   int32 // milliseconds, 0 for ever
	queue int16
	prio  uint8
	state state
}

// pushedBy is a time by which the push had surely happened.
func (e *entry) pushedBy() int64 {
	if e.by == 0 {
		return math.MaxInt64
	}
	return e.by
}

// mayExpire says that the packet's time to live may have passed at now.
func (e *entry) mayExpire(now int64) bool {
	return e.ttl != 0 && now+int64(clockSlack) >= e.sent+int64(e.ttl)*int64(time.Millisecond)
}

// mustExpire says that it has surely passed.
func (e *entry) mustExpire(now int64) bool {
	return e.ttl != 0 && e.by != 0 && now > e.by+int64(e.ttl)*int64(time.Millisecond)+int64(clockSlack)
}

// clockSlack covers the difference between the run's monotonic clock and the server's time of day,
// which has whole milliseconds.
const clockSlack = 20 * time.Millisecond

// ledger knows every packet of a run that may still be queued. All older packets are gone. It has
// one part for each client that pushes, so that they do not wait for one another.
type ledger struct {
	start time.Time
	parts []part
}

// part holds the packets of one client: entries[i] has serial first+i.
type part struct {
	mu      sync.Mutex // guards what follows
	first   uint64     // all packets with lower serials are gone
	entries []entry
}

func newLedger(parts int) *ledger {
	l := &ledger{start: time.Now(), parts: make([]part, parts)}
	for i := range l.parts {
		l.parts[i].first = 1
	}
	return l
}

// now is the time of the run.
func (l *ledger) now() int64 { return int64(time.Since(l.start)) + 1 }

// add notes that a packet is about to be sent, and names it.
func (l *ledger) add(by int, e entry, unique bool) (ID, keyOf) {
	p := &l.parts[by]
	p.mu.Lock()
	defer p.mu.Unlock()
	id := makeID(by, p.first+uint64(len(p.entries)))
	if unique {
		e.key = ownKey(id)
	}
	p.entries = append(p.entries, e)
	return id, e.key
}

// ack notes that a push was acknowledged, at now at the latest.
func (l *ledger) ack(id ID, now int64) {
	p := &l.parts[id.part()]
	p.mu.Lock()
	defer p.mu.Unlock()
	e := &p.entries[id.serial()-p.first]
	e.by = now
	if e.state == maybe {
		e.state = acked
	}
}

// settle notes that the server has ended: what was not acknowledged was pushed before now or never.
func (l *ledger) settle(now int64) {
	l.each(func(_ ID, e *entry) {
		if e.by == 0 {
			e.by = now
		}
	})
}

// take notes that a client was handed the packet, and returns what is known of it. broken is empty,
// or says which promise that breaks.
func (l *ledger) take(id ID) (e entry, broken Kind) {
	if id.part() >= len(l.parts) {
		return entry{}, Corrupt
	}
	p := &l.parts[id.part()]
	p.mu.Lock()
	defer p.mu.Unlock()
	switch serial := id.serial(); {
	case serial == 0 || serial >= p.first+uint64(len(p.entries)):
		return entry{}, Corrupt
	case serial < p.first:
		return entry{}, Returned
	}
	at := &p.entries[id.serial()-p.first]
	if at.state >= popped {
		return *at, Returned
	}
	at.state = popped
	return *at, ""
}

// each calls fn with every packet that may still be queued. fn may change it.
func (l *ledger) each(fn func(ID, *entry)) {
	for n := range l.parts {
		p := &l.parts[n]
		p.mu.Lock()
		for i := range p.entries {
			fn(makeID(n, p.first+uint64(i)), &p.entries[i])
		}
		p.mu.Unlock()
	}
}

// forget drops all packets: every queue was emptied, so none of them may be handed out again.
func (l *ledger) forget() {
	for n := range l.parts {
		p := &l.parts[n]
		p.mu.Lock()
		p.first += uint64(len(p.entries))
		p.entries = p.entries[:0]
		p.mu.Unlock()
	}
}
