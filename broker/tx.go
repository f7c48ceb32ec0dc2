package broker

import (
	"fmt"

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
	reply  int   // bytes of packets that the Atomic may still answer with
	caller *Conn // see As; nil: nobody in particular
	db     uint8 // in which the names of the calls are
	turn   bool  // the push under way has waited for its turn, see line.go
	stuck  bool  // the open batch is full, and waits for space on the disk
}

// Do runs fn with the lock held, so nobody else's calls come between those of fn. It waits while
// the open batch is full. What fn brings then goes into that batch, however much it is: a fn that
// makes many calls looks at Full between them. fn must not block, and must call the broker only
// through tx.
func (b *Broker) Do(fn func(tx *Tx) error) error {
	b.mu.Lock()
	defer b.end()
	tx := b.begin()
	for !b.closing && b.failure == nil && (tx.Full() || !tx.advance()) {
		if tx.stuck = b.spaceLevel(tx.now) >= storage.Stop; tx.stuck {
			break
		}
		b.signal()
		b.room.Wait()
		tx = b.begin()
	}
	return fn(tx)
}

// Full says that the open batch is full: the next calls should be those of another Do.
func (tx *Tx) Full() bool { return tx.b.open.full(tx.b.limits) }

// Atomic runs fn as one: what its calls change reaches the disk all in one batch or not at all.
// Subscribers and waiters get what fn brought when fn is done. It returns fn's error; what fn did
// before an error stays done. An Atomic inside another is part of that: either refused with
// ErrTooMuchOpen before it begins, or not, however much it brings.
func (tx *Tx) Atomic(fn func() error) error {
	if tx.atomic {
		if err := tx.mayBring(0, 0); err != nil {
			return err
		}
		return fn()
	}
	if err := tx.begin(); err != nil {
		return err
	}
	tx.atomic, tx.reply = true, MaxAtomicReply
	err := fn()
	tx.atomic = false
	tx.b.deliverDeferred()
	return err
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
	if cap(b.fetched) > keepScratch {
		b.fetched, b.missing, b.missed = nil, nil, nil
	}
	wake := b.readyToCommit() || b.queues.tooManyIdle()
	b.mu.Unlock()
	if wake {
		b.signal()
	}
}

// begin makes sure that the broker accepts a call.
func (tx *Tx) begin() error {
	switch b := tx.b; {
	case b.closing || b.failure != nil:
		return ErrClosed
	case tx.stuck:
		return ErrStopped
	case !tx.atomic:
		b.evictEmpty(evictAtOnce)
	}
	return nil
}

// mayBring returns ErrTooMuchOpen if so many records of so many bytes are too many for the open
// batch. It is asked by the calls that bring far more than their arguments.
func (tx *Tx) mayBring(records, bytes int) error {
	if bytes += tx.b.open.memory() + records*recordMemory; bytes > MaxOpen {
		return fmt.Errorf("%w, and this would make it %d or more", ErrTooMuchOpen, bytes)
	}
	return nil
}

// mayMove is mayBring for packets that move: each is a delete and a put.
func (tx *Tx) mayMove(packets []index.Packet) error {
	return tx.mayBring(2*len(packets), weightOf(packets))
}

// useReply takes bytes of packets that are answered from what one Atomic may answer with. Outside
// of one it does nothing.
func (tx *Tx) useReply(bytes int) error {
	if !tx.atomic {
		return nil
	}
	if bytes > tx.reply {
		return fmt.Errorf("%w: %d bytes, the limit for the replies of one run is %d", ErrReplyTooLarge, bytes, MaxAtomicReply)
	}
	tx.reply -= bytes
	return nil
}

// beginTake is begin for a call that takes or deletes packets. ErrStopped.
func (tx *Tx) beginTake() error {
	err := tx.begin()
	if err == nil && tx.b.spaceLevel(tx.now) >= storage.Stop {
		err = ErrStopped
	}
	return err
}

// beginPut is begin for a call that brings data. ErrNoSpace, ErrStopped.
func (tx *Tx) beginPut() error {
	if err := tx.CanStore(); err != nil {
		return err
	}
	return tx.begin()
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
		if _, ok := b.ix.Due(tx.now, steady); !ok {
			return true
		}
		if b.open.full(b.limits) {
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
