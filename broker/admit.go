package broker

import "github.com/holdfast-queue/holdfast/index"

// A queue has a gate at each end. Pushes pass the one, and takes the other: a queue that is paused
// keeps what it has, and one that is closed gets nothing more. Reads see everything.

// load is what comes to a queue.
type load struct {
	packets  int
	bytes    int64  // of keys and payloads
	priority uint32 // of what is pushed; 0: nothing is dropped for it
}

// loadOf is what comes when packets move. Those that are dead or done count nowhere.
func loadOf(packets []index.Packet) (l load) {
	for _, p := range packets {
		if p.State <= index.Claimed {
			l.packets++
			l.bytes += int64(p.Size)
		}
	}
	return l
}

// checkPush says whether a queue takes what comes from a client: ErrQueueClosed, ErrPaused,
// ErrInUse, ErrFull, ErrTooManyPackets. Nothing has changed then. Every call that adds packets to a
// queue asks first.
func (tx *Tx) checkPush(q *queue, l load) error {
	if err := tx.checkOpen(q, l); err != nil {
		return err
	}
	if !tx.m.ix.HasRoom(l.packets) {
		return ErrTooManyPackets
	}
	if err := tx.makeRoom(q, l); err != nil {
		return err
	}
	if l.packets > 0 {
		tx.useRole(q, producerRole)
	}
	return nil
}

// checkMoveIn is checkPush for packets that move from one queue to another, or the same: dead ones
// take no place, but pass the gate. Nobody gets a role by it. It returns the errors of checkMove,
// too.
func (tx *Tx) checkMoveIn(from, to *queue, packets ...index.Packet) error {
	if err := tx.m.checkMove(from, to, packets...); err != nil {
		return err
	}
	if err := tx.checkOpen(to, load{packets: len(packets)}); err != nil {
		return err
	}
	return tx.makeRoom(to, loadOf(packets))
}

// access is what a call does with the packets of the queue that it is about.
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

// openToPush begins a call that brings packets to a queue, which is made if it is not known.
func (tx *Tx) openToPush(name []byte, l load, tags []PacketTag) (q *queue, err error) {
	m := tx.m
	if err = tx.CanStore(); err == nil {
		err = tx.begin()
	}
	if err == nil {
		q, err = m.makeQueue(name)
	}
	if err == nil {
		err = m.checkTags(q, tags)
	}
	if err == nil {
		err = tx.checkPush(q, l)
	}
	if err != nil {
		return nil, err
	}
	m.define(q)
	return q, nil
}

// checkOpen says why a queue takes nothing in from the caller.
func (tx *Tx) checkOpen(q *queue, l load) error {
	switch s := q.settings; {
	case s == nil || l.packets == 0: // what is there may change
		return nil
	case s.Closed:
		return ErrQueueClosed
	case s.PauseIn:
		return ErrPaused
	}
	return tx.mayUse(q, producerRole)
}
