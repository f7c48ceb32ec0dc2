package broker

import (
	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/storage"
)

// Tx is the right to change queues: it holds the broker's lock, so the calls of one Do are one
// after the other in the order of the world, with nobody else's between them, unless the open
// batch is full and a call has to wait for the next. Valid only inside Do.
type Tx struct {
	b   *Broker
	now int64 // Unix milliseconds
}

// Do runs fn with the lock held. fn must not block or call the broker but through tx.
func (b *Broker) Do(fn func(tx *Tx) error) error {
	b.mu.Lock()
	tx := &b.tx
	*tx = Tx{b: b, now: b.clock()}
	err := fn(tx)
	wake := b.readyToCommit()
	b.mu.Unlock()
	if wake {
		b.signal()
	}
	return err
}

// begin makes sure that the broker accepts calls, that nothing that is due is left undone, and
// that the open batch has room for one call that brings so many bytes to disk. It may wait for a
// fresh batch.
func (tx *Tx) begin(bytes int) error {
	b := tx.b
	for {
		if b.closing || b.failure != nil {
			return ErrClosed
		}
		if tx.advance() && !b.open.full(b.limits) && b.open.fits(b.limits, bytes) {
			b.evictEmpty()
			return nil
		}
		if b.spaceLevel(tx.now) >= storage.Stop {
			return ErrStopped // the batch ahead may be waiting for room on the disk
		}
		b.signal()
		b.room.Wait()
		tx.now = b.clock()
	}
}

// advance does what is due by now: expired packets go, delayed and leased ones come back. It
// returns false if the batch was full before all was done.
func (tx *Tx) advance() bool {
	b := tx.b
	for {
		due, ok := b.ix.Deadline()
		if !ok || due > tx.now {
			return true
		}
		if b.open.full(b.limits) {
			return false
		}
		b.events = b.ix.Advance(tx.now, timersAtOnce, b.events[:0])
		for _, e := range b.events {
			q := b.queues.of(e.Packet.Queue)
			if e.Packet.Expiry != 0 && e.Kind == index.Expired {
				b.deletePacket(q, e.Packet)
				b.markEmpty(q)
				continue
			}
			b.deliverQueue(q)
		}
	}
}
