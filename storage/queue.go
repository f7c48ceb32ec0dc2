package storage

// Queue is the definition of a queue.
type Queue struct {
	ID   uint32
	Name []byte

	// New says that no definition of ID is on disk, so that taking the queue
	// back in the same batch needs no write. When in doubt leave it false.
	// It is not stored.
	New bool

	// Rest holds the fields that this version does not know, as msgpack
	// (number, value, number, value, …). What Queues returned must be given
	// back to PutQueue, or a newer version's settings are lost.
	Rest []byte
	// RestFields counts the fields in Rest.
	RestFields int
}

const fieldName = 1

func appendQueue(dst []byte, q *Queue) []byte {
	n := 1 + q.RestFields
	if n < 16 {
		dst = append(dst, formFixMap|byte(n))
	} else {
		dst = append(dst, formMap16, byte(n>>8), byte(n))
	}
	dst = append(dst, fieldName)
	dst = appendBin(dst, q.Name)
	return append(dst, q.Rest...)
}

// decodeQueue reads a definition; Name and Rest alias rec.
func decodeQueue(rec []byte, q *Queue) error {
	id := q.ID
	*q = Queue{ID: id}
	r := reader{b: rec}
	n, ok := r.fields()
	if !ok {
		return r.bad("no map of fields")
	}
	for ; n > 0; n-- {
		start := r.pos
		field, ok := r.uint()
		if !ok {
			return r.bad("no field number")
		}
		if field == fieldName {
			if q.Name, ok = r.bin(); !ok || q.RestFields > 0 {
				return r.bad("the name of a queue is not a bin value in the first field")
			}
			continue
		}
		if !r.skip(0) {
			return r.bad("field value cut short or of a wrong form")
		}
		q.Rest = append(q.Rest, rec[start:r.pos]...)
		q.RestFields++
	}
	if !r.end() {
		return r.bad("bytes after the last field")
	}
	if q.Name == nil {
		return r.bad("a queue without a name")
	}
	return nil
}
