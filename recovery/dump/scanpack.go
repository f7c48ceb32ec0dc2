package dump

import (
	"encoding/binary"
	"math"
)

// The first bytes of msgpack values, by the names of its specification.
const (
	packFixMap = 0x80
	packFixArr = 0x90
	packFixStr = 0xa0
	packNil    = 0xc0
	packNever  = 0xc1
	packBin8   = 0xc4
	packExt8   = 0xc7
	packFloat  = 0xca
	packUint8  = 0xcc
	packUint64 = 0xcf
	packInt8   = 0xd0
	packInt64  = 0xd3
	packFixExt = 0xd4
	packStr8   = 0xd9
	packArr16  = 0xdc
	packMap16  = 0xde
	packNegInt = 0xe0
)

// unpacker reads msgpack values. Its methods return false when the bytes are not what was asked for
// or end too early; they take no memory.
type unpacker struct {
	b   []byte
	pos int
}

func (u *unpacker) code() (byte, bool) {
	if u.pos >= len(u.b) {
		return 0, false
	}
	c := u.b[u.pos]
	u.pos++
	return c, true
}

// number reads an unsigned number of n bytes: 1, 2, 4 or 8.
func (u *unpacker) number(n int) (uint64, bool) {
	if len(u.b)-u.pos < n {
		return 0, false
	}
	b := u.b[u.pos : u.pos+n]
	u.pos += n
	switch n {
	case 1:
		return uint64(b[0]), true
	case 2:
		return uint64(binary.BigEndian.Uint16(b)), true
	case 4:
		return uint64(binary.BigEndian.Uint32(b)), true
	}
	return binary.BigEndian.Uint64(b), true
}

// int reads any whole number that fits.
func (u *unpacker) int() (int64, bool) {
	c, ok := u.code()
	switch {
	case !ok:
		return 0, false
	case c < packFixMap || c >= packNegInt:
		return int64(int8(c)), true
	case c >= packUint8 && c <= packUint64:
		v, ok := u.number(1 << (c - packUint8))
		return int64(v), ok && v <= math.MaxInt64
	case c >= packInt8 && c <= packInt64:
		size := c - packInt8
		v, ok := u.number(1 << size)
		shift := 64 - 8<<size
		return int64(v<<shift) >> shift, ok
	}
	return 0, false
}

// uint reads any whole number from 0 on.
func (u *unpacker) uint() (uint64, bool) {
	if u.pos < len(u.b) && u.b[u.pos] == packUint64 {
		u.pos++
		return u.number(8)
	}
	v, ok := u.int()
	return uint64(v), ok && v >= 0
}

// bytes reads a bin or a str.
func (u *unpacker) bytes() ([]byte, bool) {
	c, ok := u.code()
	if !ok {
		return nil, false
	}
	var n uint64
	switch {
	case c >= packFixStr && c < packNil:
		n = uint64(c & 0x1f)
	case c >= packBin8 && c < packExt8:
		n, ok = u.number(1 << (c - packBin8))
	case c >= packStr8 && c < packArr16:
		n, ok = u.number(1 << (c - packStr8))
	default:
		return nil, false
	}
	if !ok || n > uint64(len(u.b)-u.pos) {
		return nil, false
	}
	b := u.b[u.pos : u.pos+int(n) : u.pos+int(n)]
	u.pos += int(n)
	return b, true
}

// fields reads the number of fields of a map.
func (u *unpacker) fields() (uint64, bool) { return u.count(packFixMap, packMap16) }

// array reads the number of elements of an array.
func (u *unpacker) array() (uint64, bool) { return u.count(packFixArr, packArr16) }

func (u *unpacker) count(fix, long byte) (uint64, bool) {
	c, ok := u.code()
	switch {
	case !ok:
		return 0, false
	case c&0xf0 == fix:
		return uint64(c & 0x0f), true
	case c == long || c == long+1:
		return u.number(2 << (c - long))
	}
	return 0, false
}

// isMap reports whether a value that begins with c is a map.
func isMap(c byte) bool { return c&0xf0 == packFixMap || c == packMap16 || c == packMap16+1 }

// step is how a value was passed.
type step uint8

const (
	passed step = iota
	cutShort
	malformed
)

// skip passes one value, whatever lies in it. It counts what is still to pass instead of calling
// itself, so no depth is too much for it.
func (u *unpacker) skip() step {
	for left := uint64(1); left > 0; left-- {
		c, ok := u.code()
		if !ok {
			return cutShort
		}
		length, inside, s := u.extent(c)
		if s != passed {
			return s
		}
		if length > uint64(len(u.b)-u.pos) {
			return cutShort
		}
		u.pos += int(length)
		left += inside
	}
	return passed
}

// extent returns how many bytes, and how many values, follow the head of a value; it passes the head.
func (u *unpacker) extent(c byte) (length, inside uint64, s step) {
	ok := true
	switch {
	case c == packNever:
		return 0, 0, malformed
	case c < packFixMap || c >= packNegInt || c >= packNil && c < packBin8:
	case c < packFixArr:
		inside = 2 * uint64(c&0x0f)
	case c < packFixStr:
		inside = uint64(c & 0x0f)
	case c < packNil:
		length = uint64(c & 0x1f)
	case c < packExt8:
		length, ok = u.number(1 << (c - packBin8))
	case c < packFloat:
		length, ok = u.number(1 << (c - packExt8))
		length++
	case c < packUint8:
		length = 4 << (c - packFloat)
	case c < packInt8:
		length = 1 << (c - packUint8)
	case c < packFixExt:
		length = 1 << (c - packInt8)
	case c < packStr8:
		length = 1<<(c-packFixExt) + 1
	case c < packArr16:
		length, ok = u.number(1 << (c - packStr8))
	case c < packMap16:
		inside, ok = u.number(2 << (c - packArr16))
	default:
		inside, ok = u.number(2 << (c - packMap16))
		inside *= 2
	}
	if !ok {
		return 0, 0, cutShort
	}
	return length, inside, passed
}
