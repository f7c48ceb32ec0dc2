package broker

import "github.com/holdfast-queue/holdfast/index"

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
// queue asks first, but a copy: its queue is new (checkCopy).
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
