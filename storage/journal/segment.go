package journal

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io"

	"github.com/cespare/xxhash/v2"
	"github.com/holdfast-queue/holdfast/storage/disk"
)

// A segment is one file. Its first page is its header. Records follow, each from a multiple of a
// page on, so that no page with an acknowledged record is ever written again. Integers are big
// endian, sums are xxhash64, and what is left of a page is zeros.
const (
	page       = 4096
	headerSize = 40
	headSize   = 48

	// flagOrdered: every earlier batch was on the device before this record was written.
	flagOrdered = 1
)

var (
	segmentMagic = [8]byte([]byte("HFSEG\x00\x00\x02")) // the last two bytes are the version
	beforeMagic  = [8]byte([]byte("HFSEG\x00\x00\x01")) // read, and never written: a head has no sum of its own
	recordMagic  = [4]byte([]byte("HFRC"))
)

// A segment begins with its header.
type header struct {
	Magic  [8]byte
	Number uint64   // from 1 on
	Salt   [16]byte // new each time that a segment begins: nothing older has a right sum in it
	Sum    uint64   // of the bytes before
}

// A record begins with its head. Its control record and its entries follow.
type head struct {
	Magic    [4]byte
	Length   uint32 // of the record without padding, in bytes
	Batch    uint64
	Previous uint64 // sum of the record before, also where that is in another segment
	Flags    uint16
	Control  uint16 // length of the control record
	Entries  uint32
	Sum      uint64 // over the salt and all of the record but the sums
	HeadSum  uint64 // over the salt and what stands before it: by it the length is known to be ours
}

// What the sums of a record are of.
const (
	beforeSum     = headSize - 16
	beforeHeadSum = headSize - 8
)

// segment is a file of the journal.
type segment struct {
	header
	file  *disk.File
	size  int64
	holds int // how many read what it has now; the journal guards it
}

func newHeader(number uint64) header {
	h := header{Magic: segmentMagic, Number: number}
	_, _ = rand.Read(h.Salt[:]) // it never fails
	var b [headerSize]byte
	put(b[:], &h)
	h.Sum = xxhash.Sum64(b[:headerSize-8])
	return h
}

// heads is how long the head of each record in the segment is.
func (h *header) heads() int {
	if h.Magic == beforeMagic {
		return beforeHeadSum
	}
	return headSize
}

// readHeader reads the header of a file. Its number is 0 where there are only zeros: no segment has
// begun in it.
func readHeader(b []byte) (h header) {
	get(b, &h)
	if h != (header{}) && (h.Magic != segmentMagic && h.Magic != beforeMagic || h.Sum != xxhash.Sum64(b[:headerSize-8])) {
		h.Number = damaged
	}
	return h
}

// damaged stands for the number of a header that is not what was written. It is above all others.
const damaged = 1 << 63

// openSegment opens a file that is there.
func openSegment(path string) (*segment, error) {
	file, err := disk.Open(path)
	if err != nil {
		return nil, err
	}
	b := make([]byte, headerSize)
	info, err := file.Stat()
	if err == nil {
		_, err = file.ReadAt(b, 0)
	}
	if err != nil && err != io.EOF { // one that a kill left without its length has only zeros, too
		return nil, errors.Join(err, file.Close())
	}
	return &segment{header: readHeader(b), file: file, size: info.Size()}, nil
}

// seal fills in the head of a record whose content is there already: b is the record without its
// padding. It returns the record's sum.
func seal(b []byte, salt *[16]byte, h head) uint64 {
	h.Magic, h.Length = recordMagic, uint32(len(b))
	put(b, &h)
	h.Sum = sum(salt, b[:beforeSum], b[headSize:])
	put(b, &h)
	h.HeadSum = sum(salt, b[:beforeHeadSum])
	put(b, &h)
	return h.Sum
}

// readRecord reads the record that begins at b; ok is false if there is none with right sums. It
// reads no further than the head where that is not ours, whatever bytes of a client stand there.
func readRecord(b []byte, s *header) (h head, record []byte, ok bool) {
	get(b, &h)
	size := s.heads()
	if h.Magic != recordMagic || size == headSize && h.HeadSum != sum(&s.Salt, b[:beforeHeadSum]) {
		return h, nil, false
	}
	if int(h.Length) < size+int(h.Control) || int(h.Length) > len(b) {
		return h, nil, false
	}
	b = b[:h.Length]
	return h, b, h.Sum == sum(&s.Salt, b[:beforeSum], b[size:])
}

func sum(salt *[16]byte, parts ...[]byte) uint64 {
	var d xxhash.Digest
	d.Reset()
	_, _ = d.Write(salt[:])
	for _, part := range parts {
		_, _ = d.Write(part)
	}
	return d.Sum64()
}

// put and get write and read a header or a head; b has room for it.
func put(b []byte, v any) { _, _ = binary.Encode(b, binary.BigEndian, v) }
func get(b []byte, v any) { _, _ = binary.Decode(b, binary.BigEndian, v) }

// padded is n rounded up to whole pages.
func padded(n int) int { return (n + page - 1) &^ (page - 1) }
