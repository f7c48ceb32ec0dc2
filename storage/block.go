package storage

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math"
)

// A block of a table, in the layout of Badger's table/builder.go:
//
//	entry   overlap u16 | rest u16 | the key's rest | value
//	value   meta u8 | user u8 | expiry uvarint | bytes
//
// The first entry has its key whole; the others share overlap bytes with it. Numbers of 16 bits,
// and the offsets of the entries, are in the order of the machine that wrote them.
const entryHeader = 4

// eachEntry calls fn for each entry of a block without its checksum: where the entry begins, its
// key with the version, and its value, all valid during the call. It reports whether the block can
// be taken apart to its end.
func eachEntry(data []byte, fn func(at int, key, value []byte)) bool {
	body, count, ok := splitCount(data)
	if !ok {
		return false
	}
	offsets := body[len(body)-4*count:]
	entries := body[:len(body)-4*count]
	var first, key []byte
	for i := range count {
		from, to := uint64(binary.NativeEndian.Uint32(offsets[4*i:])), uint64(len(entries))
		if i+1 < count {
			to = uint64(binary.NativeEndian.Uint32(offsets[4*i+4:]))
		}
		if to > uint64(len(entries)) || from+entryHeader > to || i == 0 && from != 0 {
			return false
		}
		entry := entries[from:to]
		overlap, rest := int(binary.NativeEndian.Uint16(entry)), int(binary.NativeEndian.Uint16(entry[2:]))
		if overlap > len(first) || entryHeader+rest > len(entry) {
			return false
		}
		key = append(append(key[:0], first[:overlap]...), entry[entryHeader:][:rest]...)
		value := entry[entryHeader+rest:]
		if len(key) <= 8 || len(key) > math.MaxUint16 || len(value) < 3 {
			return false
		}
		if _, n := binary.Uvarint(value[2:]); n <= 0 {
			return false
		}
		if i == 0 {
			first = bytes.Clone(key)
		}
		fn(int(from), key, value)
	}
	return true
}

// splitCount takes the number of entries off a block, when it can be true.
func splitCount(data []byte) (rest []byte, count int, ok bool) {
	if len(data) < 4 {
		return nil, 0, false
	}
	at := len(data) - 4
	n := binary.BigEndian.Uint32(data[at:])
	return data[:at], int(n), n > 0 && uint64(n)*(4+entryHeader) <= uint64(at)
}

// nextBlock finds where the block that begins at from ends, by its checksum alone: a table whose
// index is gone is read so. Places are tried up to limit bytes on.
func nextBlock(b []byte, from, limit int) (to int, ok bool) {
	table, crc := castagnoli(), ^uint32(0)
	for at := from; at < min(len(b), from+limit); at++ {
		if b[at] == 2<<3 {
			sum, n := binary.Uvarint(b[at+1 : min(len(b), at+6)])
			end := at + 1 + n + 4
			if n > 0 && sum == uint64(^crc) && end <= len(b) && binary.BigEndian.Uint32(b[end-4:]) == uint32(1+n) {
				return end, true
			}
		}
		crc = table[byte(crc)^b[at]] ^ crc>>8
	}
	return 0, false
}

// looksLikeBlock reports whether b may be the beginning of a block: an entry with a whole key of
// ours.
func looksLikeBlock(b []byte) bool {
	if len(b) < entryHeader+2 || binary.NativeEndian.Uint16(b) != 0 {
		return false
	}
	size := binary.NativeEndian.Uint16(b[2:])
	return size > 8 && size < 64 && b[4] == ' ' && b[5] >= 'a' && b[5] <= 'z'
}

// foundBlock is a block found by findBlocks.
type foundBlock struct{ from, to int }

// findBlocks finds the blocks of a table by their checksums, and how many bytes before the last of
// them belong to none.
func findBlocks(b []byte) (found []foundBlock, lost int) {
	const longest = 2*maxRecord + 1<<16
	work := 32 * len(b) // a table of nonsense takes no longer
	end := 0
	for from := 0; from < len(b) && work > 0; {
		limit := min(longest, len(b)-from)
		to, ok := nextBlock(b, from, limit)
		if ok {
			if data, _, _ := splitChecksum(b[from:to]); !eachEntry(data, func(int, []byte, []byte) {}) {
				ok = false
			}
		}
		if ok {
			work -= to - from
			lost += from - end
			found, end, from = append(found, foundBlock{from, to}), to, to
			continue
		}
		work -= limit
		for from++; from < len(b) && !looksLikeBlock(b[from:]); from++ {
		}
	}
	return found, lost
}

// soundData returns what a block holds when its checksum is right.
func soundData(b []byte) (data []byte, ok bool) {
	data, sum, ok := splitChecksum(b)
	return data, ok && crc32.Checksum(data, castagnoli()) == sum
}
