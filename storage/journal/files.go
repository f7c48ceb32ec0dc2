package journal

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"

	"github.com/holdfast-queue/holdfast/storage/disk"
)

// The files of the journal have names by chance: the header of a segment says which one it is. So a
// file is used again by writing to it, and no name ever changes.

const suffix = ".log"

// Prepare makes a file for the next segment, if none is ready: of its full length, with its blocks
// written and synced, so that a record costs nothing but its own bytes. It may be called again
// after an error, unless that wraps ErrUnknown.
func (j *Journal) Prepare() error { return j.stock(1, j.AwaitSync) }

// KeepSpares says how many free files are kept besides the one that is used next.
func (j *Journal) KeepSpares(n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.opts.Spares = n
}

// SetSpares is KeepSpares, and makes or removes them. They are room on the disk that nobody else
// can take.
func (j *Journal) SetSpares(n int) error {
	j.KeepSpares(n)
	return errors.Join(j.free(0, n+1), j.stock(n+1, nil))
}

// DropSpares is KeepSpares(0), and removes them: room for what is more urgent.
func (j *Journal) DropSpares() error {
	j.KeepSpares(0)
	return j.free(0, 1)
}

// stock makes files until n are free. wait is called before each piece of one; nil: a batch waits
// for them.
func (j *Journal) stock(n int, wait func()) error {
	for {
		j.mu.RLock()
		free := len(j.spare)
		j.mu.RUnlock()
		if free >= n {
			return nil
		}
		s, err := j.make(j.opts.SegmentSize, true, wait)
		if err != nil {
			return err
		}
		j.mu.Lock()
		j.spare = append(j.spare, s)
		j.mu.Unlock()
	}
}

// begin begins a segment in a file of at least need bytes. A record that is longer than a segment
// gets a file of its own.
func (j *Journal) begin(need int64) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if need > j.opts.SegmentSize || len(j.spare) == 0 {
		// Whoever waits for a reply does not wait until all blocks are written.
		s, err := j.make(max(need, j.opts.SegmentSize), false, nil)
		if err != nil {
			return err
		}
		j.spare = slices.Insert(j.spare, 0, s)
	}
	s, b := j.spare[0], make([]byte, page)
	s.header = newHeader(j.end.Segment + 1)
	put(b, &s.header)
	if err := j.write(s.file, b, 0); err != nil {
		return err
	}
	j.spare = slices.Delete(j.spare, 0, 1)
	j.begun, j.current = append(j.begun, s), s
	j.end.Segment, j.end.End = s.Number, page
	return nil
}

// make makes a file of a length; with fill its blocks are written. A file that could not be made is
// removed.
func (j *Journal) make(size int64, fill bool, wait func()) (*segment, error) {
	file, err := disk.CreateTemp(j.dir, suffix)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFull, err)
	}
	if err = allocate(file, size); err == nil && fill {
		blank := make([]byte, disk.Piece)
		err = file.WritePieces(size, func(_, n int64) []byte { return blank[:n] }, wait)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrFull, err), file.Close(), disk.Remove(file.Name()))
	}
	if err := j.unknown(j.folder.Sync()); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &segment{file: file, size: size}, nil
}

// Release gives up the segments before the segment of a mark, up to which all is in tables. Their
// files are used again, or removed where enough are free. After an error the next call tries again.
func (j *Journal) Release(upto Mark) error {
	j.mu.RLock()
	keep := j.opts.Spares + 1
	j.mu.RUnlock()
	return j.free(upto.Segment, keep)
}

// Trim removes the files that hold no record behind a mark: room for the tables of a start. It is
// for a journal that has not begun.
func (j *Journal) Trim(after Mark) error { return j.free(after.Segment, 0) }

// Clear removes all files of the journal, and syncs the folder: all that they held is in tables.
// Nobody else uses the journal meanwhile.
func (j *Journal) Clear() error {
	j.current = nil
	if err := j.free(math.MaxUint64, 0); err != nil {
		return err
	}
	return j.unknown(j.folder.Sync())
}

// free gives up the segments with lower numbers, and removes free files but for some. Those that
// are longer than a segment, or held, are not kept.
func (j *Journal) free(below uint64, keep int) (err error) {
	j.mu.Lock()
	for len(j.begun) > 0 && j.begun[0].Number < below {
		j.spare = append(j.spare, j.begun[0])
		j.begun = slices.Delete(j.begun, 0, 1)
	}
	j.spare = slices.DeleteFunc(j.spare, func(s *segment) bool {
		if s.size == j.opts.SegmentSize && s.holds == 0 && keep > 0 {
			keep--
			return false
		}
		_ = s.file.Close()
		j.gone = append(j.gone, s.file.Name())
		return true
	})
	gone := j.gone
	j.gone = nil
	j.mu.Unlock()
	for _, name := range gone {
		if fails := disk.Remove(name); fails != nil && !errors.Is(fails, os.ErrNotExist) {
			err = errors.Join(err, fails)
			j.mu.Lock()
			j.gone = append(j.gone, name)
			j.mu.Unlock()
		}
	}
	return err
}
