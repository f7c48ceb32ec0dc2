package storage

import (
	"fmt"

	"github.com/dgraph-io/badger/v4"
)

// applyState is memory that Apply uses again.
type applyState struct {
	entries []badger.Entry
	keys    []byte
	control []byte
}

// ttlSlackSeconds is added to the native expiry of Badger, which has whole
// seconds and the wall clock of the machine: it cleans the disk of a server
// that was off and must never hide a packet that an index still holds, also
// when the clock was set back a little.
const ttlSlackSeconds = 300

// nativeExpiry returns the second after which Badger may drop a packet.
func nativeExpiry(ms int64) uint64 {
	if ms <= 0 {
		return 0
	}
	return uint64(ms-1)/1000 + 1 + ttlSlackSeconds
}

// Apply writes the batch and the control record in one transaction and
// returns when it is as durable as Options.Sync says. A batch with nothing to
// write touches no disk.
//
// The error is nil; one that wraps ErrTooLarge, ErrFull or ErrReadOnly, and
// then nothing was written; or one that wraps ErrUnknown, and then the store
// takes no more batches: the caller stops.
func (s *Store) Apply(b *Batch) error {
	if b.count == 0 {
		return nil
	}
	s.mu.Lock()
	next, failed := s.control, s.failed
	s.mu.Unlock()
	switch {
	case failed != nil:
		return fmt.Errorf("%w: the store stopped before it: %w", ErrUnknown, failed)
	case s.opt.ReadOnly:
		return ErrReadOnly
	case b.count > s.limits.MaxOps || b.bytes > s.limits.MaxBytes:
		return fmt.Errorf("%w: %d operations and %d bytes, at most %d and %d",
			ErrTooLarge, b.count, b.bytes, s.limits.MaxOps, s.limits.MaxBytes)
	}
	if err := s.guard.look(int64(b.bytes)); err != nil {
		return err
	}
	if err := s.commit(b, &next); err != nil {
		s.fail(err)
		return fmt.Errorf("%w: batch %d: %w", ErrUnknown, next.Batch, err)
	}
	s.mu.Lock()
	s.control = next
	s.mu.Unlock()
	return nil
}

func (s *Store) commit(b *Batch, next *Control) error {
	txn := s.db.NewTransaction(true)
	defer txn.Discard()

	// The operations, and what they change in the control record.
	if err := s.fill(txn, b, next); err != nil {
		return err
	}

	// The control record, last, in the same transaction.
	next.Epoch = s.epoch
	next.Batch++
	if b.hasMarks {
		next.Marks = b.marks
	}
	s.apply.control = appendControl(s.apply.control[:0], next)
	if err := txn.Set([]byte(controlKey), s.apply.control); err != nil {
		return fmt.Errorf("cannot add the control record: %w", err)
	}

	// Written, then synced, then anchored.
	if err := txn.Commit(); err != nil {
		return fmt.Errorf("cannot commit: %w", err)
	}
	if err := s.wal.committed(); err != nil {
		return err
	}
	if s.opt.Sync.kind != syncAlways {
		return nil
	}
	if !s.badgerSyncs {
		if err := s.wal.flush(); err != nil {
			return err
		}
	}
	return s.anchor.write(s.mark(next.Batch))
}

// fill adds the batch to a transaction, which keeps references to the keys
// and values until it has committed.
func (s *Store) fill(txn *badger.Txn, b *Batch, next *Control) error {
	a := &s.apply
	if cap(a.entries) < b.count {
		a.entries = make([]badger.Entry, b.count)
	}
	a.entries = a.entries[:0]
	if need := b.count * packetKeyLen; cap(a.keys) < need {
		a.keys = make([]byte, 0, need)
	}
	a.keys = a.keys[:0]
	put := func(key, value []byte, expires uint64) error {
		a.entries = append(a.entries, badger.Entry{Key: key, Value: value, ExpiresAt: expires})
		return txn.SetEntry(&a.entries[len(a.entries)-1])
	}
	for i := range b.ops {
		o := &b.ops[i]
		if o.cancelled {
			continue
		}
		key := a.key(packetKeyLen, func(dst []byte) []byte { return appendPacketKey(dst, o.id) })
		var err error
		switch {
		case o.kind == OpPut && o.head == nil:
			err = put(key, o.rec, nativeExpiry(o.expiry))
		case o.kind == OpPut:
			err = put(key, o.head, nativeExpiry(o.expiry))
		default:
			err = txn.Delete(key)
		}
		if err == nil && (o.head != nil || o.removed.Large) {
			key = a.key(payloadKeyLen, func(dst []byte) []byte { return appendPayloadKey(dst, o.id) })
			if o.kind == OpPut {
				err = put(key, o.payload, nativeExpiry(o.expiry))
			} else {
				err = txn.Delete(key)
			}
		}
		if err != nil {
			return fmt.Errorf("cannot add packet %v to the transaction: %w", o.id, err)
		}
		next.count(o)
	}
	for id, o := range b.queues {
		key := a.key(queueKeyLen, func(dst []byte) []byte { return appendQueueKey(dst, id) })
		var err error
		if o.gone {
			err = txn.Delete(key)
		} else {
			err = put(key, o.rec, 0)
		}
		if err != nil {
			return fmt.Errorf("cannot add queue %d to the transaction: %w", id, err)
		}
	}
	return nil
}

// key cuts a key from the arena, which has room for all of a batch.
func (a *applyState) key(n int, fill func([]byte) []byte) []byte {
	at := len(a.keys)
	a.keys = fill(a.keys)
	return a.keys[at : at+n : at+n]
}

// count brings the totals of the control record up to an operation.
func (c *Control) count(o *batchOp) {
	switch {
	case o.kind == OpPut && o.expiry == 0:
		c.Live++
		c.Hash += SetHash(o.id)
	case o.kind == OpDelete && !o.removed.Expires:
		c.Live--
		c.Hash -= SetHash(o.id)
	}
}
