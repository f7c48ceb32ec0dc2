package storage

import (
	"slices"

	"github.com/holdfast-queue/holdfast/storage/journal"
)

// nearby keeps what a reader has last read of the journal. Packets that follow each other were
// mostly pushed so, or the other way round, and lie side by side there: one that lies within
// nearGap of the bytes before it brings nearBytes with it. A read costs as much as copying some 10
// KiB.
type nearby struct {
	segment uint32 // 0: nothing was read
	from    int64
	bytes   []byte
}

const (
	nearGap   = 4 << 10
	nearBytes = 32 << 10
)

// read returns the value of a slot, valid until the next call. What lies behind the mark, the end
// of the last batch, is not written yet: it is not brought along.
func (n *nearby) read(j *journal.Journal, s slot, last journal.Mark) ([]byte, error) {
	from, end := int64(s.offset), n.from+int64(len(n.bytes))
	to := from + int64(s.length)
	if s.segment == n.segment && from >= n.from && to <= end {
		return n.bytes[from-n.from : to-n.from : to-n.from], nil
	}
	first, behind := from, to
	switch {
	case s.segment != n.segment:
	case from >= n.from && from < end+nearGap:
		behind = max(to, from+nearBytes)
		if s.segment == uint32(last.Segment) {
			behind = min(behind, last.End)
		}
	case to <= end && to > n.from-nearGap:
		first = max(0, min(from, to-nearBytes))
	}
	err := n.readAt(j, s.segment, first, behind)
	if err != nil && behind-first > to-from { // the segment ends there, or other bytes are damaged
		first = from
		err = n.readAt(j, s.segment, from, to)
	}
	if err != nil {
		n.segment = 0
		return nil, err
	}
	return n.bytes[from-first : to-first : to-first], nil
}

func (n *nearby) readAt(j *journal.Journal, segment uint32, from, to int64) error {
	n.segment, n.from, n.bytes = segment, from, slices.Grow(n.bytes[:0], int(to-from))[:to-from]
	return j.ReadAt(journal.Place{Segment: segment, Offset: uint32(from)}, n.bytes)
}
