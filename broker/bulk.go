package broker

import (
	"errors"
	"fmt"

	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/storage"
)

// bulkSlice is how many packets a slice of a Bulk looks at; one of a dry run looks at MaxLook.
const bulkSlice = 500

// A Bulk is a change to many packets of a queue. It is made in slices, so that others have their
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
	left   int     // packets of it to look at
	most   int     // packets to change; 0: all

	wants  func(tx *Tx, p index.Packet) bool // nil: all
	stays  func(tx *Tx, p index.Packet) bool // see stayed; nil: none
	change func(tx *Tx, q *queue, p index.Packet) error
}

// Slice makes the next slice, alone (it is an Atomic of its own). more is false when nothing is
// left. ErrStopped when the disk is full, ErrNotInOrder by the filter. Any other error is that of a
// change; it says how many were made before.
func (bk *Bulk) Slice(tx *Tx) (more bool, err error) {
	more, err = bk.slice(tx)
	if err != nil && bk.Done > 0 {
		err = fmt.Errorf("%w; done before: %s", err, counted(bk.Done, "packet"))
	}
	return more, err
}

func (bk *Bulk) slice(tx *Tx) (more bool, err error) {
	q, err := tx.look(bk.queue)
	if q == nil || err != nil {
		return false, err
	}
	m := tx.m
	if err := m.checkFilter(q, bk.Filter); err != nil {
		return false, err
	}
	if !bk.DryRun && m.space.Level >= storage.Stop {
		return false, ErrStopped
	}
	if !bk.begun {
		bk.begun = true
		bk.left = m.ix.Counts(q.ix).Len()
	}
	next := *bk
	packets := next.pick(tx, q)
	if bk.DryRun || len(packets) == 0 {
		next.Done += len(packets)
		*bk = next
		return bk.more()
	}
	err = tx.Atomic(func() error {
		defer m.changed(q)
		for _, p := range packets {
			err := next.change(tx, q, p)
			if errors.Is(err, ErrUnreadable) { // it stays
				continue
			}
			if err != nil {
				return err
			}
			next.Done++
		}
		return nil
	})
	if err != nil {
		bk.Done = next.Done
		return false, err
	}
	*bk = next
	return bk.more()
}

// more says whether there is another slice. It returns an error if nothing could be changed.
func (bk *Bulk) more() (bool, error) {
	switch {
	case len(bk.states) > 0 && (bk.most == 0 || bk.Done < bk.most):
		return true, nil
	case bk.Done == 0 && bk.stayed > 0:
		return false, fmt.Errorf("none of %d can go back: %w", bk.stayed, ErrNoOrigin)
	}
	return false, nil
}

// pick returns what the next slice changes.
func (bk *Bulk) pick(tx *Tx, q *queue) (packets []index.Packet) {
	m, looked, look, bytes := tx.m, 0, bulkSlice, 0
	if bk.DryRun {
		look = MaxLook
	}
	for p, takes := range m.ix.Each(q.ix, bk.states[0], bk.after, bk.Filter.in(q)) {
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

// statesOf is the states that a Bulk goes through: one, or all if that is 0.
func statesOf(s State) []State {
	if s == 0 {
		return []State{Ready, Delayed, Claimed, Dead, Done, Damaged}
	}
	return []State{s}
}

// Purge deletes the packets of a queue in one state, or in all if that is 0.
func Purge(name []byte, s State) *Bulk {
	return &Bulk{
		queue: name, states: statesOf(s),
		change: func(tx *Tx, q *queue, p index.Packet) error {
			tx.m.ix.Remove(p.ID)
			tx.m.deletePacket(q, p)
			return nil
		},
	}
}

// Harvest makes claims of a queue ready again that are at least so many milliseconds old.
func Harvest(name []byte, older int64) *Bulk {
	reason := []byte("harvested")
	return &Bulk{
		queue: name, states: []State{Claimed},
		wants: func(tx *Tx, p index.Packet) bool {
			return max(0, tx.now-tx.m.ix.Delivery(p.ID).LastClaim) >= older // the clock may have been put back
		},
		change: func(tx *Tx, q *queue, p index.Packet) error {
			if !tx.m.expireClaim(q, p) {
				tx.m.putBack(q, p, tx.m.ix.Delivery(p.ID), 0, reason)
			}
			return nil
		},
	}
}

// Redrive makes dead packets of a queue ready again, at most count if that is not 0, with no
// attempts: in the queue itself; or in to, if that is not nil. Of a dead-letter queue it returns
// those that died elsewhere to where they died. If that queue is gone they stay, and the last Slice
// returns ErrNoOrigin if no packet could be redriven.
func Redrive(name []byte, count int, to []byte) *Bulk {
	return &Bulk{
		queue: name, states: []State{Dead, Delayed, Ready}, most: count,
		wants: func(tx *Tx, p index.Packet) bool {
			return p.State == Dead || tx.m.ix.Delivery(p.ID).Origin != 0
		},
		stays: func(tx *Tx, p index.Packet) bool {
			origin := tx.m.ix.Delivery(p.ID).Origin
			return to == nil && origin != 0 && tx.m.queues.withSettings[origin] == nil
		},
		change: func(tx *Tx, q *queue, p index.Packet) error { return tx.redrive(q, p, to) },
	}
}

// redrive makes a dead packet ready again.
func (tx *Tx) redrive(q *queue, p index.Packet, to []byte) (err error) {
	m, d := tx.m, tx.m.ix.Delivery(p.ID)
	target := q
	switch {
	case to != nil:
		target, err = m.makeQueue(to)
	case d.Origin != 0:
		target = m.queues.withSettings[d.Origin]
	}
	if err == nil && target != q {
		err = tx.CanStore()
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
		m.setDelivery(p, d, Ready, 0)
		return nil
	}
	m.moveWithState(q, p, record, d, target)
	return nil
}

// Move moves the packets of a queue in one state, or in all if that is 0, to another queue as
// MovePackets does: at most count if that is not 0.
func Move(name []byte, s State, count int, to []byte) *Bulk {
	return &Bulk{
		queue: name, states: statesOf(s), most: count,
		wants: func(_ *Tx, p index.Packet) bool { return movable(p) },
		change: func(tx *Tx, q *queue, p index.Packet) error {
			n, err := tx.moveAll(q, []index.Packet{p}, to)
			if err == nil && n == 0 {
				err = ErrUnreadable
			}
			return err
		},
	}
}
