package broker

import (
	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/storage"
)

// Tx is the right to make calls: whoever has it holds the broker's lock. It is valid only inside
// Do.
type Tx struct {
	b      *Broker
	now    int64 // Unix milliseconds
	steady int64 // the same on a clock that never jumps, by which leases end
	atomic bool  // inside Atomic
	left   Room  // of what Atomic reserved; outside of one: what the present call brings
	reply  int   // bytes of packets that the Atomic may still answer with
	caller *Conn // see As; nil: nobody in particular
	db     uint8 // in which the names of the calls are
	turn   bool  // the push under way has waited for its turn, see line.go
}

// Do runs fn with the lock held, so nobody else's calls come between those of fn. fn must not
// block, and must call the broker only through tx. A call that finds no room in the open batch
// changes nothing and returns ErrNoRoom: fn ends then, and the caller goes on from there after
// WaitRoom.
func (b *Broker) Do(fn func(tx *Tx) error) error {
	b.mu.Lock()
	defer b.end()
	return fn(b.begin())
}

// begin starts a run of calls; mu is held.
func (b *Broker) begin() *Tx {
	b.tx = Tx{b: b}
	b.tx.now, b.tx.steady = b.clocks()
	return &b.tx
}

// end makes the deliveries that the calls have deferred, gives the lock up, and wakes the committer
// if there is something for it to do.
func (b *Broker) end() {
	b.deliverDeferred()
	if cap(b.scratch) > keepScratch {
		b.scratch = nil
	}
	wake := b.readyToCommit() || b.queues.tooManyIdle()
	b.mu.Unlock()
	if wake {
		b.signal()
	}
}

// begin prepares one call that brings so much to the open batch. It makes sure that the broker
// accepts calls, does what is due, and that the batch has room. Inside Atomic, which did all that,
// it takes from what was reserved.
func (tx *Tx) begin(r Room) error {
	if tx.atomic {
		return tx.use(r)
	}
	b := tx.b
	if b.closing || b.failure != nil {
		return ErrClosed
	}
	if tx.advance() && !b.open.full(b.limits) && b.open.fits(b.limits, r) {
		b.evictEmpty(evictAtOnce)
		tx.left = r
		return nil
	}
	if b.spaceLevel(tx.now) >= storage.Stop {
		return ErrStopped // the batch ahead may be waiting for room on the disk
	}
	b.refused = b.open.number
	return ErrNoRoom
}

// beginTake is begin for a call that takes or deletes packets. ErrStopped.
func (tx *Tx) beginTake(r Room) error {
	err := tx.begin(r)
	if err == nil && tx.b.spaceLevel(tx.now) >= storage.Stop {
		err = ErrStopped
	}
	return err
}

// beginPut is begin for a call that brings data. ErrNoSpace, ErrStopped.
func (tx *Tx) beginPut(r Room) error {
	if err := tx.pushable(); err != nil {
		return err
	}
	return tx.begin(r)
}

// advance does what is due by now: expired packets go, delayed and leased ones come back, waits
// end. It returns false if the batch was full before all was done. Leases end in half of each batch
// only: a million that end together would keep others out for long, and may as well end a little
// later.
func (tx *Tx) advance() bool {
	b := tx.b
	if !b.expireWaits(tx) || !b.expireNames(tx.now) {
		return false
	}
	for {
		steady := tx.steady
		if b.open.halfFull(b.limits) {
			steady = 0 // no lease is due
		}
		p, ok := b.ix.Due(tx.now, steady)
		if !ok {
			return true
		}
		if b.open.full(b.limits) {
			return false
		}
		// An empty batch takes the death of the largest packet, too: its record is most of the room.
		if p.State == index.Claimed && b.open.ops.Len() > 0 && !b.open.fits(b.limits, b.leaseEnds(p)) {
			return false
		}
		e, _ := b.ix.Advance(tx.now, steady)
		q := b.queues.of(e.Packet.Queue)
		switch e.Kind {
		case index.Expired:
			b.expire(q, e.Packet)
		case index.LeaseEnded:
			b.leaseEnded(q, e.Packet)
		case index.WindowEnded:
			b.endUnique(q, e.Packet.Identity)
			b.listIdle(q)
		default:
			b.deliverQueue(q)
		}
	}
}

// wallClock reads the clock outside of a run of calls.
func (b *Broker) wallClock() int64 {
	now, _ := b.clocks()
	return now
}
