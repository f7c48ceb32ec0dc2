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

// packet is what the clients know of a packet. Times are nanoseconds of the run; 0 is not known.
type packet struct {
	id    ID
	key   keyOf
	sent  int64 // it was pushed after this
	by    int64 // and before this, if it was pushed at all
	ttl   int32 // milliseconds, 0 for ever
	queue int16
	prio  uint8
	state state
}

// pushedBy is a time by which the push had surely happened.
func (p *packet) pushedBy() int64 {
	if p.by == 0 {
		return math.MaxInt64
	}
	return p.by
}

// mayExpire says that the packet's time to live may have passed at now.
func (p *packet) mayExpire(now int64) bool {
	return p.ttl != 0 && now+int64(clockSlack) >= p.sent+int64(p.ttl)*int64(time.Millisecond)
}

// mustExpire says that it has surely passed.
func (p *packet) mustExpire(now int64) bool {
	return p.ttl != 0 && p.by != 0 && now > p.by+int64(p.ttl)*int64(time.Millisecond)+int64(clockSlack)
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

// part holds the packets of one client: packets[i] has serial first+i.
type part struct {
	mu      sync.Mutex // guards what follows
	first   uint64     // all packets with lower serials are gone
	packets []packet
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

// add notes that a packet is about to be sent, and gives it its identity.
func (l *ledger) add(by int, sent packet, unique bool) packet {
	p := &l.parts[by]
	p.mu.Lock()
	defer p.mu.Unlock()
	sent.id = makeID(by, p.first+uint64(len(p.packets)))
	if unique {
		sent.key = ownKey(sent.id)
	}
	p.packets = append(p.packets, sent)
	return sent
}

// ack notes that a push was acknowledged, at now at the latest.
func (l *ledger) ack(id ID, now int64) {
	p := &l.parts[id.part()]
	p.mu.Lock()
	defer p.mu.Unlock()
	e := &p.packets[id.serial()-p.first]
	e.by = now
	if e.state == maybe {
		e.state = acked
	}
}

// settle notes that the server has ended: what was not acknowledged was pushed before now or never.
func (l *ledger) settle(now int64) {
	l.each(func(p *packet) {
		if p.by == 0 {
			p.by = now
		}
	})
}

// take notes that a client was handed the packet, and returns what is known of it. broken is empty,
// or says which promise that breaks.
func (l *ledger) take(id ID) (known packet, broken Kind) {
	if id.part() >= len(l.parts) {
		return packet{}, Corrupt
	}
	p := &l.parts[id.part()]
	p.mu.Lock()
	defer p.mu.Unlock()
	switch serial := id.serial(); {
	case serial == 0 || serial >= p.first+uint64(len(p.packets)):
		return packet{}, Corrupt
	case serial < p.first:
		return packet{}, Returned
	}
	at := &p.packets[id.serial()-p.first]
	if at.state >= popped {
		return *at, Returned
	}
	at.state = popped
	return *at, ""
}

// each calls fn with every packet that may still be queued. fn may change it.
func (l *ledger) each(fn func(*packet)) {
	for n := range l.parts {
		part := &l.parts[n]
		part.mu.Lock()
		for i := range part.packets {
			fn(&part.packets[i])
		}
		part.mu.Unlock()
	}
}

// forget drops all packets: every queue was emptied, so none of them may be handed out again.
func (l *ledger) forget() {
	for n := range l.parts {
		p := &l.parts[n]
		p.mu.Lock()
		p.first += uint64(len(p.packets))
		p.packets = p.packets[:0]
		p.mu.Unlock()
	}
}
