package storage

import (
	"fmt"

	"github.com/dgraph-io/badger/v4"
)

// Flush is the record by which everything there is goes at once: what is numbered below is dropped,
// and is deleted little by little. The zero value drops nothing.
type Flush struct {
	Keys   uint64 // heads with a lower ID, and their fields
	Queues uint32 // queues with a lower ID
}

// Drops reports whether a head, or the hash of a field, is dropped.
func (f Flush) Drops(id uint64) bool { return id < f.Keys }

// DropsQueue reports whether a queue is dropped, by itself or by f.
func (f Flush) DropsQueue(q *Queue) bool { return q.Dropped || q.ID < f.Queues }

// SetFlush writes the flush record with this batch; the zero value removes it. Within one batch the
// last call wins.
func (b *Batch) SetFlush(f Flush) {
	if b.hasFlush {
		b.count--
		b.bytes -= flushBytes
	}
	b.flush, b.hasFlush = f, true
	b.count++
	b.bytes += flushBytes
}

// flushBytes is at least what the record takes.
const flushBytes = len(flushKey) + 20 + opBytes

// Flush returns the flush record of the last batch applied, or of the store as it was opened.
func (s *Store) Flush() Flush {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.flush
}

// fillFlush adds the flush record to a transaction.
func (b *Batch) fillFlush(txn *badger.Txn) (err error) {
	switch {
	case !b.hasFlush:
		return nil
	case b.flush == Flush{}:
		err = txn.Delete([]byte(flushKey))
	default:
		err = txn.Set([]byte(flushKey), appendFlush(nil, b.flush))
	}
	if err != nil {
		return fmt.Errorf("cannot add the flush record to the transaction: %w", err)
	}
	return nil
}

// readFlush reads the flush record when the store is opened.
func (s *Store) readFlush() error {
	return s.db.View(func(txn *badger.Txn) (err error) {
		s.flush, err = flushOf(txn)
		return err
	})
}

// flushOf reads the flush record, the zero value when there is none. The error wraps ErrDamaged.
func flushOf(txn *badger.Txn) (f Flush, err error) {
	err = readKey(txn, flushKey, func(rec []byte) (err error) {
		f, err = decodeFlush(rec)
		return err
	})
	if err != nil {
		return Flush{}, fmt.Errorf("%w: cannot read the flush record: %w", ErrDamaged, err)
	}
	return f, nil
}

func appendFlush(dst []byte, f Flush) []byte {
	return appendNumbers(dst, 2, false, f.Keys, uint64(f.Queues))
}

func decodeFlush(rec []byte) (f Flush, err error) {
	var queues uint64
	_, err = decodeNumbers(rec, &f.Keys, &queues)
	f.Queues = uint32(queues)
	return f, err
}
