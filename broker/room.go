package broker

import "fmt"

// Room is what calls bring to the open batch, at most.
type Room struct {
	// Records counts packets, strings, hashes and fields that are put or moved, strings, hashes and
	// fields that are deleted, and queues that are made or dropped.
	Records int
	Bytes   int // of names, keys, fields and values
	Deletes int // packets that are taken or deleted
	// Elastic says that the calls may bring more, as long as the batch has room. It is for a run
	// whose calls depend on what the ones before them leave, which nobody can know.
	Elastic bool
}

// Plus returns the room of both.
func (r Room) Plus(o Room) Room {
	return Room{
		Records: r.Records + o.Records, Bytes: r.Bytes + o.Bytes, Deletes: r.Deletes + o.Deletes,
		Elastic: r.Elastic || o.Elastic,
	}
}

// Atomic runs fn as one: nobody else's calls come between those of fn, and what they change reaches
// the disk all in one batch or not at all. Room is reserved first. Subscribers and waiters get what
// fn brought when fn is done. It returns fn's error; what fn did before an error stays done. An
// Atomic inside another uses what that one reserved.
//
// Before fn runs it returns ErrTooLargeForBatch, which names the limit, if no batch has that much
// room, and ErrNoRoom if the open one has not. A call inside fn that goes beyond what was announced
// changes nothing and returns ErrNotReserved.
func (tx *Tx) Atomic(r Room, fn func() error) error {
	b := tx.b
	if tx.atomic {
		return fn()
	}
	if err := b.limits.check(r); err != nil {
		return err
	}
	if err := tx.begin(r); err != nil {
		return err
	}
	tx.atomic, tx.left, tx.reply = true, r, MaxAtomicReply
	err := fn()
	tx.atomic = false
	b.deliverDeferred()
	return err
}

// WaitRoom waits until a call that got ErrNoRoom may be made again. It is called outside of
// transactions.
func (b *Broker) WaitRoom() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open.number == b.refused && !b.closing && b.failure == nil {
		b.signal()
		b.room.Wait()
	}
}

// use takes from what Atomic reserved, or takes nothing and returns ErrNotReserved.
func (tx *Tx) use(r Room) error {
	left := Room{tx.left.Records - r.Records, tx.left.Bytes - r.Bytes, tx.left.Deletes - r.Deletes, tx.left.Elastic}
	if left.Elastic {
		rest := Room{max(left.Records, 0), max(left.Bytes, 0), max(left.Deletes, 0), true}
		if rest == left || tx.b.open.fits(tx.b.limits, r.Plus(rest)) {
			tx.left = rest
			return nil
		}
	}
	switch {
	case left.Records < 0:
		return fmt.Errorf("%w: %d records, %d are left of those announced", ErrNotReserved, r.Records, tx.left.Records)
	case left.Bytes < 0:
		return fmt.Errorf("%w: %d bytes, %d are left of those announced", ErrNotReserved, r.Bytes, tx.left.Bytes)
	case left.Deletes < 0:
		return fmt.Errorf("%w: %d deletes, %d are left of those announced", ErrNotReserved, r.Deletes, tx.left.Deletes)
	}
	tx.left = left
	return nil
}

// useMore is use for what a call finds out after it began: outside of Atomic it makes sure that the
// batch has room for that, too. Nothing has changed yet.
func (tx *Tx) useMore(r Room) error {
	if tx.atomic {
		return tx.use(r)
	}
	all := tx.left.Plus(r)
	if err := tx.b.limits.check(all); err != nil {
		return err
	}
	if !tx.b.open.fits(tx.b.limits, all) {
		tx.b.refused = tx.b.open.number
		return ErrNoRoom
	}
	return nil
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
