package broker

import (
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-queue/holdfast/storage"
)

const (
	longestSleep = time.Hour              // of the committer, however far the next deadline is
	fullRetry    = 200 * time.Millisecond // pause before a batch that found the disk full is tried again
)

// commitLoop is the committer: it takes the open batch, brings it to disk and passes it to the
// completer, while the next batch fills. No timer makes a batch wait: a batch is what came in while
// the one before it was written and answered. The committer does have a clock, for what is due by
// itself: deadlines of packets, queues that stay empty, and looks at a disk that is too full.
func (b *Broker) commitLoop() {
	defer b.stopped.Done()
	defer close(b.durable)
	clock := time.NewTimer(longestSleep)
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
		b.onWay = nil
		b.minBatch = t.size()
		b.durableBatch, b.durableKey = t.number, t.ops.Marks().LastKey
		b.mu.Unlock()
		b.durable <- t
	}
}

// readyToCommit says that the open batch is to be committed now. Right after a commit, the clients
// that it answers are about to send their next requests: a commit of the few that are there
// already would cost a sync for each handful. So the next commit waits until the last one's
// replies are out, or until its batch has become as large as the last.
func (b *Broker) readyToCommit() bool {
	t := b.open
	// A full batch goes, also if all that filled it has cancelled itself: calls wait for the next.
	return t.full(b.limits) || !t.empty() && (t.size() >= b.minBatch || b.closing)
}

// swap waits until the open batch is ready, opens fresh in its place and returns it. It returns nil
// when the broker closes and nothing is left. While it waits it does what is due by itself: timers,
// deferred deliveries, and the end of empty and dropped queues.
func (b *Broker) swap(fresh *batch, clock *time.Timer) *batch {
	for {
		b.mu.Lock()
		tx := b.begin()
		b.space, b.spaceAt = b.store.Space().Level, tx.now // a look before the lock may be an old one
		cleaning := false
		if tx.advance() && !b.open.full(b.limits) {
			b.deliverDeferred() // what a full disk kept waiting
			cleaning = b.clean()
		}
		if t := b.open; b.readyToCommit() {
			t.ops.SetMarks(b.marks)
			fresh.puts.firstSeq, fresh.puts.firstLow = b.marks.NextSeq, b.marks.LowSeq
			fresh.number, fresh.lastKey = t.number+1, b.marks.LastKey
			b.open, b.onWay = fresh, t
			tx.advance() // what expired while the batch was full must not be delivered
			b.deliverDeferred()
			b.clean() // busy clients soon fill the batch
			b.room.Broadcast()
			b.mu.Unlock()
			return t
		}
		if b.open.empty() && (b.closing || b.failure != nil) {
			b.mu.Unlock()
			return nil
		}
		if b.open.empty() {
			b.room.Broadcast() // all that filled it has cancelled itself
		}
		sleep := b.sleep(tx.now)
		b.wakeAt = tx.steady + sleep.Milliseconds()
		clock.Reset(sleep)
		b.mu.Unlock()
		if cleaning {
			continue // what was never on disk adds nothing to the batch
		}
		select {
		case <-b.wake:
		case <-clock.C:
		}
	}
}

// clean does a slice of what nobody waits for: empty queues end, what was dropped is deleted, and
// the table grows by which calls find packets by their ids. It returns true if it has to go on once
// others had the lock.
func (b *Broker) clean() (more bool) {
	more = b.evictDue()
	more = b.sweep() || more
	more = b.sweepKeys() || more
	more = b.sweepOrphans() || more
	more = b.sweepUniques() || more
	more = b.saveCounters() || more
	more = b.redate() || more
	b.identify = b.identify && b.ix.BuildIdentities(identifySlice)
	more = b.identify || more
	b.endFlush()
	return more
}

// sleep is how long the committer has nothing to do by itself.
func (b *Broker) sleep(now int64) time.Duration {
	if b.space != storage.Normal {
		return fullRetry
	}
	wait := longestSleep.Milliseconds()
	if due, ok := b.ix.Wait(now, b.tx.steady); ok {
		wait = min(wait, due)
	}
	if due, ok := b.names.Deadline(); ok {
		wait = min(wait, due-now)
	}
	if len(b.counted) > 0 {
		wait = min(wait, b.countersAt-b.tx.steady)
	}
	if len(b.waits) > 0 {
		wait = min(wait, b.waits[0].until-b.tx.steady)
	}
	if len(b.queues.idle) > 0 {
		wait = min(wait, b.queues.idle[0].emptied+maxIdleTime-now)
	}
	return time.Duration(max(1, wait)) * time.Millisecond
}

// commit brings t to disk.
func (b *Broker) commit(t *batch) error {
	// Replies alone (of pops that found nothing) need no write.
	if t.ops.Len() == 0 && !t.claims {
		return nil
	}
	t.ops.MustWrite()
	return b.apply(t.ops)
}

// apply writes until that succeeds or has failed. A full disk is neither: nothing was written and
// nothing answered, so apply tries again until space has been freed. Meanwhile calls are refused.
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

// setSpaceLevel sets the level, wakes those who wait for the next batch, and returns whether the
// broker is closing.
func (b *Broker) setSpaceLevel(level storage.Level) (closing bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.space = level
	b.spaceAt, _ = b.clocks()
	b.room.Broadcast()
	return b.closing
}
