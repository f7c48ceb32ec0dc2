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
	// Of packets with an expiry, which a Tally does not count. So who has only the entries of a batch
	// knows what they change of its packets.
	entryDeleteUncounted entryKind = 4
	entryOverUncounted   entryKind = 5
)

func (k entryKind) deletes() bool { return k == entryDelete || k == entryDeleteUncounted }

// deleteOf is the kind of a delete of a packet, and overOf that of a put in its place.
func deleteOf(r *Removed) entryKind {
	if r.Expires {
		return entryDeleteUncounted
	}
	return entryDelete
}

func overOf(r *Removed) entryKind {
	if r.Expires {
		return entryOverUncounted
	}
	return entryOver
}

// entry is one of them. Of a delete only the first two fields are set.
type entry struct {
	kind    entryKind
	key     []byte
	expires uint64 // Unix seconds; 0 is never
	value   []byte
	at      int // where the value is in the body
}

// entryBytes is what an entry takes in a table beside its key and value.
const entryBytes = 16

// maxHead is the most that stands in an entry before its value: an expiry that was milliseconds,
// and a length of 32 bits.
const maxHead = 2 + maxKey + 8 + binary.MaxVarintLen32

// appendEntryHead appends what stands before the value.
func appendEntryHead(dst []byte, kind entryKind, key []byte, expires uint64, length int) []byte {
	dst = append(append(dst, byte(kind), byte(len(key))), key...)
	if kind.deletes() {
		return dst
	}
	return binary.AppendUvarint(binary.AppendUvarint(dst, expires), uint64(length))
}

// eachEntry calls fn with the entries of a body, which are valid as long as it. A value may be a
// piece of its own.
func eachEntry(body [][]byte, count uint32, fn func(entry)) error {
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
				return fmt.Errorf("%w: an entry of a batch cannot be read", errDamaged)
			}
			e.at, e.value, piece = at, rest[:length], rest[length:]
			at += int(length)
			fn(e)
		}
	}
	if count != 0 {
		return fmt.Errorf("%w: %d entries of a batch are missing", errDamaged, count)
	}
	return nil
}

// readEntry reads the next one without its value, which is so long.
func readEntry(b []byte) (e entry, length uint64, rest []byte, ok bool) {
	if len(b) < 2 || len(b) < 2+int(b[1]) || b[1] > maxKey {
		return e, 0, nil, false
	}
	e.kind, e.key, rest = entryKind(b[0]), b[2:2+b[1]], b[2+b[1]:]
	switch e.kind {
	case entryDelete, entryDeleteUncounted:
		return e, 0, rest, true
	case entryNew, entryOver, entryOverUncounted:
		var n, m int
		if e.expires, n = binary.Uvarint(rest); n > 0 {
			length, m = binary.Uvarint(rest[n:])
		}
		if m > 0 && length <= math.MaxUint32 {
			return e, length, rest[n+m:], true
		}
	}
	return e, 0, nil, false
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
