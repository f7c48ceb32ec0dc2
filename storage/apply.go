package storage

import (
	"errors"
	"fmt"

	"github.com/holdfast-queue/holdfast/storage/journal"
)

// ttlSlackSeconds is added to the native expiry of Badger, which has whole seconds and the wall
// clock of the machine: it cleans the disk of a server that was off and must never hide a packet
// that an index still holds, also when the clock was set back a little.
const ttlSlackSeconds = 300

// nativeExpiry returns the second after which Badger may drop a packet.
func nativeExpiry(ms int64) uint64 {
	if ms <= 0 {
		return 0
	}
	return uint64(ms-1)/1000 + 1 + ttlSlackSeconds
}

// Apply writes the batch and the control record as one record of the journal, and returns when it
// is as durable as Options.Sync says. A batch with nothing to write touches no disk.
//
// The error is nil; one that wraps ErrFull, and then nothing was written; or one that wraps
// ErrUnknown, and then the store takes no more batches: the caller stops.
func (s *Store) Apply(b *Batch) error {
	if b.count == 0 && !b.must {
		return nil
	}
	return s.write(b)
}

// write is Apply, also of a batch that changes nothing but the control record.
func (s *Store) write(b *Batch) error {
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
	s.waitForRoom()
	next, failed := s.state()
	if failed != nil {
		return fmt.Errorf("%w: the store stopped before it: %w", ErrUnknown, failed)
	}
	if err := s.guard.look(); errors.Is(err, ErrFull) {
		return err
	} else if err != nil {
		s.fail(err)
		return fmt.Errorf("%w: the store stopped before it: %w", ErrUnknown, err)
	}
	s.entries.reset()
	if err := s.fill(b, &next); err != nil {
		s.fail(err)
		return fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	next.Epoch = s.epoch
	next.Batch++
	if b.hasMarks {
		next.Marks = b.marks
	}
	err := s.commit(&next)
	if s.noSegment.Store(errors.Is(err, ErrFull)); errors.Is(err, ErrFull) {
		s.freeze() // tables of it give room of the journal back
		return err
	}
	if err != nil {
		s.fail(err)
		return fmt.Errorf("%w: batch %d: %w", ErrUnknown, next.Batch, err)
	}
	s.mu.Lock()
	s.control = next
	if b.load.set {
		s.load = append([]byte(nil), b.load.rec...) // nil when that is empty
	}
	if b.flushed.set {
		s.flush = b.flush
	}
	s.mu.Unlock()
	s.freezeIfFull()
	return nil
}

// state returns the control record, and why the store stopped.
func (s *Store) state() (Control, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.control, s.failed
}

// commit writes the entries that were gathered and a control record to the journal, and takes them
// into the open window.
func (s *Store) commit(next *Control) error {
	s.record = appendControl(s.record[:0], next)
	content := journal.Content{Batch: next.Batch, Control: s.record, Entries: s.entries.count, Body: [][]byte{s.entries.body}}
	place, upto, err := s.journal.Append(content)
	if errors.Is(err, journal.ErrFull) {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	if err != nil {
		return err
	}
	if s.opt.Sync.kind == syncAlways {
		if err := s.anchor.write(s.mark(next.Batch)); err != nil {
			return err
		}
	}
	if cap(s.entries.body) > keepBody {
		defer func() { s.entries.body = nil }()
	}
	return s.layers.take(place, upto, &content, s.entries.body)
}

// keepBody is the largest buffer of entries that is kept from one batch to the next, in bytes.
const keepBody = 8 << 20

// fill gathers the entries of a batch, and brings the totals of the control record up to date.
func (s *Store) fill(b *Batch, next *Control) error {
	e := &s.entries
	for i := range b.ops {
		o := &b.ops[i]
		if o.cancelled {
			continue
		}
		if err := e.packet(o); err != nil {
			return fmt.Errorf("packet %v: %w", o.id, err)
		}
		next.count(o)
	}
	e.states(b, next)
	if err := e.items(b, next); err != nil {
		return err
	}
	e.uniques(b, next)
	e.only(&b.load, loadKey)
	e.only(&b.flushed, flushKey)
	var key [maxKey]byte
	for id, o := range b.queues {
		k := append(appendQueueKey(key[:0], id), countersKey)
		e.queue(k[:queueKeyLen], o.rec, o.gone, !o.fresh)
		e.queue(k, o.counters, o.gone, true)
	}
	return nil
}

// queue adds the definition of a queue, or its counters; nil is neither written nor left if it is
// gone.
func (e *entries) queue(key, rec []byte, gone, over bool) {
	switch {
	case rec != nil:
		e.put(key, rec, 0, over)
	case gone:
		e.delete(key)
	}
}

var errNotGiven = errors.New("its record was not given")

// packet adds one packet, its payload if that has a record of its own, and the delivery state that
// goes with one that goes.
func (e *entries) packet(o *batchOp) error {
	e.deleteStates(o.removed.Identity, o.removed.Stored)
	var room [2 * maxKey]byte
	key := appendPacketKey(room[:0:maxKey], o.id)
	payload := appendPayloadKey(room[maxKey:maxKey], o.id)
	over := o.kind == OpReplace
	switch {
	case o.kind == OpDelete:
		e.delete(key)
	case o.rec == nil:
		return errNotGiven
	case o.head == nil:
		e.put(key, o.rec, nativeExpiry(o.expiry), over)
	default:
		e.put(key, o.head, nativeExpiry(o.expiry), over)
		e.put(payload, o.payload, nativeExpiry(o.expiry), true)
		return nil
	}
	if o.removed.Large {
		e.delete(payload)
	}
	return nil
}

// count brings the totals of the control record up to date with an operation.
func (c *Control) count(o *batchOp) {
	if o.kind != OpPut && !o.removed.Expires {
		c.Live--
		c.Hash -= SetHash(o.id)
	}
	if o.removed.Stored&StoredDelivery != 0 {
		c.removeDelivery(o.removed.Identity)
	}
	if o.kind != OpDelete {
		c.Add(o.id, o.expiry)
	}
}
