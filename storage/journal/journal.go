package journal

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/holdfast-queue/holdfast/storage/disk"
)

// ErrFull: there is no place for a record, most often because the disk is full. Nothing was written
// that counts; the same record may be appended again.
var ErrFull = errors.New("there is no room for the journal")

// ErrUnknown: a write or a sync failed, and nobody knows what reached the device. The journal takes
// nothing more. The store must stop, and the next start decides.
var ErrUnknown = errors.New("what reached the device is not known")

// Options of a journal.
type Options struct {
	// SegmentSize is the length of a segment in bytes, a multiple of 4,096 and two of them at
	// least.
	SegmentSize int64
	// Spares is how many released files are kept besides the one that is used next.
	Spares int
	// Weak leaves the sync of a record to Sync: a power cut may lose the last records.
	Weak bool
}

// Journal is the log of a data folder. Append belongs to the goroutine that commits; Sync, Prepare,
// KeepSpares, SetSpares, DropSpares, Release, ReadAt, Window and Size to anybody. Begin, Clear and
// Close are called while nobody else uses the journal.
//
// The chain: each record has the sum of the one before it. So a record counts only behind all that
// came before it.
type Journal struct {
	dir         string
	folder      *disk.File
	failed      atomic.Pointer[error] // of the first call whose outcome nobody knows
	acceptBelow uint64                // of Replay

	mu    sync.RWMutex
	opts  Options
	begun []*segment // the segments, by number; after Begin the last one is written to
	spare []*segment // files that hold nothing that counts; the first one is used next
	gone  []string   // files that are to be removed, and could not be

	// Of Append alone.
	current *segment // the last of begun; nil if there is none
	end     Mark     // of the last record, and where the next one begins
	buffer  []byte
	syncer  syncer

	records way // that their syncs have

	syncing sync.Mutex // guards synced
	synced  uint64     // segments with lower numbers are on the device
}

// Place is where a record begins, or something in it.
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

// Content holds what a record says. The frame around it is the journal's own.
type Content struct {
	Batch   uint64
	Control []byte   // at most 65,535 bytes
	Entries uint32   // how many entries Body has
	Body    [][]byte // the entries, in pieces; below 4 GiB
}

// Overhead returns how many bytes of a record stand before its entries.
func (c *Content) Overhead() int { return headSize + len(c.Control) }

// length is that of the record without padding.
func (c *Content) length() int {
	n := c.Overhead()
	for _, piece := range c.Body {
		n += len(piece)
	}
	return n
}

// Open opens the journal in a folder that exists. Nothing in the folder changes.
func Open(dir string, o Options) (_ *Journal, err error) {
	j := &Journal{dir: dir, opts: o, records: way{ended: make(chan struct{}, maxWaiting)}}
	if j.folder, err = disk.Open(dir); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = j.Close()
		}
	}()
	names, err := j.folder.Names()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if !strings.HasSuffix(name, suffix) {
			continue
		}
		s, err := openSegment(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		if s.Number == 0 {
			j.spare = append(j.spare, s)
		} else {
			j.begun = append(j.begun, s)
		}
	}
	slices.SortFunc(j.begun, func(a, b *segment) int { return cmp.Compare(a.Number, b.Number) })
	return j, nil
}

// Begin begins an empty journal behind a record that is in tables; Append goes on from it.
func (j *Journal) Begin(after Mark) error {
	j.end, j.acceptBelow = after, 0
	return j.Clear()
}

// Append writes a record, and returns where it begins and ends once it is on the device; with Weak,
// once it is written. ErrFull: nothing has changed. Any other error wraps ErrUnknown.
func (j *Journal) Append(c Content) (Place, Mark, error) {
	if err := j.failed.Load(); err != nil {
		return Place{}, j.end, *err
	}
	b, length := j.fill(c)
	if err := j.place(int64(len(b))); err != nil {
		return Place{}, j.end, err
	}
	s, at := j.current, j.end.End
	h := head{Batch: c.Batch, Previous: j.end.Sum, Control: uint16(len(c.Control)), Entries: c.Entries}
	if !j.opts.Weak {
		h.Flags = flagOrdered
	}
	sum := seal(b[:length], &s.Salt, h)
	if err := j.write(s.file, b, at); err != nil {
		return Place{}, j.end, err
	}
	j.end = Mark{c.Batch, s.Number, at + int64(len(b)), sum}
	return Place{uint32(s.Number), uint32(at)}, j.end, nil
}

// MakeRoom makes a place for a record that Append is about to get, where the file system keeps the
// blocks that a file has. Its errors are those of Append.
func (j *Journal) MakeRoom(c Content) error {
	if err := j.failed.Load(); err != nil {
		return *err
	}
	return j.place(int64(padded(c.length())))
}

// place begins a segment if the current one has no room for so many bytes.
func (j *Journal) place(bytes int64) error {
	if j.current != nil && j.end.End+bytes <= j.current.size {
		return nil
	}
	return j.begin(page + bytes)
}

// keepBuffer is the largest buffer that is kept from one record to the next, in bytes.
const keepBuffer = 8 << 20

var zeros [page]byte

// fill returns a record with its content and padding, but without its head; length is that without
// padding.
func (j *Journal) fill(c Content) (b []byte, length int) {
	length = c.length()
	b = slices.Grow(j.buffer[:0], padded(length))
	b = append(append(b, zeros[:headSize]...), c.Control...)
	for _, piece := range c.Body {
		b = append(b, piece...)
	}
	b = append(b, zeros[:padded(length)-length]...)
	if j.buffer = b; cap(b) > keepBuffer {
		j.buffer = nil
	}
	return b, length
}

// write writes bytes to a segment, and syncs them.
func (j *Journal) write(f *disk.File, b []byte, at int64) error {
	if !j.opts.Weak {
		j.records.begin()
		defer j.records.end()
	}
	_, err := f.WriteAt(b, at)
	switch {
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w: %w", ErrFull, err)
	case err == nil && !j.opts.Weak:
		err = j.syncer.datasync(f)
	}
	return j.unknown(err)
}

// Datasync brings what was written to a file to the device.
func Datasync(f *disk.File) error { return new(syncer).datasync(f) }

// Sync brings what was appended before it to the device, beside Append. It is for Weak; the other
// mode has nothing to sync.
func (j *Journal) Sync() error {
	if err := j.failed.Load(); err != nil {
		return *err
	}
	j.syncing.Lock()
	defer j.syncing.Unlock()
	var written []*disk.File
	last := j.synced
	j.mu.RLock()
	for _, s := range j.begun {
		if s.Number >= j.synced {
			written, last = append(written, s.file), s.Number
		}
	}
	j.mu.RUnlock()
	for _, f := range written {
		// One that is closed was given up: what it held is in tables.
		if err := f.Sync(); err != nil && !errors.Is(err, os.ErrClosed) {
			return j.unknown(err)
		}
	}
	j.synced = last
	return nil
}

// ReadAt reads len(b) bytes from a place on.
func (j *Journal) ReadAt(p Place, b []byte) error {
	j.mu.RLock()
	defer j.mu.RUnlock()
	for _, s := range slices.Backward(j.begun) {
		if uint32(s.Number) == p.Segment {
			_, err := s.file.ReadAt(b, int64(p.Offset))
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

// Segments is how many files hold records.
func (j *Journal) Segments() int {
	j.mu.RLock()
	defer j.mu.RUnlock()
	return len(j.begun)
}

// SyncTook is how long the sync of the last record took. It is of Append's goroutine; 0 with Weak.
func (j *Journal) SyncTook() time.Duration { return j.syncer.took }

// Close closes the files. What the folder holds stays.
func (j *Journal) Close() error {
	err := j.folder.Close()
	for _, s := range slices.Concat(j.begun, j.spare) {
		err = errors.Join(err, s.file.Close())
	}
	return err
}

// unknown notes an error whose outcome nobody knows.
func (j *Journal) unknown(err error) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%w: %w", ErrUnknown, err)
	j.failed.CompareAndSwap(nil, &err)
	return err
}
