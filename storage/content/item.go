package content

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
	Rest      Rest
}

// Expired reports whether the time of a string or hash has passed at now, as Packet.Expired does.
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
	Rest      Rest
}

// Mark tells a batch about the head or field that was in the store before it. The zero value says
// that there was none.
type Mark struct {
	Version uint64
	Large   bool // its value has a record of its own
	Size    int  // of its value, in bytes; 0 also where that is not known
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

// Item holds the record of a head or of a field.
type Item struct {
	Kind     Kind // 0: a field
	Database uint8
	Name     []byte
	Version  uint64
	Expiry   int64
	Value    []byte // where it is not large
	Size     uint64 // of a large value
	Large    bool
	Rest     Rest
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

// AppendItem appends the record of an item; a value that is not large is at its end.
func AppendItem(dst []byte, i *Item) []byte {
	w := newWriter(dst)
	w.uint(itemKind, uint64(i.Kind))
	w.bin(itemName, i.Name)
	w.uint(itemVersion, i.Version)
	w.int(itemExpiry, i.Expiry)
	w.uint(itemDatabase, uint64(i.Database))
	w.rest(i.Rest)
	if i.Large {
		w.b = appendUint(w.field(itemSize), i.Size)
	} else if len(i.Value) > 0 {
		w.bin(itemValue, i.Value)
	}
	return w.end()
}

// DecodeItem reads a record into i. What is bytes aliases it. The error wraps ErrRecord.
func DecodeItem(rec []byte, i *Item) error {
	*i = Item{Value: []byte{}}
	r := reader{b: rec}
	for r.next() {
		switch r.field {
		case itemKind:
			v := r.uint()
			r.check(v > 0 && v < 256)
			i.Kind = Kind(v)
		case itemName:
			i.Name = r.bin()
		case itemVersion:
			i.Version = r.uint()
		case itemExpiry:
			i.Expiry = r.int()
		case itemValue:
			i.Value = r.bin()
		case itemDatabase:
			i.Database = r.database()
		case itemSize:
			i.Size, i.Large = r.uint(), true
			r.check(i.Size < 1<<32)
		default:
			r.keep(&i.Rest)
		}
	}
	r.check(i.Name != nil && i.Version != 0)
	if i.Large {
		i.Value = nil
	}
	return r.err()
}

// database reads the number of one.
func (r *reader) database() uint8 {
	v := r.uint()
	r.check(v < Databases)
	return uint8(v)
}

// Bytes is the length of the value.
func (i *Item) Len() int {
	if i.Large {
		return int(i.Size)
	}
	return len(i.Value)
}

// ItemHash is one item's share of Tally.KeyHash.
func ItemHash(v ValueID, version uint64) uint64 {
	return xxhash.Sum64(binary.BigEndian.AppendUint64(AppendItemKey(make([]byte, 0, 32), v), version))
}
