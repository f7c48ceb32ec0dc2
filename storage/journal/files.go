package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// The files of the journal have names that mean nothing: the header of a segment says which one it
// is. So a file is used again by writing to it, and no name ever changes.

const suffix = ".log"

// Prepare makes a file for the next segment, if none is ready: of its full length, with its blocks
// written and synced, so that a record costs nothing but its own bytes. It may be called again
// after an error, unless that wraps ErrUnknown.
func (j *Journal) Prepare() error {
	j.making.Lock()
	defer j.making.Unlock()
	if j.free() > 0 {
		return nil
	}
	return j.add(j.opts.SegmentSize, true)
}

// SetSpares makes or removes free files until there are n besides the one that is used next. They
// are room on the disk that nobody else can take.
func (j *Journal) SetSpares(n int) error {
	j.making.Lock()
	defer j.making.Unlock()
	for j.free() > n+1 {
		if err := j.remove(j.pop()); err != nil {
			return err
		}
	}
	for j.free() < n+1 {
		if err := j.add(j.opts.SegmentSize, true); err != nil {
			return err
		}
	}
	return nil
}

func (j *Journal) free() int {
	j.mu.RLock()
	defer j.mu.RUnlock()
	return len(j.spare)
}

// pop takes a free file; there is one.
func (j *Journal) pop() *segment {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.spare[len(j.spare)-1]
	j.spare = j.spare[:len(j.spare)-1]
	return s
}

// take returns a file for a segment that begins with so many bytes. A longer one than usual gets a
// file of its own.
func (j *Journal) take(need int64) (*segment, error) {
	j.making.Lock()
	defer j.making.Unlock()
	// Whoever waits for a reply does not wait until all blocks are written.
	if size := max(need, j.opts.SegmentSize); size > j.opts.SegmentSize || j.free() == 0 {
		if err := j.add(size, false); errors.Is(err, ErrFull) {
			return nil, err
		} else if err != nil {
			return nil, unknown(err)
		}
	}
	return j.pop(), nil
}

// add makes a file of a length, and lists it as free. With fill its blocks are written. A file that
// could not be made is removed.
func (j *Journal) add(size int64, fill bool) error {
	j.files++
	path := filepath.Join(j.dir, strconv.Itoa(j.files)+suffix)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("cannot make a file of the journal: %w", err)
	}
	if err = allocate(file, size); err == nil && fill {
		zeros := make([]byte, min(size, 1<<20))
		for at := int64(0); at < size && err == nil; at += int64(len(zeros)) {
			_, err = file.WriteAt(zeros[:min(int64(len(zeros)), size-at)], at)
		}
		if err == nil {
			err = file.Sync()
		}
	}
	if err != nil {
		err = errors.Join(err, file.Close(), os.Remove(path))
		if isFull(err) {
			return fmt.Errorf("%w: %w", ErrFull, err)
		}
		return fmt.Errorf("cannot make a file of the journal: %w", err)
	}
	j.mu.Lock()
	j.spare = append(j.spare, &segment{file: file, path: path, size: size})
	j.mu.Unlock()
	return j.syncFolder()
}

// Release gives up the segments that hold no batch above upto, but the last one. One of their files
// is used next, some are spares, and the others are removed.
func (j *Journal) Release(upto uint64) error {
	for {
		j.mu.Lock()
		if len(j.begun) < 2 || j.begun[0].last > upto {
			j.mu.Unlock()
			return nil
		}
		s := j.begun[0]
		j.begun = slices.Delete(j.begun, 0, 1)
		j.mu.Unlock()
		if err := j.giveBack(s); err != nil {
			return err
		}
	}
}

// giveBack lists a file as free, or removes it where that is not of use.
func (j *Journal) giveBack(s *segment) error {
	j.mu.Lock()
	keep := s.size == j.opts.SegmentSize && len(j.spare) <= j.opts.Spares
	if keep {
		j.spare = append(j.spare, s)
	}
	j.mu.Unlock()
	if keep {
		return nil
	}
	return j.remove(s)
}

func (j *Journal) remove(s *segment) error {
	_ = s.file.Close()
	if err := os.Remove(s.path); err != nil {
		return fmt.Errorf("cannot remove a file of the journal: %w", err)
	}
	return nil
}

// Clear removes all files of the journal, and syncs the folder: all that they held is in tables.
// Nobody appends meanwhile.
func (j *Journal) Clear() error {
	j.making.Lock()
	defer j.making.Unlock()
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, s := range slices.Concat(j.begun, j.spare) {
		_ = s.file.Close()
	}
	j.begun, j.spare, j.current = nil, nil, nil
	paths, err := j.paths()
	if err != nil {
		return err
	}
	for _, path := range paths {
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("cannot remove a file of the journal: %w", err)
		}
	}
	return j.syncFolder()
}

// paths returns the files of the journal that are in the folder.
func (j *Journal) paths() (paths []string, err error) {
	entries, err := os.ReadDir(j.dir)
	if err != nil {
		return nil, fmt.Errorf("cannot read the folder of the journal: %w", err)
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), suffix) {
			paths = append(paths, filepath.Join(j.dir, e.Name()))
		}
	}
	return paths, nil
}
