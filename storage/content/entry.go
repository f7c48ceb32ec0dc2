package content

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

// EntryKind says what an entry does.
type EntryKind uint8

// The kinds.
const (
	EntryNew    EntryKind = 1 // a put; nothing in the store has this key
	EntryOver   EntryKind = 2 // a put; something may have it
	EntryDelete EntryKind = 3
	// Of packets with an expiry, which a Tally does not count. So who has only the entries of a batch
	// knows what they change of its packets.
	EntryDeleteUncounted EntryKind = 4
	EntryOverUncounted   EntryKind = 5
)

// Deletes reports whether an entry of the kind has no value.
func (k EntryKind) Deletes() bool { return k == EntryDelete || k == EntryDeleteUncounted }

// deleteOf returns the kind of an entry that deletes a packet, and overOf of one that puts another
// in its place.
func deleteOf(r *Removed) EntryKind {
	if r.Expires {
		return EntryDeleteUncounted
	}
	return EntryDelete
}

func overOf(r *Removed) EntryKind {
	if r.Expires {
		return EntryOverUncounted
	}
	return EntryOver
}

// Entry is one of them. Of a delete only the first two fields are set.
type Entry struct {
	Kind    EntryKind
	Key     []byte
	Expires uint64 // Unix seconds; 0 is never
	Value   []byte
	At      int // where the value is in the body
}

// EntryBytes is the room that an entry takes in a table beside its key and value.
const EntryBytes = 16

// maxHead is the most that stands in an entry before its value: an expiry that was milliseconds,
// and a length of 32 bits.
const maxHead = 2 + MaxKey + 8 + binary.MaxVarintLen32

// AppendEntryHead appends what stands before the value.
func AppendEntryHead(dst []byte, kind EntryKind, key []byte, expires uint64, length int) []byte {
	dst = append(append(dst, byte(kind), byte(len(key))), key...)
	if kind.Deletes() {
		return dst
	}
	return binary.AppendUvarint(binary.AppendUvarint(dst, expires), uint64(length))
}

// EachEntry calls fn with the entries of a body, which are valid as long as it. A value may be a
// piece of its own.
func EachEntry(body [][]byte, count uint32, fn func(Entry)) error {
	at := 0
	for i := 0; i < len(body); i++ {
		for piece := body[i]; len(piece) > 0; count-- {
			e, length, rest, ok := readEntry(piece)
			at += len(piece) - len(rest)
			if length > 0 && len(rest) == 0 && i+1 < len(body) {
				i++
				rest = body[i]
			}
			if !ok || count == 0 || uint64(len(rest)) < length {
				return fmt.Errorf("%w: an entry of a batch cannot be read", ErrDamaged)
			}
			e.At, e.Value, piece = at, rest[:length], rest[length:]
			at += int(length)
			fn(e)
		}
	}
	if count != 0 {
		return fmt.Errorf("%w: %d entries of a batch are missing", ErrDamaged, count)
	}
	return nil
}

// readEntry reads the next one without its value, which is so long.
func readEntry(b []byte) (e Entry, length uint64, rest []byte, ok bool) {
	if len(b) < 2 || len(b) < 2+int(b[1]) || b[1] > MaxKey {
		return e, 0, nil, false
	}
	e.Kind, e.Key, rest = EntryKind(b[0]), b[2:2+b[1]], b[2+b[1]:]
	switch e.Kind {
	case EntryDelete, EntryDeleteUncounted:
		return e, 0, rest, true
	case EntryNew, EntryOver, EntryOverUncounted:
		var n, m int
		if e.Expires, n = binary.Uvarint(rest); n > 0 {
			length, m = binary.Uvarint(rest[n:])
		}
		if m > 0 && length <= math.MaxUint32 {
			return e, length, rest[n+m:], true
		}
	}
	return e, 0, nil, false
}

// ttlSlackSeconds is added to the native expiry of Badger, which has whole seconds and the wall
// clock of the machine. Only Compact, and other programs, go by it.
const ttlSlackSeconds = 300

// NativeExpiry returns the second after which Badger may drop a packet.
func NativeExpiry(ms int64) uint64 {
	if ms <= 0 {
		return 0
	}
	return uint64(ms-1)/1000 + 1 + ttlSlackSeconds
}
