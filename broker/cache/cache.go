// Package cache keeps the records of recently pushed and read-ahead packets in one ring of bytes,
// where the newest overwrite the oldest. The index entry of a packet holds its place in the ring (a
// ref), so a lookup is one read. All of it is also in the store or in a batch on its way there: a
// record that is overwritten costs a read from disk, no more.
//
//	record: tag u64 | length u32 | bytes, beginning at a multiple of 16
//
// The ring is written upwards, so a record's head is overwritten before its bytes are: an intact
// tag proves an intact record. The tag is a keyed hash of place and sequence: bytes that a client
// chose can never pass for a record's head, whatever place an outdated ref names.
package cache

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
)

// Cache is the ring.
type Cache struct {
	ring []byte    // length is a power of two
	head uint64    // where the next record begins, counted from the first ever written
	key  [2]uint64 // of tags
}

const (
	unit   = 16 // a ref counts units, so that 32 bits reach 64 GiB
	header = 12
)

// New makes a cache of size bytes, rounded up to a power of two from 64 KiB to 32 GiB.
func New(size int64) *Cache {
	size = max(size, 1<<16)
	size = min(size, 1<<35)
	ring := 1 << bits.Len64(uint64(size-1))
	return &Cache{ring: make([]byte, ring), head: unit, key: [2]uint64{rand.Uint64(), rand.Uint64()}}
}

// Size is the bytes of the ring.
func (c *Cache) Size() int { return len(c.ring) }

// Add stores a copy of record and returns its ref, or 0 if it is too long to be worth keeping.
func (c *Cache) Add(seq uint64, record []byte) uint32 {
	need := (header + len(record) + unit - 1) &^ (unit - 1)
	if need > len(c.ring)/8 {
		return 0
	}
	at := int(c.head) & (len(c.ring) - 1)
	if at+need > len(c.ring) {
		c.head += uint64(len(c.ring) - at)
		at = 0
	}
	ref := uint32(c.head / unit)
	if ref == 0 { // 0 says "not cached"
		c.head += unit
		return c.Add(seq, record)
	}
	binary.LittleEndian.PutUint64(c.ring[at:], c.tag(ref, seq))
	binary.LittleEndian.PutUint32(c.ring[at+8:], uint32(len(record)))
	end := at + header + copy(c.ring[at+header:], record)
	clear(c.ring[end : at+need]) // else chance might make an older head there whole that lost only a byte
	c.head += uint64(need)
	return ref
}

// Get returns the record at ref, or nil if it was overwritten. The bytes are valid until the
// next Add.
func (c *Cache) Get(ref uint32, seq uint64) []byte {
	if ref == 0 || uint32(c.head/unit)-ref > uint32(len(c.ring)/unit) { // it is older than the ring is long
		return nil
	}
	at := int(uint64(ref)*unit) & (len(c.ring) - 1)
	if at+header > len(c.ring) || binary.LittleEndian.Uint64(c.ring[at:]) != c.tag(ref, seq) {
		return nil
	}
	n := int(binary.LittleEndian.Uint32(c.ring[at+8:]))
	return c.ring[at+header : at+header+n : at+header+n]
}

// tag is a product of 128 bits, whose halves are folded: without the keys nobody can tell it.
func (c *Cache) tag(ref uint32, seq uint64) uint64 {
	hi, lo := bits.Mul64(seq^c.key[0], uint64(ref)^c.key[1])
	return hi ^ lo
}
