package storage

import (
	"bytes"
	"fmt"

	"github.com/dgraph-io/badger/v4"
)

// The load record says how far a load into the store has come. It is written by the batches of the
// load, in one transaction with their packets, so that a load cut short can go on where it was.
// While it is there the store holds a part of something, and Open refuses it. What is in it is the
// business of whoever loads; here it is bytes.
//
// The loaded record says what was loaded last. The batch that ends a load writes it, and the next
// batch of anything else removes it, each in its own transaction: while it is there, the store
// holds that load and nothing was done since. Who is not told that a load has ended, because the
// process was, finds it there and does not load the same again.

// SetLoad writes the load record with this batch, copying rec; nil or empty removes it. Within one
// batch the last call wins.
func (b *Batch) SetLoad(rec []byte) {
	if b.hasLoad {
		b.count--
		b.bytes -= loadBytes(b.load)
	}
	copied := append(b.grow(len(rec)), rec...)
	b.keep(len(copied))
	b.load, b.hasLoad = copied[:len(copied):len(copied)], true
	b.count++
	b.bytes += loadBytes(b.load)
}

// Load returns the load record of the last batch applied, or of the store as it was opened; nil
// when there is none. The caller does not change it.
func (s *Store) Load() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.load
}

// SetLoaded writes the loaded record with this batch, copying rec, which is not empty. Within one
// batch the last call wins.
func (b *Batch) SetLoaded(rec []byte) {
	if b.loaded != nil {
		b.count--
		b.bytes -= loadedBytes(b.loaded)
	}
	copied := append(b.grow(len(rec)), rec...)
	b.keep(len(copied))
	b.loaded = copied[:len(copied):len(copied)]
	b.count++
	b.bytes += loadedBytes(b.loaded)
}

// Loaded returns the loaded record, nil when a batch was applied since the last load, or there was
// none. The caller does not change it.
func (s *Store) Loaded() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.loaded
}

// fillLoaded adds the loaded record to a transaction, or removes the one that was true until now.
// commitMu is held.
func (s *Store) fillLoaded(txn *badger.Txn, b *Batch) (err error) {
	switch {
	case b.loaded != nil:
		err = txn.Set([]byte(loadedKey), b.loaded)
	case b.count > 0 && s.loaded != nil:
		err = txn.Delete([]byte(loadedKey)) // its room is kept apart, as that of the control record
	}
	if err != nil {
		return fmt.Errorf("cannot add the loaded record to the transaction: %w", err)
	}
	return nil
}

// fillLoad adds the load record to a transaction.
func (b *Batch) fillLoad(txn *badger.Txn) (err error) {
	switch {
	case !b.hasLoad:
		return nil
	case len(b.load) == 0:
		err = txn.Delete([]byte(loadKey))
	default:
		err = txn.Set([]byte(loadKey), b.load)
	}
	if err != nil {
		return fmt.Errorf("cannot add the load record to the transaction: %w", err)
	}
	return nil
}

// readLoad reads the load record and the loaded record when the store is opened.
func (s *Store) readLoad() error {
	err := s.db.View(func(txn *badger.Txn) (err error) {
		if s.load, err = loadOf(txn); err != nil {
			return err
		}
		err = readKey(txn, loadedKey, func(b []byte) error {
			s.loaded = bytes.Clone(b)
			return nil
		})
		if err != nil {
			return fmt.Errorf("%w: cannot read the loaded record: %w", ErrDamaged, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if s.load != nil && !s.opt.Unfinished {
		return fmt.Errorf("%w: %s", ErrLoadUnfinished, s.folder.path)
	}
	return nil
}

// loadOf reads the load record, nil when there is none. The error wraps ErrDamaged.
func loadOf(txn *badger.Txn) (rec []byte, err error) {
	err = readKey(txn, loadKey, func(b []byte) error {
		rec = bytes.Clone(b)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%w: cannot read the load record: %w", ErrDamaged, err)
	}
	return rec, nil
}

func loadBytes(rec []byte) int { return len(loadKey) + len(rec) + opBytes }

func loadedBytes(rec []byte) int { return len(loadedKey) + len(rec) + opBytes }
