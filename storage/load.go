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

// readLoad reads the load record when the store is opened.
func (s *Store) readLoad() error {
	err := s.db.View(func(txn *badger.Txn) (err error) {
		s.load, err = loadOf(txn)
		return err
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
