package journal

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"
)

// ErrFull: the disk has no room for a record. Nothing was written that counts; the same record may
// be appended again.
var ErrFull = errors.New("the disk has no room for the journal")

// ErrUnknown: a write or a sync failed, and nobody knows what reached the device. The store must
// stop, and the next start decides.
var ErrUnknown = errors.New("what reached the device is not known")

// Options of a journal.
type Options struct {
	// SegmentSize is the length of a segment in bytes, a multiple of 4,096 and two of them at
	// least.
	SegmentSize int64
	// Spares is how many files that are not needed are kept for later.
	Spares int
	// Weak leaves the sync of a record to Sync: a power cut may lose the last records.
	Weak bool
}

// Journal is the log of a data folder. Append, Sync and Clear belong to the goroutine that commits;
// Prepare, SetSpares and Release to the one that writes tables; ReadAt, Window and Size to anybody.
//
// The chain: each record has the sum of the one before it, and the header of a segment that of the
// last record of the segment before. So a record counts only behind all that came before it.
type Journal struct {
	dir    string
	folder *os.File
	opts   Options

	mu    sync.RWMutex
	begun []*segment // the segments, oldest first; the last one is written to
	spare []*segment // files that hold nothing that counts

	making sync.Mutex // held while a file is made or taken; taken before mu
	files  int        // the name of the last one that was made; with making

	// Of Append and Sync alone.
	current  *segment // the last of begun; nil if there is none
	end      Mark     // of the last record
	salt     [16]byte // of current
	buffer   []byte
	unsynced []*segment // those that were written to since the last sync; with Weak only
	syncer   syncer
}

// Place is where a record begins.
type Place struct {
	Segment uint32
	Offset  uint32
}

// Mark is where a record ends.
type Mark struct {
	Batch   uint64
	Segment uint64 // the number of its segment, from 1 on
	End     int64  // in bytes, with the padding
	Sum     uint64
}

// Content is what a record says. The frame around it is the journal's own.
type Content struct {
	Batch   uint64
	Control []byte   // at most 65,535 bytes
	Entries uint32   // how many entries Body has
	Body    [][]byte // the entries, in pieces
}

// Overhead is what stands in a record before its entries.
func (c *Content) Overhead() int { return recordSize + len(c.Control) }

// Open opens the journal in a folder that exists. Nothing in the folder changes.
func Open(dir string, o Options) (*Journal, error) {
	folder, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot open the folder of the journal: %w", err)
	}
	return &Journal{dir: dir, folder: folder, opts: o}, nil
}

// Begin begins an empty journal behind a record that is in tables; Append goes on from it.
func (j *Journal) Begin(after Mark) error {
	j.end = after
	return j.Clear()
}

// Append writes a record, and returns where it begins and ends once it is on the device; with Weak,
// once it is written. ErrFull: nothing has changed. Any other error wraps ErrUnknown.
func (j *Journal) Append(c Content) (Place, Mark, error) {
	n := c.Overhead()
	for _, b := range c.Body {
		n += len(b)
	}
	if n > MaxRecord {
		return Place{}, j.end, fmt.Errorf("%w: a record of %d bytes, the limit is %d", ErrUnknown, n, MaxRecord)
	}
	if s := j.current; s != nil && j.end.End+int64(padded(n)) <= s.size {
		b := j.fill(c, n, 0)
		return j.write(s, b, j.end.End, c.Batch, putRecord(b[:n], &j.salt, c, j.end.Sum, !j.opts.Weak))
	}
	s, err := j.take(page + int64(padded(n)))
	if err != nil {
		return Place{}, j.end, err
	}
	h := newHeader(j.end.Segment+1, j.end.Sum, c.Batch, s.size)
	b := j.fill(c, n, page)
	sum := putRecord(b[page:page+n], &h.salt, c, h.put(b), !j.opts.Weak)
	s.number = h.number
	place, mark, err := j.write(s, b, 0, c.Batch, sum)
	if err != nil {
		return place, mark, errors.Join(err, j.giveBack(s))
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.begun = append(j.begun, s)
	j.current, j.salt = s, h.salt
	return Place{place.Segment, page}, mark, nil
}

// write writes a record with its padding, and perhaps a header before it, and syncs it.
func (j *Journal) write(s *segment, b []byte, at int64, batch, sum uint64) (Place, Mark, error) {
	if _, err := s.file.WriteAt(b, at); isFull(err) {
		return Place{}, j.end, fmt.Errorf("%w: %w", ErrFull, err)
	} else if err != nil {
		return Place{}, j.end, unknown(err)
	}
	if !j.opts.Weak {
		if err := j.syncer.datasync(s.file); err != nil {
			return Place{}, j.end, unknown(err)
		}
	} else if !slices.Contains(j.unsynced, s) {
		j.unsynced = append(j.unsynced, s)
	}
	j.mu.Lock()
	s.last = batch
	j.mu.Unlock()
	j.end = Mark{batch, s.number, at + int64(len(b)), sum}
	return Place{uint32(s.number), uint32(at)}, j.end, nil
}

// keepBuffer is the largest buffer that is kept from one record to the next, in bytes.
const keepBuffer = 8 << 20

// fill returns room for a header of so many bytes and a record of n bytes, with the record's
// content and padding in it.
func (j *Journal) fill(c Content, n, header int) []byte {
	size := header + padded(n)
	if size > cap(j.buffer) {
		j.buffer = make([]byte, max(size, 64<<10))
	}
	b := j.buffer[:size]
	if size > keepBuffer {
		j.buffer = nil
	}
	at := header + recordSize
	at += copy(b[at:], c.Control)
	for _, piece := range c.Body {
		at += copy(b[at:], piece)
	}
	clear(b[at:])
	return b
}

// Sync brings what was appended to the device. It is for Weak; the other mode has nothing to sync.
func (j *Journal) Sync() error {
	for _, s := range j.unsynced {
		// One that is closed was given up: what it held is in tables.
		if err := s.file.Sync(); err != nil && !errors.Is(err, os.ErrClosed) {
			return unknown(err)
		}
	}
	j.unsynced = j.unsynced[:0]
	return nil
}

// ReadAt reads len(b) bytes, from so many bytes behind the beginning of a record on.
func (j *Journal) ReadAt(p Place, behind uint32, b []byte) error {
	j.mu.RLock()
	defer j.mu.RUnlock()
	for _, s := range slices.Backward(j.begun) {
		if uint32(s.number) == p.Segment {
			_, err := s.file.ReadAt(b, int64(p.Offset)+int64(behind))
			return err
		}
	}
	return fmt.Errorf("segment %d of the journal is not there", p.Segment)
}

// Size is how many bytes the files have that hold records, and those that hold none.
func (j *Journal) Size() (used, spare int64) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	for _, s := range j.begun {
		used += s.size
	}
	for _, s := range j.spare {
		spare += s.size
	}
	return used, spare
}

// Close closes the files. What the folder holds stays.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	err := j.folder.Close()
	for _, s := range slices.Concat(j.begun, j.spare) {
		err = errors.Join(err, s.file.Close())
	}
	j.begun, j.spare = nil, nil
	return err
}

func (j *Journal) syncFolder() error {
	if err := j.folder.Sync(); err != nil {
		return fmt.Errorf("%w: cannot sync the folder of the journal: %w", ErrUnknown, err)
	}
	return nil
}

// unknown wraps an error whose outcome nobody knows.
func unknown(err error) error { return fmt.Errorf("%w: %w", ErrUnknown, err) }

func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
