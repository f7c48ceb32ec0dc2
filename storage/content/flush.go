package content

// Databases is how many there are: each is a space of names of its own.
const Databases = 16

// FullName tells a name of a database from all others.
func FullName(db uint8, name []byte) string { return string(append([]byte{db}, name...)) }

// Flush is the record by which all that databases hold goes at once: what is numbered below is
// dropped, and is deleted little by little. It has a mark for each database. The zero value drops
// nothing.
type Flush [Databases]FlushMark

// FlushMark says what a Flush drops of one database.
type FlushMark struct {
	Keys   uint64 // heads with a lower ID, and their fields
	Queues uint32 // queues with a lower ID
}

// Drops reports whether a head is dropped.
func (f *Flush) Drops(h *Head) bool { return h.ID < f[h.Database].Keys }

// DropsQueue reports whether a queue is dropped, by itself or by f.
func (f *Flush) DropsQueue(q *Queue) bool { return q.Dropped || q.ID < f[q.Database].Queues }

const fieldFlushMarks = 3 // Flush

// SetFlush writes the flush record with this batch; the zero value removes it. Within one batch the
// last call wins.
func (b *Batch) SetFlush(f Flush) {
	if f == (Flush{}) {
		b.deleteKey([]byte(FlushKey), known{stored: true})
		return
	}
	b.putKey([]byte(FlushKey), known{stored: true}, AppendFlush(nil, f), 0)
}

// Flush returns what SetFlush wrote; set is false if it was not called.
func (b *Batch) Flush() (f Flush, set bool) {
	e := b.find([]byte(FlushKey))
	if e != nil && e.puts() {
		f, _ = DecodeFlush(e.value()) // as it was encoded
	}
	return f, e != nil
}

// AppendFlush appends the record of f to dst.
func AppendFlush(dst []byte, f Flush) []byte {
	w := newWriter(dst)
	w.b = appendArray(w.field(fieldFlushMarks), len(f))
	for _, mark := range f {
		w.b = appendUint(appendUint(appendArray(w.b, 2), mark.Keys), uint64(mark.Queues))
	}
	return w.end()
}

// DecodeFlush reads a record. The error wraps ErrRecord.
func DecodeFlush(rec []byte) (f Flush, err error) {
	r := reader{b: rec}
	for r.next() {
		switch r.field {
		case fieldFlushMarks:
			r.check(r.array() == len(f))
			for db := range f {
				r.check(r.array() == 2)
				f[db] = FlushMark{r.uint(), r.uint32()}
			}
		default:
			r.skip(0)
		}
	}
	return f, r.err()
}
