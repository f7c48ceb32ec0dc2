package broker

import (
	"fmt"

	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/storage"
)

// Tx is the right to make calls: whoever has it holds the broker's lock. It is valid only inside
// Do or DoAtomic.
type Tx struct {
	b      *Broker
	now    int64    // Unix milliseconds
	atomic bool     // inside DoAtomic: no call gives the lock up
	left   reserved // of what DoAtomic reserved
}

// reserved is room in the open batch for what DoAtomic announced.
type reserved struct {
	packets int // to push, move or take
	bytes   int // of queue names, keys and payloads to push
	popped  int // bytes of packets to answer pops with
}

// Do runs fn with the lock held, so nobody else's calls come between those of fn. Only a call that
// finds the open batch full gives the lock up: it waits for the next batch, and others may make
// calls before it. DoAtomic has no such gap. fn must not block, and must call the broker only
// through tx.
func (b *Broker) Do(fn func(tx *Tx) error) error {
	b.mu.Lock()
	defer b.end()
	return fn(b.begin())
}

// DoAtomic is Do for calls that belong together: nobody else's come between them, and they reach
// the disk all in one batch or not at all. The caller announces the most packets that fn pushes,
// moves and takes, and the most bytes of queue names, keys and payloads that it pushes. DoAtomic
// waits until the open batch has room for that; from then on no call waits. Subscribers get what fn
// pushed when fn is done.
//
// It returns ErrTooLargeForBatch, before fn runs, if more is announced than one batch takes. A call
// inside fn that goes beyond what was announced changes nothing and returns ErrNotReserved. What fn
// did before an error stays done.
func (b *Broker) DoAtomic(packets, bytes int, fn func(tx *Tx) error) error {
	if packets > b.limits.atomicPackets {
		return fmt.Errorf("%w: %d packets, the limit is %d", ErrTooLargeForBatch, packets, b.limits.atomicPackets)
	}
	if limit := b.limits.atomicBytes(packets); bytes > limit {
		return fmt.Errorf("%w: %d bytes of queue names, keys and payloads, the limit for %d packets is %d",
			ErrTooLargeForBatch, bytes, packets, limit)
	}
	b.mu.Lock()
	defer b.end()
	tx := b.begin()
	err := tx.begin(0, 0) // a batch that is not full has room for all that the limits allow
	if err == nil {
		tx.atomic, tx.left = true, reserved{packets: packets, bytes: bytes, popped: MaxGroupBytes}
		err = fn(tx)
		tx.atomic = false
		b.deliverDeferred()
	}
	return err
}

// begin starts a run of calls; mu is held.
func (b *Broker) begin() *Tx {
	b.tx = Tx{b: b, now: b.clock()}
	return &b.tx
}

// end gives the lock up and wakes the committer if there is something for it to do.
func (b *Broker) end() {
	wake := b.readyToCommit() || b.queues.tooManyIdle()
	b.mu.Unlock()
	if wake {
		b.signal()
	}
}

// begin prepares one call that brings so many packets and bytes to disk. It makes sure that the
// broker accepts calls, does what is due, and waits until the open batch has room. Inside DoAtomic
// it only takes from what was reserved.
func (tx *Tx) begin(packets, bytes int) error {
	b := tx.b
	if tx.atomic {
		return tx.use(reserved{packets: packets, bytes: bytes})
	}
	for {
		if b.closing || b.failure != nil {
			return ErrClosed
		}
		if tx.advance() && !b.open.full(b.limits) && b.open.fits(b.limits, bytes+packets*pushOverhead) {
			b.evictEmpty(evictAtOnce)
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

// use takes from what DoAtomic reserved, or takes nothing and returns ErrNotReserved.
func (tx *Tx) use(r reserved) error {
	left := reserved{
		packets: tx.left.packets - r.packets,
		bytes:   tx.left.bytes - r.bytes,
		popped:  tx.left.popped - r.popped,
	}
	switch {
	case left.packets < 0:
		return fmt.Errorf("%w: %d packets, %d are left of those announced", ErrNotReserved, r.packets, tx.left.packets)
	case left.bytes < 0:
		return fmt.Errorf("%w: %d bytes, %d are left of those announced", ErrNotReserved, r.bytes, tx.left.bytes)
	case left.popped < 0:
		return fmt.Errorf("%w: its pops take more than %d bytes together", ErrNotReserved, MaxGroupBytes)
	}
	tx.left = left
	return nil
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
