package broker

import (
	"fmt"
	"math/rand/v2"

	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// A claim that ends without success returns its packet to the queue. One that was tried too often
// dies: it stays in its queue as Dead, or moves to the dead-letter queue, where it is ready again
// with no attempts, and keeps its reason and its origin.

// Nack says how a claim ends that failed.
type Nack struct {
	Delay  int64  // in milliseconds, before it is ready again; negative: as the queue's settings say
	At     int64  // the moment at which it is ready again, in Unix milliseconds, if that is later
	Reason []byte // at most MaxReason bytes
	Dead   bool   // it is not to be tried again
	// Uncounted: the claim was no attempt, and not the last one either.
	Uncounted bool
	// Hold lets the share of the packet, or a queue without shares, rest for up to MaxHold
	// milliseconds, if it does not for longer. The claim is uncounted, and Delay 0 unless given.
	Hold int64
}

// Nack returns a packet to its queue, or lets it die if it was tried often enough. It returns the
// state that the packet has then, or Dead if it moved; Cancelled or Expired if it is gone, as that
// happened while it was claimed. ErrStale, ErrUnknownQueue.
func (tx *Tx) Nack(name []byte, r Receipt, n Nack) (State, error) {
	q, p, d, err := tx.useClaim(name, r)
	if err != nil {
		return 0, err
	}
	if err := tx.m.checkCosts(q, r); err != nil {
		return 0, err
	}
	m, dies := tx.m, n.Dead || n.Hold == 0 && !n.Uncounted && tooOften(q, d)
	if dies && !d.Cancelled && len(settingsOf(q).DeadLetter) > 0 {
		if err := tx.mayMove(p); err != nil {
			return 0, err
		}
	}
	if n.Hold > 0 {
		n.Uncounted, n.Delay = true, max(n.Delay, 0)
		if err := tx.hold(name, q, p, n.Hold, m.consumers.name(d.Consumer)); err != nil {
			return 0, err
		}
	}
	m.charge(p, r)
	if m.endCancelled(q, p, d) {
		return Cancelled, nil
	}
	m.count(q, &q.counters.Nacked, &m.totals.Nacked, 1)
	if m.expireClaim(q, p) {
		return Expired, nil
	}
	if dies {
		m.die(q, p, d, n.Reason)
		return Dead, nil
	}
	if n.Uncounted && d.Attempts > 0 {
		d.Attempts--
	}
	delay := max(n.Delay, n.At-tx.now)
	if delay < 0 {
		delay = backoff(settingsOf(q), int(d.Attempts))
	}
	until := int64(0)
	if delay > 0 {
		until = tx.now + delay
	}
	m.putBack(q, p, d, until, n.Reason, EventNacked)
	if delay > 0 {
		return Delayed, nil
	}
	return Ready, nil
}

// hold lets the share of a packet rest, or a queue without shares, as a consumer says.
func (tx *Tx) hold(name []byte, q *queue, p index.Packet, ms int64, by string) error {
	of, ok := tx.m.ix.ShareFor(q.ix, p.ID)
	if s := settingsOf(q); !ok || len(s.ShareBy) == 0 {
		if s.PauseOut && (s.PauseOutUntil == 0 || s.PauseOutUntil > tx.now+ms) {
			return nil
		}
		return tx.pause(name, false, tx.now+ms)
	}
	s := Share{Name: []byte(of.Name)}
	was := q.shares.byName[of.Name]
	if was != nil {
		s = *was
	}
	if s.HeldUntil >= tx.steady+ms {
		return nil
	}
	s.HeldUntil, s.HeldBy = tx.steady+ms, by
	if err := q.mayRest(&s, was); err != nil {
		return err
	}
	tx.m.keepShare(q, &s)
	return nil
}

// tooOften says that a packet that comes back was tried as often as its queue allows.
func tooOften(q *queue, d index.Delivery) bool {
	most := settingsOf(q).MaxAttempts
	return most != 0 && int64(d.Attempts) >= most
}

// backoff returns how long a packet waits that was tried attempts times: twice as long after each.
// A tenth more or less keeps packets apart that failed together.
func backoff(s *Settings, attempts int) int64 {
	wait := s.BackoffMin
	for n := 1; n < attempts && wait < s.BackoffMax; n++ {
		wait *= 2
	}
	wait = min(wait, s.BackoffMax)
	tenth := wait / 10
	return wait - tenth + rand.Int64N(2*tenth+1)
}

// expireClaim ends a packet whose time passed while it was claimed. It returns false for any other.
func (m *Machine) expireClaim(q *queue, p index.Packet) bool {
	if !m.expired(p) {
		return false
	}
	m.ix.Remove(p.ID)
	m.expire(q, p)
	return true
}

// putBack returns a packet to its queue: at once, or at a moment in Unix milliseconds.
func (m *Machine) putBack(q *queue, p index.Packet, d index.Delivery, until int64, reason []byte, kind EventKind) {
	if q.tailed {
		m.tailEvent(q, p, Event{Kind: kind, Attempts: int(d.Attempts), Reason: string(reason)})
	}
	m.putNote(p, &d, content.NoteReason, reason)
	m.putNote(p, &d, content.NoteProgress, nil)
	state := Ready
	if until > 0 {
		state = Delayed
	}
	m.setDelivery(p, d, state, until)
	m.changed(q)
}

// die ends the attempts for a packet.
func (m *Machine) die(q *queue, p index.Packet, d index.Delivery, reason []byte) {
	m.count(q, &q.counters.Dead, &m.totals.Dead, 1)
	to, record := m.deadLetter(q, p)
	m.tellDeath(q, p, d, reason, to)
	m.putNote(p, &d, content.NoteProgress, nil)
	if to != nil {
		text := fmt.Appendf(nil, "dead at attempt %d", d.Attempts)
		if len(reason) > 0 {
			text = fmt.Appendf(text, ": %s", reason)
		}
		m.putNote(p, &d, content.NoteReason, text[:min(len(text), MaxReason)])
		d.Attempts, d.Origin = 0, q.id
		m.moveWithState(q, p, record, d, to)
		return
	}
	m.putNote(p, &d, content.NoteReason, reason)
	m.setDelivery(p, d, Dead, m.tx.now)
	m.changed(q)
}

func (m *Machine) tellDeath(q *queue, p index.Packet, d index.Delivery, reason []byte, to *queue) {
	e := Event{Kind: EventDead, Packet: true, ID: idOf(p.Identity), Priority: p.Priority, Bytes: int(p.Size), Attempts: int(d.Attempts), Reason: string(reason)}
	if to != nil {
		e.To = to.entry.Name()
	}
	m.tell(q, e)
	if q.tailed {
		m.tailEvent(q, p, e)
	}
}

// deadLetter returns the queue that a dead packet of a queue moves to, and its record; nil if it
// stays, also because there can be no such queue, or that does not admit it.
func (m *Machine) deadLetter(q *queue, p index.Packet) (to *queue, record []byte) {
	name := settingsOf(q).DeadLetter
	if len(name) == 0 {
		return nil, nil
	}
	tx, caller, db := &m.tx, m.tx.caller, m.tx.db
	tx.caller, tx.db = nil, q.entry.Database() // the death is nobody's push
	to, err := m.makeQueue(name)
	if err == nil && to != q {
		record, err = m.record(q, p)
	}
	if err == nil && to != q {
		err = tx.checkMoveIn(q, to, p)
	}
	tx.caller, tx.db = caller, db
	if err == nil && to != q {
		return to, record
	}
	if !q.deadLogged {
		q.deadLogged = true
		m.log.Warn("packets that died stay in their queue: the dead-letter queue cannot be used",
			"queue", q.entry.Name(), "dead_letter", string(name), "error", err)
	}
	return nil, nil
}

// moveWithState moves a packet to the same place in another queue, where it is ready, with a
// delivery state.
func (m *Machine) moveWithState(q *queue, p index.Packet, record []byte, d index.Delivery, to *queue) {
	id := q.packet(p)
	id.Queue = to.id
	moved := m.moveTo(q, p, record, to, id, p.Expiry)
	m.setDelivery(moved, d, Ready, 0)
}

// leaseEnded returns a packet whose lease has ended. It is ready in the index already.
func (m *Machine) leaseEnded(q *queue, p index.Packet) {
	d := m.ix.Delivery(p.ID)
	if m.endCancelled(q, p, d) {
		return
	}
	reason := []byte("lease ended") // to the colon it is the error's class
	if w := m.consumers.name(d.Consumer); w != "" {
		reason = fmt.Appendf(nil, "lease ended: %s", w)
	}
	if tooOften(q, d) {
		m.die(q, p, d, reason)
		return
	}
	m.putBack(q, p, d, 0, reason, EventReturned)
}
