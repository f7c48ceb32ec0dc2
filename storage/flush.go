package storage

import (
	"errors"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/holdfast-queue/holdfast/storage/tables"
)

// Databases is how many there are: each is a space of names of its own.
const Databases = 16

// FullName tells a name of a database from all others.
func FullName(db uint8, name []byte) string { return string(append([]byte{db}, name...)) }

// Flush is the record by which all that databases hold goes at once: what is numbered below is
// dropped, and is deleted little by little. It has a mark for each database. The zero value drops
// nothing.
type Flush [Databases]FlushMark

// FlushMark is what a Flush drops of one database.
type FlushMark struct {
	Keys   uint64 // heads with a lower ID, and their fields
	Queues uint32 // queues with a lower ID
}

// Drops reports whether a head is dropped.
func (f *Flush) Drops(h *Head) bool { return h.ID < f[h.Database].Keys }

// DropsQueue reports whether a queue is dropped, by itself or by f.
func (f *Flush) DropsQueue(q *Queue) bool { return q.Dropped || q.ID < f[q.Database].Queues }

// Fields 1 and 2 are the mark of all databases in a store of format 4 or older.
const (
	fieldFlushKeys   = 1
	fieldFlushQueues = 2
	fieldFlushMarks  = 3 // Flush
)

// SetFlush writes the flush record with this batch; the zero value removes it. Within one batch the
// last call wins.
func (b *Batch) SetFlush(f Flush) {
	var rec []byte
	if f != (Flush{}) {
		rec = appendFlush(nil, f)
	}
	b.setOnly(flushKey, rec)
}

// Flush returns the flush record of the last batch applied, or of the store as it was opened.
func (s *Store) Flush() Flush {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.flush
}

// flushOf reads the flush record, the zero value when there is none. The error wraps ErrDamaged.
func flushOf(v *tables.View) (f Flush, err error) {
	err = readKey(v, flushKey, func(rec []byte) (err error) {
		f, err = decodeFlush(rec)
		return err
	})
	return f, err
}

func appendFlush(dst []byte, f Flush) []byte {
	return appendMap(dst, 1, func(e *msgpack.Encoder) error {
		e.UseArrayEncodedStructs(true)
		return errors.Join(e.EncodeUint(fieldFlushMarks), e.Encode(&f))
	})
}

func decodeFlush(rec []byte) (f Flush, err error) {
	var all FlushMark
	err = eachField(rec, func(field uint64, d *msgpack.Decoder) (err error) {
		switch field {
		case fieldFlushKeys:
			all.Keys, err = d.DecodeUint64()
		case fieldFlushQueues:
			all.Queues, err = d.DecodeUint32()
		case fieldFlushMarks:
			err = d.Decode(&f)
		default:
			err = d.Skip()
		}
		return err
	})
	for db := range f {
		if all != (FlushMark{}) {
			f[db] = all
		}
	}
	return f, err
}
