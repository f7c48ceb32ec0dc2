package storage

import (
	"encoding/binary"
	"fmt"
	"math"
)

// The entries of a batch stand in its record of the journal one behind the other, each
//
//	kind u8 | length of the key u8 | key
//	of a put also: native expiry uvarint, in Unix seconds | length uvarint | value
//
// There is one more for each large value, which has a key of its own.

type entryKind uint8

const (
	entryNew    entryKind = 1 // a put; nothing in the store has this key
	entryOver   entryKind = 2 // a put; something may have it
	entryDelete entryKind = 3
)

// entry is one of them. Of a delete only the first two fields are set.
type entry struct {
	kind    entryKind
	key     []byte
	expires uint64 // Unix seconds; 0 is never
	value   []byte
	at      int // where the value is in the body
}

// entries gathers those of one batch.
type entries struct {
	body  []byte
	count uint32
}

func (e *entries) reset() { e.body, e.count = e.body[:0], 0 }

// put adds the entry of a key. There is none with that key in the store, unless over.
func (e *entries) put(key, value []byte, expires uint64, over bool) {
	kind := entryNew
	if over {
		kind = entryOver
	}
	e.key(kind, key)
	e.body = binary.AppendUvarint(e.body, expires)
	e.body = binary.AppendUvarint(e.body, uint64(len(value)))
	e.body = append(e.body, value...)
}

func (e *entries) delete(key []byte) { e.key(entryDelete, key) }

func (e *entries) key(kind entryKind, key []byte) {
	e.count++
	e.body = append(append(e.body, byte(kind), byte(len(key))), key...)
}

// eachEntry calls fn with the entries of a body, which are valid as long as it.
func eachEntry(body []byte, count uint32, fn func(entry)) error {
	r := reader{b: body}
	for range count {
		e, ok := r.entry()
		if !ok {
			return fmt.Errorf("%w: an entry of a batch cannot be read", ErrDamaged)
		}
		fn(e)
	}
	if r.pos != len(body) {
		return fmt.Errorf("%w: %d bytes are left behind the entries of a batch", ErrDamaged, len(body)-r.pos)
	}
	return nil
}

// entry reads the next one.
func (r *reader) entry() (e entry, ok bool) {
	rest := r.b[r.pos:]
	if len(rest) < 2 || len(rest) < 2+int(rest[1]) || rest[1] > maxKey {
		return e, false
	}
	e.kind, e.key = entryKind(rest[0]), rest[2:2+int(rest[1])]
	at := 2 + len(e.key)
	switch e.kind {
	case entryDelete:
	case entryNew, entryOver:
		var size uint64
		for _, number := range []*uint64{&e.expires, &size} {
			v, n := binary.Uvarint(rest[at:])
			if n <= 0 {
				return e, false
			}
			*number = v
			at += n
		}
		if size > math.MaxUint32 || uint64(len(rest)-at) < size {
			return e, false
		}
		e.at, e.value = r.pos+at, rest[at:at+int(size)]
		at += int(size)
	default:
		return e, false
	}
	r.pos += at
	return e, true
}
