package broker

import (
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-queue/holdfast/storage"
)

const (
	idle       = time.Hour              // how long the committer sleeps when no timer runs
	fullRetry  = 200 * time.Millisecond // pause before a batch that found the disk full is tried again
	neverUntil = 100 * 365 * 24 * time.Hour
)

// commitLoop is the committer: the one goroutine that reads and writes the store. It takes the
// open batch, brings it to disk and passes it to the completer; meanwhile the next one fills.
// There is no timer in it: a batch is what came in while the one before was written and answered.
func (b *Broker) commitLoop() {
	defer b.stopped.Done()
	defer close(b.durable)
	clock := time.NewTimer(idle)
	defer clock.Stop()
	for fresh := range b.free {
		t := b.swap(fresh, clock)
		if t == nil {
			return
		}
		if err := b.commit(t); err != nil {
			b.log.Error("commit failed: stopping, the next start recovers from disk", "error", err)
			b.fail(fmt.Errorf("commit failed: %w", err))
			return
		}
		b.mu.Lock()
		b.minBatch = t.size()
		b.mu.Unlock()
		b.durable <- t
	}
}

// readyToCommit says that the open batch is to be committed now. Right after a commit the clients that it
// answers are about to send their next requests: going ahead with the few that are there already
// would cost a sync for each handful. So the next batch starts when the last one's replies are
// out, or when it has become as large, whichever is first.
func (b *Broker) readyToCommit() bool {
	t := b.open
	return !t.empty() && (t.size() >= b.minBatch || t.full(b.limits) || b.closing)
}

// swap waits until the open batch is ripe, opens fresh in its place and returns it. It returns nil
// when the broker closes and nothing is left.
func (b *Broker) swap(fresh *batch, clock *time.Timer) *batch {
	for {
		level := b.store.Space().Level
		b.mu.Lock()
		b.tx = Tx{b: b, now: b.clock()}
		b.space, b.spaceAt = level, b.tx.now
		if b.tx.advance() && !b.open.full(b.limits) {
			b.deliverDeferred() // whom a full disk kept waiting
		}
		if t := b.open; b.readyToCommit() {
			t.ops.SetMarks(b.marks)
			b.planReadAhead(t)
			fresh.firstSeq = b.marks.NextSeq
			b.open = fresh
			b.tx.advance() // what expired while the batch was full must not be fed
			b.deliverDeferred()
			b.room.Broadcast()
			b.mu.Unlock()
			return t
		}
		if t := b.open; t.empty() && (b.closing || b.failure != nil) {
			b.mu.Unlock()
			return nil
		}
		clock.Reset(b.sleep())
		b.mu.Unlock()
		select {
		case <-b.wake:
		case <-clock.C:
		}
	}
}

// sleep is how long nothing is due, and how long until the next look at a disk that is too full.
func (b *Broker) sleep() time.Duration {
	if b.space != storage.Normal {
		return fullRetry
	}
	due, ok := b.ix.Deadline()
	if !ok {
		return idle
	}
	wait := due - b.tx.now
	if wait > int64(neverUntil/time.Millisecond) {
		return idle
	}
	return min(idle, max(time.Millisecond, time.Duration(wait)*time.Millisecond))
}

// commit brings t to disk.
func (b *Broker) commit(t *batch) error {
	// The payloads that this batch pops are read before it deletes them. They are on disk: what
	// this very batch pushed never misses, and all earlier batches are durable.
	if len(t.misses) > 0 {
		if err := b.readMisses(t); err != nil {
			return err
		}
	}
	// Replies alone (of pops that found nothing) need no write; they only wait for their turn.
	if t.ops.Len() == 0 {
		return nil
	}
	b.stats.batches.Add(1)
	b.stats.records.Add(int64(t.ops.Len()))
	return b.apply(t.ops)
}

// apply writes until it succeeds or is known to have failed. A full disk is neither: nothing was
// written, nothing was answered, so it can be tried again when space has been freed. Meanwhile
// calls are refused rather than waiting along.
func (b *Broker) apply(ops *storage.Batch) error {
	err := b.store.Apply(ops)
	if !errors.Is(err, storage.ErrFull) {
		return err
	}
	b.log.Error("disk is full: waiting for free space, nothing is answered meanwhile", "error", err)
	for errors.Is(err, storage.ErrFull) {
		if b.setSpaceLevel(storage.Stop) {
			return err
		}
		time.Sleep(fullRetry)
		err = b.store.Apply(ops)
	}
	b.setSpaceLevel(b.store.Space().Level)
	return err
}

// setSpaceLevel sets the level, tells those who wait for room in a batch, and returns whether the
// broker is closing.
func (b *Broker) setSpaceLevel(level storage.Level) (closing bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.space, b.spaceAt = level, b.clock()
	b.room.Broadcast()
	return b.closing
}
