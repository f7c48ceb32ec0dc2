package broker

import (
	"cmp"
	"fmt"

	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// A claim lends a packet to a consumer. The packet stays in its queue and in the store; its
// delivery state says who has it, until when, and for which token. Every claim gets a new token, so
// whoever comes late with an old one changes nothing.

// ClaimRequest says which packets of a queue a consumer wants to claim.
type ClaimRequest struct {
	Selection        // Count is at most MaxCount; a group is cut there
	Lease     int64  // in milliseconds; 0: as the packet or else its queue says
	Consumer  []byte // its name, at most MaxConsumer bytes; empty: none
}

// Claim lends packets to a consumer, with details: they are nobody else's until their leases end.
// Otherwise it is as Pop.
func (tx *Tx) Claim(name []byte, r ClaimRequest) (Found, error) {
	r.WithDetails, r.claims = true, true
	if q := tx.m.queueNamed(name); r.Group && q != nil && limitsClaims(q) {
		return Found{}, ErrGroupLimited
	}
	t, err := tx.take(name, r.Selection, MaxCount)
	q := t.q
	if q == nil || err != nil && err != ErrNothing && err != ErrFilling {
		return Found{}, err
	}
	m, w := tx.m, (*consumer)(nil)
	if len(r.Consumer) > 0 { // also if it found nothing: it is there
		w = m.enter(q, r.Consumer)
	}
	if len(t.packets) == 0 {
		if w != nil {
			m.consumers.release(w)
		}
		return Found{}, err
	}
	tx.useRole(q, consumerRole)
	settings := settingsOf(q)
	m.finding(t.records)
	m.found.Details = m.found.Details[:0]
	for i, p := range t.packets {
		lease := cmp.Or(r.Lease, m.found.Packets[i].Lease, settings.Lease)
		d := m.ix.Delivery(p.ID)
		m.setConsumer(&d, w)
		d.FirstClaim = cmp.Or(d.FirstClaim, tx.now)
		d.LastClaim, d.Token = tx.now, m.nextSeq(Newest)
		if d.Attempts < ^uint16(0) {
			d.Attempts++
		}
		m.putNote(p, &d, content.NoteProgress, nil)
		m.ix.Take(p.ID)
		m.beginWork(q, p)
		m.setDelivery(p, d, Claimed, tx.steady+lease)
		p, _ = m.ix.Get(p.ID)
		m.detail(q, p)
		if q.tailed {
			m.tailEvent(q, p, Event{Kind: EventClaimed, Attempts: int(d.Attempts), Consumer: string(r.Consumer)})
		}
	}
	m.open.must, m.identify = true, true
	q.taken = tx.now
	m.changed(q)
	return m.found, nil
}

func limitsClaims(q *queue) bool {
	s := settingsOf(q)
	return s.MaxClaimed > 0 || len(s.ShareBy) > 0 && (s.ShareMaxClaimed > 0 || q.shares.limits > 0)
}

// setConsumer makes a consumer, which may be none, the last that claimed a packet.
func (m *Machine) setConsumer(d *index.Delivery, w *consumer) {
	if d.Consumer != 0 {
		old := m.consumers.all[d.Consumer-1]
		if old == w {
			return
		}
		old.packets--
		d.Consumer = 0
		m.consumers.release(old)
	}
	if w != nil {
		w.packets++
		d.Consumer = w.number
	}
}

// setDelivery gives a packet a delivery state, in the index and in the store. until is the lease
// end on the steady clock, or the not-before or the death on the wall clock; 0 is none.
func (m *Machine) setDelivery(p index.Packet, d index.Delivery, s State, until int64) {
	stored := content.Stored(d.Stored)
	d.Stored |= uint8(content.StoredDelivery)
	m.ix.SetDelivery(p.ID, d)
	m.ix.SetState(p.ID, s, until)
	if s == Claimed && until != 0 {
		until = m.wall(until)
	}
	m.open.ops.PutDelivery(&content.Delivery{
		Identity: p.Identity, State: content.State(s), Until: until, Attempts: uint32(d.Attempts), Token: d.Token,
		FirstClaim: d.FirstClaim, LastClaim: d.LastClaim, Consumer: m.consumers.name(d.Consumer),
		Origin: d.Origin, Expiry: p.Expiry, Cancelled: d.Cancelled, Rest: m.rests.States[p.Identity],
	}, stored)
}

// putNote writes a text of a packet's delivery state, or deletes it if it is empty.
func (m *Machine) putNote(p index.Packet, d *index.Delivery, kind content.NoteKind, text []byte) {
	bit := content.StoredReason
	if kind == content.NoteProgress {
		bit = content.StoredProgress
	}
	if stored := content.Stored(d.Stored); len(text) > 0 || stored&bit != 0 {
		m.open.ops.PutNote(content.NoteID{Identity: p.Identity, Kind: kind}, text, stored)
	}
	if d.Stored &^= uint8(bit); len(text) > 0 {
		d.Stored |= uint8(bit)
	}
}

// Receipt names one claim.
type Receipt struct {
	ID    ID
	Token int64
	Cost  int64 // of Ack and Nack: the rates count the claim as so many takes, up to MaxCost; 0 is 1
}

// claimed returns the packet of a claim; ok is false if the claim has ended or never was.
func (m *Machine) claimed(q *queue, r Receipt) (p index.Packet, d index.Delivery, ok bool) {
	if p, ok = m.lent(q, r.ID); !ok {
		return p, d, false
	}
	d = m.ix.Delivery(p.ID)
	if d.Token-middle != uint64(r.Token) {
		return p, d, false
	}
	m.seen(d)
	return p, d, true
}

// useClaim returns the queue and the packet of a claim.
func (tx *Tx) useClaim(name []byte, r Receipt) (q *queue, p index.Packet, d index.Delivery, err error) {
	if q, err = tx.open(name, known|changes); err != nil {
		return nil, p, d, err
	}
	p, d, ok := tx.m.claimed(q, r)
	if !ok {
		err = ErrStale
	}
	return q, p, d, err
}

// Ack ends claims: their packets are done. It returns how many of the receipts were good. If none
// was, it returns ErrStale, and ErrUnknownQueue if there is no such queue. A packet that was
// cancelled goes as such, and its receipt was good.
func (tx *Tx) Ack(name []byte, receipts []Receipt) (good int, err error) {
	m := tx.m
	q, err := tx.open(name, known|changes)
	if err != nil {
		return 0, err
	}
	if err := m.checkCosts(q, receipts...); err != nil {
		return 0, err
	}
	if settingsOf(q).Retain > 0 {
		n := 0
		for _, r := range receipts {
			if p, _, ok := m.claimed(q, r); ok {
				n += written(p)
			}
		}
		if err := tx.change(n); err != nil {
			return 0, err
		}
	}
	acked := 0
	for _, r := range receipts {
		p, d, ok := m.claimed(q, r)
		if !ok {
			continue
		}
		m.charge(p, r)
		if good++; !m.endCancelled(q, p, d) {
			m.finish(q, p, d)
			acked++
		}
	}
	if good == 0 {
		return 0, ErrStale
	}
	m.count(q, &q.counters.Acked, &m.totals.Acked, acked)
	m.changed(q)
	return good, nil
}

// checkCosts returns ErrTooDear if rates would wait too long for what claims cost.
func (m *Machine) checkCosts(q *queue, receipts ...Receipt) error {
	wait := int64(0)
	for _, r := range receipts {
		if r.Cost > 1 {
			if p, _, ok := m.claimed(q, r); ok {
				wait += (r.Cost - 1) * (m.ix.GapOf(p.ID) / 1_000_000)
			}
		}
		if wait > maxCostTime {
			return fmt.Errorf("%w: %d days, at most %d", ErrTooDear, wait/dayMillis, maxCostTime/dayMillis)
		}
	}
	return nil
}

// charge has the rates count what a claim cost, which is known when it ends.
func (m *Machine) charge(p index.Packet, r Receipt) {
	if r.Cost > 1 {
		m.ix.Charge(p.ID, r.Cost-1)
	}
}

// endCancelled ends a packet that was cancelled while it was claimed. It returns false for any
// other.
func (m *Machine) endCancelled(q *queue, p index.Packet, d index.Delivery) bool {
	if d.Cancelled {
		m.cancel(q, p)
	}
	return d.Cancelled
}

// cancel ends a packet that was cancelled.
func (m *Machine) cancel(q *queue, p index.Packet) {
	m.count(q, &q.counters.Cancelled, &m.totals.Cancelled, 1)
	m.dropNow(q, []index.Packet{p}, EventCancelled)
}

// finish ends a packet that was acknowledged. A queue that retains such keeps it for a while.
func (m *Machine) finish(q *queue, p index.Packet, d index.Delivery) {
	m.tail(q, p, EventAcked)
	if retain := settingsOf(q).Retain; retain > 0 {
		record, err := m.record(q, p)
		if err == nil {
			moved := m.moveTo(q, p, record, q, q.packet(p), m.tx.now+retain)
			m.setDelivery(moved, d, Done, 0)
			return
		}
		if !m.expired(p) { // else compact may have dropped its record
			m.log.Error("packet that was acknowledged is not retained", "queue", q.entry.Name(), "id", idOf(p.Identity), "error", err)
		}
	}
	m.ix.Remove(p.ID)
	m.deletePacket(q, p)
}

// Extend lets the lease of a claim end in lease milliseconds, and returns that moment. ErrStale,
// ErrCancelled, ErrUnknownQueue.
func (tx *Tx) Extend(name []byte, r Receipt, lease int64) (end int64, err error) {
	_, p, d, err := tx.useClaim(name, r)
	if err == nil && d.Cancelled {
		err = ErrCancelled
	}
	if err != nil {
		return 0, err
	}
	tx.m.setDelivery(p, d, Claimed, tx.steady+lease)
	return tx.now + lease, nil
}

// Progress notes how far a consumer has come, in percent, with a text of at most MaxReason bytes.
// ErrStale, ErrUnknownQueue.
func (tx *Tx) Progress(name []byte, r Receipt, percent int, text []byte) error {
	_, p, d, err := tx.useClaim(name, r)
	if err != nil {
		return err
	}
	m := tx.m
	m.patched = append(append(m.patched[:0], byte(percent)), text...)
	m.putNote(p, &d, content.NoteProgress, m.patched)
	m.ix.SetDelivery(p.ID, d)
	return nil
}
