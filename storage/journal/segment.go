package journal

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"github.com/cespare/xxhash/v2"
)

// A segment is one file. Its first page is its header. Records follow, each from a multiple of a
// page on, so that no page with an acknowledged record is ever written again. FORMAT.md has the
// bytes.
const (
	page       = 4096
	headerSize = 64 // with its sum; the rest of the page is zeros
	recordSize = 40 // the head of a record, before its content

	// MaxRecord is the most bytes of a record: what one call may bring is far below.
	MaxRecord = 512 << 20

	// flagOrdered: every earlier batch was on the device before this record was written.
	flagOrdered = 1
)

var (
	segmentMagic = []byte("HFSEG\x00\x00\x01") // the last two bytes are the version
	recordMagic  = []byte("HFRC")
)

// segment is a file of the journal. Readers use it while they share the journal's lock.
type segment struct {
	path   string
	file   *os.File
	size   int64
	number uint64 // from 1 on; of a spare one that is over
	last   uint64 // batch of its last record
}

// header is the first page of a segment that has begun.
type header struct {
	number   uint64
	salt     [16]byte // new each time that a segment begins: nothing older has a right sum in it
	previous uint64   // sum of the last record of the segment before; 0 in the first of a run
	first    uint64   // batch of its first record
	size     uint64   // of the segment in bytes
}

func newHeader(number, previous, first uint64, size int64) header {
	h := header{number: number, previous: previous, first: first, size: uint64(size)}
	_, _ = rand.Read(h.salt[:]) // it never fails
	return h
}

// put writes the header to the first page of dst, and returns its sum.
func (h *header) put(dst []byte) (sum uint64) {
	clear(dst[:page])
	copy(dst, segmentMagic)
	binary.BigEndian.PutUint64(dst[8:], h.number)
	copy(dst[16:], h.salt[:])
	binary.BigEndian.PutUint64(dst[32:], h.previous)
	binary.BigEndian.PutUint64(dst[40:], h.first)
	binary.BigEndian.PutUint64(dst[48:], h.size)
	sum = xxhash.Sum64(dst[:headerSize-8])
	binary.BigEndian.PutUint64(dst[headerSize-8:], sum)
	return sum
}

// readHeader reads the first page of a file. begun is false where there are only zeros: no segment
// has begun in it.
func readHeader(b []byte) (h header, sum uint64, begun bool, err error) {
	if b = b[:min(len(b), page)]; bytes.Equal(b, make([]byte, len(b))) {
		return h, 0, false, nil // also of a file that a kill left without its length
	}
	if len(b) < page {
		return h, 0, false, fmt.Errorf("it has %d bytes, a header has %d", len(b), page)
	}
	sum = binary.BigEndian.Uint64(b[headerSize-8:])
	if !bytes.HasPrefix(b, segmentMagic) || xxhash.Sum64(b[:headerSize-8]) != sum {
		return h, 0, false, errors.New("its header is damaged")
	}
	h.number = binary.BigEndian.Uint64(b[8:])
	copy(h.salt[:], b[16:])
	h.previous = binary.BigEndian.Uint64(b[32:])
	h.first = binary.BigEndian.Uint64(b[40:])
	h.size = binary.BigEndian.Uint64(b[48:])
	return h, sum, true, nil
}

// putRecord fills in the head of a record whose content is there already: b is the record without
// its padding. It returns the record's sum.
func putRecord(b []byte, salt *[16]byte, c Content, previous uint64, ordered bool) (sum uint64) {
	copy(b, recordMagic)
	binary.BigEndian.PutUint32(b[4:], uint32(len(b)))
	binary.BigEndian.PutUint64(b[8:], c.Batch)
	binary.BigEndian.PutUint64(b[16:], previous)
	var flags uint16
	if ordered {
		flags = flagOrdered
	}
	binary.BigEndian.PutUint16(b[24:], flags)
	binary.BigEndian.PutUint16(b[26:], uint16(len(c.Control)))
	binary.BigEndian.PutUint32(b[28:], c.Entries)
	sum = recordSum(b, salt)
	binary.BigEndian.PutUint64(b[32:], sum)
	return sum
}

// recordSum is the sum of a record, over all of it but the sum itself.
func recordSum(b []byte, salt *[16]byte) uint64 {
	var d xxhash.Digest
	d.Reset()
	_, _ = d.Write(salt[:])
	_, _ = d.Write(b[:32])
	_, _ = d.Write(b[recordSize:])
	return d.Sum64()
}

// frame is a record as it lies in a segment.
type frame struct {
	batch, previous, sum uint64
	ordered              bool
	bytes                []byte // without padding
	control              int
	entries              uint32
}

// readFrame reads the record that begins at b; ok is false if there is none with a right sum.
func readFrame(b []byte, salt *[16]byte) (f frame, ok bool) {
	if len(b) < recordSize || !bytes.HasPrefix(b, recordMagic) {
		return f, false
	}
	n := int(binary.BigEndian.Uint32(b[4:]))
	if n < recordSize || n > len(b) || n > MaxRecord {
		return f, false
	}
	b = b[:n]
	f = frame{
		batch:    binary.BigEndian.Uint64(b[8:]),
		previous: binary.BigEndian.Uint64(b[16:]),
		ordered:  binary.BigEndian.Uint16(b[24:])&flagOrdered != 0,
		control:  int(binary.BigEndian.Uint16(b[26:])),
		entries:  binary.BigEndian.Uint32(b[28:]),
		sum:      binary.BigEndian.Uint64(b[32:]),
		bytes:    b,
	}
	return f, recordSize+f.control <= n && recordSum(b, salt) == f.sum
}

// padded is n rounded up to whole pages.
func padded(n int) int { return (n + page - 1) &^ (page - 1) }
