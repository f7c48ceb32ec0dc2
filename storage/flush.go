package storage

import (
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
	var rec []byte
	if f != (Flush{}) {
		rec = appendFlush(nil, f)
	}
	b.flush = f
	b.setOnly(&b.flushed, flushKey, rec)
}

// Flush returns the flush record of the last batch applied, or of the store as it was opened.
func (s *Store) Flush() Flush {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.flush
}

// flushOf reads the flush record, the zero value when there is none. The error wraps ErrDamaged.
func flushOf(txn *badger.Txn) (f Flush, err error) {
	err = readKey(txn, flushKey, func(rec []byte) (err error) {
		f, err = decodeFlush(rec)
		return err
	})
	return f, err
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
