package storage

import (
	"errors"
	"fmt"

	"github.com/dgraph-io/badger/v4"
)

// applyState is memory that Apply uses again.
type applyState struct {
	entries []badger.Entry
	keys    []byte
	control []byte
}

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

// Apply writes the batch and the control record in one transaction and returns when it is as
// durable as Options.Sync says. A batch with nothing to write touches no disk.
//
// The error is nil; one that wraps ErrTooLarge or ErrFull, and then nothing was written; or one
// that wraps ErrUnknown, and then the store takes no more batches: the caller stops.
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
	s.mu.Lock()
	next, failed := s.control, s.failed
	s.mu.Unlock()
	if failed != nil {
		return fmt.Errorf("%w: the store stopped before it: %w", ErrUnknown, failed)
	}
	postponed, err := s.limits.postpone(b)
	if err != nil {
		return err
	}
	if err := s.guard.look(int64(b.bytes)); errors.Is(err, ErrFull) {
		return err
	} else if err != nil {
		s.fail(err)
		return fmt.Errorf("%w: the store stopped before it: %w", ErrUnknown, err)
	}
	deleted, err := s.commit(b, postponed, &next)
	if err != nil {
		s.fail(err)
		return fmt.Errorf("%w: batch %d: %w", ErrUnknown, next.Batch, err)
	}
	s.mu.Lock()
	s.control = next
	s.deleted += deleted
	if b.load.set {
		s.load = append([]byte(nil), b.load.rec...) // nil when that is empty
	}
	if b.flushed.set {
		s.flush = b.flush
	}
	s.mu.Unlock()
	return nil
}

// commit writes the batch and next, which it brings up to date, and returns how many packets the
// batch deletes or replaces.
func (s *Store) commit(b *Batch, postponed *postponed, next *Control) (deleted uint64, err error) {
	err = s.transact(func(txn *badger.Txn) error {
		// The operations, and what they change in the control record.
		if deleted, err = s.fill(txn, b, next, postponed); err != nil {
			return err
		}
		if postponed != nil {
			if err := txn.Set([]byte(redoKey), appendRedo(nil, postponed.deletes)); err != nil {
				return fmt.Errorf("cannot add the redo record: %w", err)
			}
		}

		next.Epoch = s.epoch
		next.Batch++
		if b.hasMarks {
			next.Marks = b.marks
		}
		return nil
	}, next)
	if err != nil {
		return 0, err
	}
	if postponed != nil {
		if err := s.carryOut(postponed.deletes, next); err != nil {
			return 0, err
		}
	}
	if s.opt.Sync.kind != syncAlways {
		return deleted, nil
	}
	return deleted, s.anchor.write(s.mark(next.Batch))
}

// transact fills a transaction with fn, adds the control record as fn left it, and commits:
// written, then synced if every batch is. No transaction is without a control record, by which
// laterBatch knows that it was there.
func (s *Store) transact(fn func(txn *badger.Txn) error, control *Control) error {
	txn := s.db.NewTransaction(true)
	defer txn.Discard()
	if err := fn(txn); err != nil {
		return err
	}
	s.apply.control = appendControl(s.apply.control[:0], control, s.secret)
	if err := txn.Set([]byte(controlKey), s.apply.control); err != nil {
		return fmt.Errorf("cannot add the control record: %w", err)
	}
	if err := txn.Commit(); err != nil {
		return fmt.Errorf("cannot commit: %w", err)
	}
	if err := s.wal.committed(); err != nil {
		return err
	}
	if s.opt.Sync.kind == syncAlways && !s.badgerSyncs {
		return s.wal.flush()
	}
	return nil
}

// fill adds the batch to a transaction, which keeps references to the keys and values until it has
// committed. Postponed deletes are only counted.
func (s *Store) fill(txn *badger.Txn, b *Batch, next *Control, postponed *postponed) (deleted uint64, err error) {
	a := &s.apply
	a.reset(b.count)
	for i := range b.ops {
		o := &b.ops[i]
		if o.cancelled {
			continue
		}
		if o.kind != OpPut {
			deleted += uint64(1 + o.removed.Stored.count())
		}
		if postponed.has(o) {
			next.count(o)
			continue
		}
		if err := a.packet(txn, o); err != nil {
			return 0, fmt.Errorf("cannot add packet %v to the transaction: %w", o.id, err)
		}
		next.count(o)
	}
	states, err := a.fillStates(txn, b, next, postponed)
	if err != nil {
		return 0, err
	}
	items, err := a.fillItems(txn, b, next)
	if err != nil {
		return 0, err
	}
	uniques, err := a.fillUniques(txn, b, next)
	if err != nil {
		return 0, err
	}
	deleted += states + items + uniques
	if err := errors.Join(b.load.fill(txn, loadKey), b.flushed.fill(txn, flushKey)); err != nil {
		return 0, err
	}
	for id, o := range b.queues {
		a.keys = append(appendQueueKey(a.keys, id), countersKey)
		key := a.key(queueKeyLen + 1)
		if err := errors.Join(a.queue(txn, key[:queueKeyLen:queueKeyLen], o.rec, o.gone), a.queue(txn, key, o.counters, o.gone)); err != nil {
			return 0, fmt.Errorf("cannot add queue %d to the transaction: %w", id, err)
		}
	}
	return deleted, nil
}

// queue adds the definition of a queue, or its counters; nil is neither written nor left if it is
// gone.
func (a *applyState) queue(txn *badger.Txn, key, rec []byte, gone bool) error {
	switch {
	case rec != nil:
		return a.set(txn, key, rec, 0)
	case gone:
		return txn.Delete(key)
	}
	return nil
}

// packet adds one packet, its payload if that has a record of its own, and the delivery state that
// goes with one that goes.
func (a *applyState) packet(txn *badger.Txn, o *batchOp) error {
	if o.removed.Stored != 0 {
		if err := a.deleteStates(txn, o.removed.Identity, o.removed.Stored); err != nil {
			return err
		}
	}
	a.keys = appendPacketKey(a.keys, o.id)
	key := a.key(packetKeyLen)
	var payload []byte
	if o.head != nil || o.removed.Large {
		a.keys = appendPayloadKey(a.keys, o.id)
		payload = a.key(payloadKeyLen)
	}
	switch {
	case o.kind == OpDelete && payload == nil:
		return txn.Delete(key)
	case o.kind == OpDelete:
		return errors.Join(txn.Delete(key), txn.Delete(payload))
	case o.rec == nil:
		return errors.New("its record was not given")
	case payload == nil:
		return a.set(txn, key, o.rec, nativeExpiry(o.expiry))
	case o.head == nil: // it replaces a large packet by one that is not
		return errors.Join(a.set(txn, key, o.rec, nativeExpiry(o.expiry)), txn.Delete(payload))
	default:
		expiry := nativeExpiry(o.expiry)
		return errors.Join(a.set(txn, key, o.head, expiry), a.set(txn, payload, o.payload, expiry))
	}
}

// reset makes room for a batch of n entries, so that nothing moves while the transaction refers to
// it.
func (a *applyState) reset(n int) {
	if cap(a.entries) < n {
		a.entries = make([]badger.Entry, 0, n)
	}
	if cap(a.keys) < n*packetKeyLen {
		a.keys = make([]byte, 0, n*packetKeyLen)
	}
	a.entries, a.keys = a.entries[:0], a.keys[:0]
}

// key returns the last n bytes of keys, which were just appended.
func (a *applyState) key(n int) []byte {
	return a.keys[len(a.keys)-n : len(a.keys) : len(a.keys)]
}

func (a *applyState) set(txn *badger.Txn, key, value []byte, expires uint64) error {
	a.entries = append(a.entries, badger.Entry{Key: key, Value: value, ExpiresAt: expires})
	return txn.SetEntry(&a.entries[len(a.entries)-1])
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
