package broker

import (
	"cmp"

	"github.com/holdfast-queue/holdfast/index"
)

// A queue has a gate at each end. Pushes pass the one, and takes the other: a queue that is paused
// keeps what it has, and one that is closed gets nothing more. Reads see everything.

// checkMoveIn says whether a queue takes packets that move there from another queue, or the same.
// Dead ones take no place, but pass the gate. Nobody gets a role by it. It returns the errors of
// checkMove, too.
func (tx *Tx) checkMoveIn(from, to *queue, packets ...index.Packet) error {
	if err := cmp.Or(tx.m.checkMove(from, to, packets...), tx.checkOpen(to, len(packets)), tx.m.checkBoundOfMoves(to, packets...)); err != nil {
		return err
	}
	return tx.makeRoom(to, loadOf(packets))
}

// access says what a call does with the packets of its queue.
type access uint8

const (
	changes access = 1 << iota // refused with ErrStopped if the disk is full
	takes                      // finds no queue that gives nothing now; ErrInUse if another client is its only consumer
	known                      // ErrUnknownQueue if nothing is called so
	looks   access = 0         // none of these
)

// open begins a call that is about a queue which need not exist: it returns nil if nothing is
// called so. Whoever takes something has the consumer's role from then on.
func (tx *Tx) open(name []byte, a access) (q *queue, err error) {
	if err = tx.begin(); err == nil && a&changes != 0 {
		err = tx.canTake()
	}
	if err == nil {
		q, err = tx.m.findQueue(name)
	}
	switch {
	case err != nil:
		return nil, err
	case a&known != 0 && (q == nil || !tx.m.exists(q)):
		return nil, ErrUnknownQueue
	case a&takes != 0 && q != nil:
		if err := tx.mayUse(q, consumerRole); err != nil || q.isPausedOut() {
			return nil, err
		}
	}
	return q, nil
}

// openToPush begins a call that brings packets from a client to a queue, and makes the queue if it
// is not known. Where it refuses, no packet of the queue was dropped and nobody got a role.
func (tx *Tx) openToPush(name []byte, l load, tags []PacketTag) (q *queue, err error) {
	if err := cmp.Or(tx.CanStore(), tx.begin()); err != nil {
		return nil, err
	}
	if q, err = tx.m.makeQueue(name); err != nil {
		return nil, err
	}
	if err := cmp.Or(tx.m.checkTags(q, tags), tx.m.checkShares(q, &l, tags), tx.checkOpen(q, l.packets), tx.m.checkBoundOfPush(q, &l, tags)); err != nil {
		return nil, err
	}

	// Dropping changes the queue, so whatever may refuse comes before it.
	if !tx.m.ix.HasRoom(l.packets) {
		return nil, ErrTooManyPackets
	}
	if err := tx.makeRoom(q, l); err != nil {
		return nil, err
	}

	if l.packets > 0 {
		tx.useRole(q, producerRole)
		tx.m.notePush(q, l.packets)
	}
	tx.m.define(q)
	return q, nil
}

// checkShares returns errShares if a queue has no place for the lanes that what is pushed needs.
func (m *Machine) checkShares(q *queue, l *load, tags []PacketTag) error {
	n := m.ix.Lanes(q.ix)
	if n+2 <= MaxShareLanes {
		return nil
	}
	set, more := m.tagBytes(tags), 0
	if l.narrow && !m.ix.HasLane(q.ix, l.key, set, false) {
		more++
	}
	if l.wide && !m.ix.HasLane(q.ix, l.key, set, true) {
		more++
	}
	if more > 0 && n+more > MaxShareLanes {
		return m.errShares(q)
	}
	return nil
}

// checkOpen says why a queue takes nothing in from the caller: ErrQueueClosed, ErrPaused, ErrInUse.
func (tx *Tx) checkOpen(q *queue, packets int) error {
	switch s := q.settings; {
	case s == nil || packets == 0: // what is there may change
		return nil
	case s.Closed:
		return ErrQueueClosed
	case s.PauseIn:
		return ErrPaused
	}
	return tx.mayUse(q, producerRole)
}
