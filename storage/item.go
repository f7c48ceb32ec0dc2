package storage

import (
	"encoding/binary"
	"fmt"

	"github.com/cespare/xxhash/v2"
)

// An item is a head or a field. A string is a head with a value. A hash is a head, and a field for
// each of its fields. A large value (IsLarge) has a record of its own, which nothing but ReadValues
// looks at.

// Kind says what a head is.
type Kind uint8

// The kinds.
const (
	String Kind = 1
	Hash   Kind = 2
)

// Head is a string, or a hash without its fields.
type Head struct {
	ID       uint64 // no two heads of a store have the same, and none is 0
	Kind     Kind
	Database uint8
	Name     []byte
	Version  uint64 // another one for each content; not 0
	Expiry   int64  // Unix milliseconds, 0 is none
	Value    []byte // of a string; nil: large and not at hand
	Size     int    // of the value in bytes, where Value is nil
	// KeepValue says to PutHead that the large value on disk, or what the batch puts there, stays.
	KeepValue bool
}

// Expired reports whether the time of a string or hash has passed at now, as that of a Packet.
func (h *Head) Expired(now int64) bool { return h.Expiry != 0 && h.Expiry <= now }

// Field is a field of a hash.
type Field struct {
	Hash      uint64 // ID of the head
	ID        uint64 // no two fields of a hash have the same
	Name      []byte
	Version   uint64 // another one for each value; not 0
	Value     []byte // nil: large and not at hand
	Size      int    // of the value in bytes, where Value is nil
	KeepValue bool   // as of Head
}

// Mark is what a batch must know of the head or field that was in the store before it. The zero
// value says that there was none.
type Mark struct {
	Version uint64
	Large   bool // its value has a record of its own
}

// ValueID names a head or a field, and the value of it.
type ValueID struct {
	ID      uint64 // of the head
	Field   uint64
	IsField bool
}

// String names the item as every error and finding does.
func (v ValueID) String() string {
	if v.IsField {
		return fmt.Sprintf("field %d of hash %d", v.Field, v.ID)
	}
	return fmt.Sprintf("head %d", v.ID)
}

// item is what the record of a head or of a field holds.
type item struct {
	kind    Kind // 0: a field
	db      uint8
	name    []byte
	version uint64
	expiry  int64
	value   []byte // where it is not large
	size    uint64 // of a large value
	large   bool
}

// A record is one msgpack map with small integers for names, the value last. A field without a
// value is left out.
const (
	itemKind     = 1
	itemName     = 2
	itemVersion  = 3
	itemExpiry   = 4
	itemValue    = 5
	itemSize     = 6 // in place of 5: the value has a record of its own
	itemDatabase = 7 // of a head; left out where it is 0
)

// itemRoom is at least what a record takes besides name and value.
const itemRoom = 48

// appendItem appends the record of an item; a value that is not large is at its end.
func appendItem(dst []byte, i *item) []byte {
	start := len(dst)
	n := byte(2)
	dst = append(dst, formFixMap)
	if i.kind != 0 {
		n++
		dst = append(dst, itemKind, byte(i.kind))
	}
	dst = appendBin(append(dst, itemName), i.name)
	dst = appendUint(append(dst, itemVersion), i.version)
	if i.expiry != 0 {
		n++
		dst = appendInt(append(dst, itemExpiry), i.expiry)
	}
	if i.db != 0 {
		n++
		dst = append(dst, itemDatabase, i.db)
	}
	switch {
	case i.large:
		n++
		dst = appendUint(append(dst, itemSize), i.size)
	case len(i.value) > 0:
		n++
		dst = appendBin(append(dst, itemValue), i.value)
	}
	dst[start] |= n
	return dst
}

// decodeItem reads a record into i. What is bytes aliases it. Fields of later versions are skipped.
// The error wraps ErrRecord.
func decodeItem(rec []byte, i *item) error {
	*i = item{value: []byte{}}
	r := reader{b: rec}
	err := r.eachField(func(field uint64, _ int) (ok bool) {
		var v uint64
		switch field {
		case itemKind:
			v, ok = r.uint()
			i.kind, ok = Kind(v), ok && v > 0 && v < 256
		case itemName:
			i.name, ok = r.bin()
		case itemVersion:
			i.version, ok = r.uint()
		case itemExpiry:
			i.expiry, ok = r.int()
		case itemValue:
			i.value, ok = r.bin()
		case itemDatabase:
			v, ok = r.uint()
			i.db, ok = uint8(v), ok && v < Databases
		case itemSize:
			i.size, ok = r.uint()
			i.large, ok = true, ok && i.size < 1<<32
		default:
			ok = r.skip(0)
		}
		return ok
	})
	switch {
	case err != nil:
		return err
	case i.name == nil || i.version == 0:
		return r.bad("no name or no version")
	}
	if i.large {
		i.value = nil
	}
	return nil
}

// bytes is the length of the value.
func (i *item) bytes() int {
	if i.large {
		return int(i.size)
	}
	return len(i.value)
}

// ItemHash is one item's share of Tally.KeyHash.
func ItemHash(v ValueID, version uint64) uint64 {
	return xxhash.Sum64(binary.BigEndian.AppendUint64(appendItemKey(make([]byte, 0, 32), v), version))
}
