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
		b.worth = t.size()
		b.mu.Unlock()
		b.durable <- t
	}
}

// ripe says that the open batch is to be committed now. Right after a commit the clients that it
// answers are about to send their next requests: going ahead with the few that are there already
// would cost a sync for each handful. So the next batch starts when the last one's replies are
// out, or when it has become as large, whichever is first.
func (b *Broker) ripe() bool {
	t := b.open
	return !t.empty() && (t.size() >= b.worth || t.full(b.limits) || b.closing)
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
			b.feed() // whom a full disk kept waiting
		}
		if t := b.open; b.ripe() {
			t.ops.SetMarks(b.marks)
			b.lookAhead(t)
			fresh.firstSeq = b.marks.NextSeq
			b.open = fresh
			b.tx.advance() // what expired while the batch was full must not be fed
			b.feed()
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

// lookAhead notes the packets that the next pops are likely to take, when this batch found that
// they are not cached: reading them along costs a tenth of reading each by itself.
func (b *Broker) lookAhead(t *batch) {
	if t.missed == nil || b.queues.all[t.missed.ix] != t.missed {
		return
	}
	b.scratch = b.ix.Next(t.missed.ix, t.missedEnd, 0, readAhead, b.scratch[:0])
	bytes := 0
	for _, p := range b.scratch {
		if bytes += int(p.Size); bytes > readAheadBytes {
			return
		}
		if b.cache.get(p.Ref, p.Seq) == nil {
			t.ahead = append(t.ahead, miss{id: t.missed.packet(p), entry: p.ID})
		}
	}
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
		if b.noteSpace(storage.Stop) {
			return err
		}
		time.Sleep(fullRetry)
		err = b.store.Apply(ops)
	}
	b.noteSpace(b.store.Space().Level)
	return err
}

// noteSpace sets the level, tells those who wait for room in a batch, and returns whether the
// broker is closing.
func (b *Broker) noteSpace(level storage.Level) (closing bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.space, b.spaceAt = level, b.clock()
	b.room.Broadcast()
	return b.closing
}

// readMisses fills t.records and brings t's neighbours into the cache.
func (b *Broker) readMisses(t *batch) error {
	all := append(t.misses, t.ahead...)
	ids := make([]storage.PacketID, len(all))
	for i, m := range all {
		ids[i] = m.id
	}
	ahead := make([][]byte, len(t.ahead))
	var decoded Packet
	err := b.store.Read(ids, func(i int, record []byte) error {
		if i >= len(t.misses) {
			if record != nil { // nil: pushed by a batch that is not on disk yet
				ahead[i-len(t.misses)] = t.copy(record)
			}
			return nil
		}
		// Decoded here, before the batch deletes it: afterwards a reply could only leave it out.
		if record == nil || storage.DecodeRecord(record, &decoded) != nil {
			return b.unreadable(t.misses[i])
		}
		t.records[t.misses[i].record] = t.copy(record)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read popped payloads: %w", err)
	}
	b.mu.Lock()
	for i, record := range ahead {
		if record != nil {
			b.keep(t.ahead[i], record)
		}
	}
	b.mu.Unlock()
	return nil
}

// unreadable decides what becomes of a popped packet whose record could not be read. The store's
// own expiry may have taken one whose time is over after a jump of the clock; any other is damage.
func (b *Broker) unreadable(m miss) error {
	if m.expiry != 0 && m.expiry <= b.clock() {
		return nil
	}
	why := b.store.Damage(m.id)
	if why == nil {
		why = fmt.Errorf("%w: packet %+v is in the index, and on disk it is not there or no packet", storage.ErrDamaged, m.id)
	}
	if !b.accept {
		return fmt.Errorf("%w; restore a copy, or start with --accept-loss to leave such packets out", why)
	}
	b.log.Error("popped packet is damaged and is left out of its reply", "error", why)
	return nil
}

// keep caches a record that was read ahead, unless its packet is gone.
func (b *Broker) keep(m miss, record []byte) {
	if p, ok := b.ix.Get(m.entry); ok && p.Seq == m.id.Seq {
		b.ix.SetRef(m.entry, m.id.Seq, b.cache.add(m.id.Seq, record))
	}
}

// completeLoop is the completer: it hands the replies of durable batches to their receivers, in
// order, flushes each receiver once a batch, and returns the batch for use again.
func (b *Broker) completeLoop() {
	defer b.stopped.Done()
	var packets []Packet
	var dirty []*Consumer
	for t := range b.durable {
		for _, r := range t.replies {
			packets = b.handOut(t, r, packets[:0])
			if !r.to.dirty {
				r.to.dirty = true
				dirty = append(dirty, r.to)
			}
		}
		for _, c := range dirty {
			c.dirty = false
			c.to.Flush()
		}
		dirty = dirty[:0]
		t.reset()
		b.free <- t
		b.completed()
	}
}

// completed lets the committer go on with whatever is open.
func (b *Broker) completed() {
	b.mu.Lock()
	b.worth = 0
	ripe := b.ripe()
	b.mu.Unlock()
	if ripe {
		b.signal()
	}
}

// handOut gives one reply to its receiver. It returns packets, grown, to be used again.
func (b *Broker) handOut(t *batch, r reply, packets []Packet) []Packet {
	if r.kind == replyFinish {
		r.to.to.Finish()
		return packets
	}
	if r.kind == replyBytes {
		r.to.to.Reply(t.records[r.first])
		r.handedOver()
		return packets
	}
	for _, record := range t.records[r.first:r.last] {
		if record == nil {
			continue
		}
		packets = append(packets, Packet{})
		if err := storage.DecodeRecord(record, &packets[len(packets)-1]); err != nil {
			packets = packets[:len(packets)-1]
			b.log.Error("popped packet cannot be decoded and is left out of its reply", "error", err)
		}
	}
	r.to.to.Packets(packets)
	r.handedOver()
	return packets
}

// handedOver notes that the receiver has been given the reply.
func (r *reply) handedOver() {
	r.to.queuedBytes.Add(-int64(r.owed))
	r.to.queuedReplies.Add(-1)
}
