package broker

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-queue/holdfast/index"
)

// A verb changes packets of a queue: all of them, or none, but for those that cannot be read. It
// returns how many it changed. It gets packets by their ids at once; those that a Bulk finds by
// their state and tags it gets one by one.
type verb func(tx *Tx, q *queue, packets []index.Packet) (changed int, err error)

// each does a verb to those packets of a queue with some ids that it is for.
func (tx *Tx) each(name []byte, a access, ids []ID, wants func(p index.Packet) bool, v verb) (changed int, err error) {
	q, err := tx.open(name, a)
	if q == nil || err != nil {
		return 0, err
	}
	var packets []index.Packet
	seen := make(map[ID]bool, len(ids))
	for _, id := range ids {
		if p, ok := tx.m.find(q, id); ok && wants(p) && !seen[id] {
			seen[id] = true
			packets = append(packets, p)
		}
	}
	if len(packets) == 0 {
		return 0, nil
	}
	return v(tx, q, packets)
}

// DeletePackets deletes packets of a queue by their ids, whatever their state, and returns how many
// there were.
func (tx *Tx) DeletePackets(name []byte, ids []ID) (n int, err error) {
	return tx.each(name, changes, ids, func(index.Packet) bool { return true }, drop)
}

// MovePackets moves packets to another queue, with their priority, age and state, and returns how
// many there were. Claimed and damaged ones stay.
func (tx *Tx) MovePackets(name []byte, ids []ID, to []byte) (n int, err error) {
	return tx.each(name, looks, ids, movable, move(to))
}

// SetPriority gives a packet another priority, in any state; ok is false if the queue has none with
// that id, or it expired while it was claimed. A packet without a key cannot have priority 0:
// ErrNoKey. ErrUnknownQueue.
func (tx *Tx) SetPriority(name []byte, id ID, priority uint32) (ok bool, err error) {
	m := tx.m
	here := func(p index.Packet) bool { return !m.expired(p) } // else compact may have dropped its record
	n, err := tx.each(name, known, []ID{id}, here, func(tx *Tx, q *queue, packets []index.Packet) (int, error) {
		p := packets[0]
		if p.Priority == priority {
			return 1, nil
		}
		if _, keyed := m.ix.Key(p.ID, nil); priority == 0 && !keyed {
			return 0, ErrNoKey
		}
		if err := cmp.Or(tx.CanStore(), tx.mayMove(p)); err != nil {
			return 0, err
		}
		record, err := m.record(q, p)
		if err != nil {
			return 0, err
		}
		to := q.packet(p)
		to.Priority = priority
		m.moveTo(q, p, record, q, to, p.Expiry)
		return 1, nil
	})
	return n > 0, err
}

// Reschedule has a packet that is ready or delayed be ready at a moment, in Unix milliseconds; one
// that is not ahead is now. ok is false if the queue has no such packet. ErrUnknownQueue.
func (tx *Tx) Reschedule(name []byte, id ID, at int64) (ok bool, err error) {
	waits := func(p index.Packet) bool { return p.State == index.Ready || p.State == index.Delayed }
	n, err := tx.each(name, known|changes, []ID{id}, waits, func(tx *Tx, q *queue, packets []index.Packet) (int, error) {
		m, p, state, until, kind := tx.m, packets[0], Ready, int64(0), EventReady
		if at > tx.now {
			state, until, kind = Delayed, at, EventDelayed
			if err := tx.CanStore(); err != nil {
				return 0, err
			}
		}
		if state == Ready && p.State == Ready {
			return 1, nil
		}
		m.setDelivery(p, m.ix.Delivery(p.ID), state, until)
		m.tail(q, p, kind)
		m.changed(q)
		return 1, nil
	})
	return n > 0, err
}

// Cancel has packets not be worked on. One that waits is gone. The consumer of a claimed one is
// told (ErrCancelled of Extend), and it is gone when the claim ends, however it does. It returns in
// which state each was, 0 where the queue has none with the id, or it has ended: that stays.
func (tx *Tx) Cancel(name []byte, ids []ID) (were []State, err error) {
	were = make([]State, len(ids))
	q, err := tx.open(name, changes)
	if q == nil || err != nil {
		return were, err
	}
	m := tx.m
	for i, id := range ids {
		p, ok := m.find(q, id)
		switch {
		case !ok || p.State > Claimed:
			continue
		case p.State < Claimed:
			m.cancel(q, p)
		default:
			if d := m.ix.Delivery(p.ID); !d.Cancelled {
				d.Cancelled = true
				m.setDelivery(p, d, Claimed, p.Until)
			}
		}
		were[i] = p.State
	}
	return were, nil
}

// bulkSlice is how many packets a slice of a Bulk looks at; one of a dry run looks at MaxLook.
const bulkSlice = 500

// A Bulk is a verb for many packets of a queue. It is done in slices, so that others have their
// turn in between. Each slice is on disk as a whole; a crash leaves a prefix of them done. It looks
// at no more packets of a state than the queue had when it came to that, so it ends also while
// others push.
type Bulk struct {
	Filter *Filter // which packets it changes; nil: all
	DryRun bool    // it counts what it would change, and changes nothing
	Done   int     // packets changed so far

	stayed int // packets that cannot be changed, as the queue where they died is gone
	queue  []byte
	states []State // to go through; the first one is under way
	after  Place   // in that state
	begun  bool    // with that state
	shape  uint32  // index.Shape at that time
	were   [2]int  // Done and stayed at that time
	left   int     // packets of it to look at
	most   int     // packets to change; 0: all

	wants func(tx *Tx, p index.Packet) bool // nil: all
	stays func(tx *Tx, p index.Packet) bool // see stayed; nil: none
	verb  verb
}

// Queue is the name of the queue that it changes.
func (bk *Bulk) Queue() []byte { return bk.queue }

// Slice makes the next slice, alone (it is an Atomic of its own). more is false when nothing is
// left. ErrStopped when the disk is full, ErrNotInOrder by the filter. Any other error comes from
// the verb and ends the Bulk; it says how many packets were changed before.
func (bk *Bulk) Slice(tx *Tx) (more bool, err error) {
	if err = bk.slice(tx); err != nil && bk.Done > 0 {
		return false, fmt.Errorf("%w; done before: %s", err, Counted(bk.Done, "packet"))
	}
	more = err == nil && len(bk.states) > 0 && (bk.most == 0 || bk.Done < bk.most)
	if err == nil && !more && bk.Done == 0 && bk.stayed > 0 {
		err = fmt.Errorf("none of %d can go back: %w", bk.stayed, ErrNoOrigin)
	}
	return more, err
}

func (bk *Bulk) slice(tx *Tx) error {
	a := changes
	if bk.DryRun {
		a = looks
	}
	q, err := tx.open(bk.queue, a)
	if err == nil {
		err = tx.m.checkFilter(q, bk.Filter)
	}
	if err != nil {
		return err
	}
	if q == nil {
		bk.states = nil
		return nil
	}
	packets := bk.pick(tx, q)
	if bk.DryRun {
		bk.Done += len(packets)
		return nil
	}
	return tx.Atomic(func() error {
		for i, p := range packets {
			if now, ok := tx.m.current(p); !ok || now.State != p.State {
				continue // its moment came: it is gone, or of another state
			}
			switch n, err := bk.verb(tx, q, packets[i:i+1]); {
			case err == nil:
				bk.Done += n
			case !errors.Is(err, ErrUnreadable): // such a one stays
				return err
			}
		}
		return nil
	})
}

// pick returns what the next slice changes.
func (bk *Bulk) pick(tx *Tx, q *queue) (packets []index.Packet) {
	m, looked, look, bytes := tx.m, 0, bulkSlice, 0
	if bk.DryRun {
		look = MaxLook
	}
	if bk.begun && bk.shape != m.ix.Shape(q.ix) {
		bk.beginAnew()
	}
	if !bk.begun {
		bk.begun, bk.shape, bk.were = true, m.ix.Shape(q.ix), [2]int{bk.Done, bk.stayed}
		bk.left = m.ix.Counts(q.ix).Len()
	}
	for p, takes := range m.ix.Each(q.ix, bk.states[0], bk.after, bk.Filter.forQueue(q), bk.Filter.share()) {
		if bk.left == 0 {
			break
		}
		if looked == look {
			return packets
		}
		switch {
		case !takes || bk.wants != nil && !bk.wants(tx, p):
		case bk.stays != nil && bk.stays(tx, p):
			bk.stayed++
		default:
			bytes += weight(p)
			if len(packets) > 0 && (bytes > m.limits.MaxBytes && !bk.DryRun || bk.most != 0 && bk.Done+len(packets) == bk.most) {
				return packets
			}
			packets = append(packets, p)
		}
		bk.after = p.Place()
		bk.left--
		looked++
	}
	bk.states, bk.after, bk.begun = bk.states[1:], Place{}, false
	return packets
}

// beginAnew begins with a state once more, after packets have come to other shares: some of those
// that are left may be before the place where it is. What it has changed is not met again.
func (bk *Bulk) beginAnew() {
	bk.begun, bk.after, bk.stayed = false, Place{}, bk.were[1]
	if bk.DryRun {
		bk.Done = bk.were[0]
	}
}

// statesOf is the states that a Bulk goes through: one, or all if that is 0.
func statesOf(s State) []State {
	if s == 0 {
		return []State{Ready, Delayed, Claimed, Dead, Done, Damaged}
	}
	return []State{s}
}

// Purge deletes the packets of a queue in one state, or in all if that is 0: then none slips by,
// since a packet whose claim or delay ends meanwhile goes on to a later one of these states.
func Purge(name []byte, s State) *Bulk {
	states := statesOf(s)
	if s == 0 {
		states = []State{Claimed, Delayed, Ready, Dead, Done, Damaged}
	}
	return &Bulk{queue: name, states: states, verb: drop}
}

func drop(tx *Tx, q *queue, packets []index.Packet) (int, error) {
	tx.m.dropNow(q, packets, EventDeleted)
	return len(packets), nil
}

// Move moves the packets of a queue in one state, or in all if that is 0, to another queue as
// MovePackets does: at most count if that is not 0.
func Move(name []byte, s State, count int, to []byte) *Bulk {
	wants := func(_ *Tx, p index.Packet) bool { return movable(p) }
	return &Bulk{queue: name, states: statesOf(s), most: count, wants: wants, verb: move(to)}
}

// movable says that a packet may move to another queue.
func movable(p index.Packet) bool { return p.State != Claimed && p.State != Damaged }

// move is the verb that moves packets to a queue, which may be their own.
func move(to []byte) verb {
	return func(tx *Tx, q *queue, packets []index.Packet) (n int, err error) {
		if err := tx.CanStore(); err != nil {
			return 0, err
		}
		m := tx.m
		target, err := m.makeQueue(to)
		if err != nil {
			return 0, err
		}
		if target == q {
			return len(packets), nil
		}
		if err := tx.mayMove(packets...); err != nil {
			return 0, err
		}
		records, err := m.fetchToMove(q, packets)
		if err != nil {
			missing := -1
			packets = slices.DeleteFunc(packets, func(index.Packet) bool { missing++; return records[missing] == nil })
			records = slices.DeleteFunc(records, func(r []byte) bool { return r == nil })
		}
		if err := tx.checkMoveIn(q, target, packets...); err != nil {
			return 0, err
		}
		for i, p := range packets {
			id := q.packet(p)
			id.Queue = target.id
			m.moveTo(q, p, records[i], target, id, p.Expiry)
		}
		return len(packets), nil
	}
}

// Harvest makes packets of a queue ready again that were claimed at least older milliseconds ago:
// by one consumer, or with "" by any.
func Harvest(name []byte, older int64, consumer string) *Bulk {
	return &Bulk{
		queue: name, states: []State{Claimed},
		wants: func(tx *Tx, p index.Packet) bool {
			d := tx.m.ix.Delivery(p.ID)
			return max(0, tx.now-d.LastClaim) >= older && // the clock may have been put back
				(consumer == "" || tx.m.consumers.name(d.Consumer) == consumer)
		},
		verb: func(tx *Tx, q *queue, packets []index.Packet) (int, error) {
			p, d := packets[0], tx.m.ix.Delivery(packets[0].ID)
			if !tx.m.endCancelled(q, p, d) && !tx.m.expireClaim(q, p) {
				tx.m.putBack(q, p, d, 0, []byte("harvested"), EventReturned)
			}
			return 1, nil
		},
	}
}

// Redrive makes dead packets of a queue ready again, at most count if that is not 0, with no
// attempts: in the queue itself; or in to, if that is not nil. Of a dead-letter queue it returns
// those that died elsewhere to where they died. If that queue is gone they stay, and the last Slice
// returns ErrNoOrigin if no packet could be redriven.
func Redrive(name []byte, count int, to []byte) *Bulk {
	return &Bulk{
		queue: name, states: []State{Dead, Delayed, Ready}, most: count, wants: redrivable,
		stays: func(tx *Tx, p index.Packet) bool { return to == nil && tx.strayed(p) },
		verb: func(tx *Tx, q *queue, packets []index.Packet) (int, error) {
			return 1, tx.redrive(q, packets[0], to)
		},
	}
}

// RedrivePacket does what Redrive does to one packet; ok is false if the queue has none with that
// id that died.
func (tx *Tx) RedrivePacket(name []byte, id ID) (ok bool, err error) {
	wants := func(p index.Packet) bool { return movable(p) && p.State != Done && redrivable(tx, p) }
	n, err := tx.each(name, changes, []ID{id}, wants, func(tx *Tx, q *queue, packets []index.Packet) (int, error) {
		if tx.strayed(packets[0]) {
			return 0, ErrNoOrigin
		}
		return 1, tx.redrive(q, packets[0], nil)
	})
	return n > 0, err
}

// redrivable says that a packet has died: here, or where its delivery says.
func redrivable(tx *Tx, p index.Packet) bool {
	return p.State == Dead || tx.m.ix.Delivery(p.ID).Origin != 0
}

// strayed says that the queue where a packet died is gone.
func (tx *Tx) strayed(p index.Packet) bool {
	origin := tx.m.ix.Delivery(p.ID).Origin
	return origin != 0 && tx.m.origin(origin) == nil
}

// redrive makes a dead packet ready again.
func (tx *Tx) redrive(q *queue, p index.Packet, to []byte) (err error) {
	m, d := tx.m, tx.m.ix.Delivery(p.ID)
	target := q
	switch {
	case to != nil:
		target, err = m.makeQueue(to)
	case d.Origin != 0:
		target = m.origin(d.Origin)
	}
	if err == nil && target != q {
		err = cmp.Or(tx.CanStore(), tx.mayMove(p))
	}
	var record []byte
	if err == nil && target != q {
		record, err = m.record(q, p)
	}
	if err == nil && (target != q || p.State == index.Dead) {
		ready := p
		ready.State = index.Ready // as it will be
		err = tx.checkMoveIn(q, target, ready)
	}
	if err != nil {
		return err
	}
	d.Attempts, d.Origin = 0, 0
	if target == q {
		if q.tailed {
			m.tailEvent(q, p, Event{Kind: EventReturned, Reason: "redriven"})
		}
		m.setDelivery(p, d, Ready, 0)
		m.changed(q)
		return nil
	}
	m.moveWithState(q, p, record, d, target)
	return nil
}
