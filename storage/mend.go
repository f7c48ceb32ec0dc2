package storage

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"
)

// A CRC is linear: what a wrong byte does to it depends on the byte's
// difference and on how many bytes follow, and on nothing else. So the
// difference between the checksum stored and the one computed, taken back
// byte by byte from the end, says at which place one wrong byte would explain
// it. That is found in one step per byte.
//
// Damage of more bytes looks like one wrong byte by chance, once in 2^32 over
// the number of places and differences tried. The bounds keep that below one
// in a thousand; what is mended is never more than a salvage, and a finding
// says so.
const (
	mendAnyByte = 16 << 10 // longest data of which any one byte may be wrong
	mendOneBit  = 4 << 20  // longest data of which one bit may be
)

// mendByte finds the place and the difference of the one wrong byte that
// makes the checksum of data other than sum.
func mendByte(data []byte, sum uint32) (at int, diff byte, ok bool) {
	table := castagnoli()
	var fromTop [256]byte // the entry of the table with that highest byte; no two have the same
	for i, v := range table {
		fromTop[v>>24] = byte(i)
	}
	s := crc32.Checksum(data, table) ^ sum
	if s == 0 || len(data) > mendOneBit {
		return 0, 0, false
	}
	for at = len(data) - 1; at >= 0; at-- {
		last := fromTop[s>>24]
		if table[last] == s && (len(data) <= mendAnyByte || bits.OnesCount8(last) == 1) {
			return at, last, true
		}
		s = (s^table[last])<<8 | uint32(last)
	}
	return 0, 0, false
}

// sumLengths are the lengths that a stored checksum can have, without the four
// bytes of its length.
func sumLengths() []int { return []int{6, 5, 4, 3, 2, 0} }

// appendSum appends a checksum as cutChecksum reads it.
func appendSum(dst []byte, sum uint32) []byte {
	at := len(dst)
	if sum != 0 {
		dst = binary.AppendUvarint(append(dst, 2<<3), uint64(sum))
	}
	return binary.BigEndian.AppendUint32(dst, uint32(len(dst)-at))
}

// oneByteOff tells where b and want, of one length, differ in one byte.
func oneByteOff(b, want []byte) (at int, ok bool) {
	at = -1
	for i := range want {
		if b[i] == want[i] {
			continue
		}
		if at >= 0 {
			return 0, false
		}
		at = i
	}
	return at, at >= 0
}

// mendBlock mends a block, whole with its checksum, in place when one byte of
// it is wrong. It returns where.
func mendBlock(b []byte) (at int, ok bool) {
	if at, ok = mendSum(b, func(from int) []byte { return b[:from] }); ok {
		return at, true
	}
	data, sum, ok := cutChecksum(b)
	if !ok {
		return 0, false
	}
	at, diff, ok := mendByte(data, sum)
	if !ok {
		return 0, false
	}
	data[at] ^= diff
	if !eachEntry(data, func(int, []byte, []byte) {}) {
		data[at] ^= diff // more is wrong than looks so
		return 0, false
	}
	return at, true
}

// mendSum mends the checksum at the end of b. What it is of depends on where
// it begins; nil is nothing.
func mendSum(b []byte, of func(from int) []byte) (at int, ok bool) {
	for _, n := range sumLengths() {
		from := len(b) - 4 - n
		if from < 0 {
			continue
		}
		want := appendSum(make([]byte, 0, 16), crc32.Checksum(of(from), castagnoli()))
		if len(want) != n+4 {
			continue
		}
		if at, ok := oneByteOff(b[from:], want); ok {
			b[from+at] = want[at]
			return from + at, true
		}
	}
	return 0, false
}

// mendIndex mends the index and what follows it, in place, when one byte of
// them is wrong. It returns where.
func mendIndex(b []byte) (at int, ok bool) {
	// The index itself.
	if body, sum, ok := cutChecksum(b); ok {
		if rest, size, ok := cutLength(body); ok && size <= len(rest) {
			index := rest[len(rest)-size:]
			if at, diff, ok := mendByte(index, sum); ok {
				index[at] ^= diff
				return len(rest) - size + at, true
			}
		}
		// Its length: the right one is that which the checksum is right with.
		if at, ok := mendLength(b, len(body)-4, sum); ok {
			return at, true
		}
	}
	// The checksum, or the length of that.
	return mendSum(b, func(from int) []byte {
		rest, size, ok := cutLength(b[:from])
		if !ok || size > len(rest) {
			return nil
		}
		return rest[len(rest)-size:]
	})
}

// mendLength mends the length at b[at:] of an index with checksum sum before it.
func mendLength(b []byte, at int, sum uint32) (int, bool) {
	if at < 0 {
		return 0, false
	}
	for i := range 4 {
		was := b[at+i]
		for v := range 256 {
			b[at+i] = byte(v)
			size := uint64(binary.BigEndian.Uint32(b[at:]))
			if byte(v) != was && size > 0 && size <= uint64(at) && crc32.Checksum(b[at-int(size):at], castagnoli()) == sum {
				return at + i, true
			}
		}
		b[at+i] = was
	}
	return 0, false
}
