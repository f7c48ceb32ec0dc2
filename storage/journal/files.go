package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The files of the journal have names by chance: the header of a segment says which one it is. So a
// file is used again by writing to it, and no name ever changes.

const suffix = ".log"

// Prepare makes a file for the next segment, if none is ready: of its full length, with its blocks
// written and synced, so that a record costs nothing but its own bytes. It may be called again
// after an error, unless that wraps ErrUnknown.
func (j *Journal) Prepare() error { return j.stock(1) }

// SetSpares says how many free files are kept besides the one that is used next, and makes or
// removes them. They are room on the disk that nobody else can take.
func (j *Journal) SetSpares(n int) error {
	j.mu.Lock()
	j.opts.Spares = n
	keep := min(n+1, len(j.spare))
	gone := slices.Clone(j.spare[keep:])
	j.spare = j.spare[:keep]
	j.mu.Unlock()
	return errors.Join(remove(gone), j.stock(n+1))
}

// stock makes files until n are free.
func (j *Journal) stock(n int) error {
	for {
		j.mu.RLock()
		free := len(j.spare)
		j.mu.RUnlock()
		if free >= n {
			return nil
		}
		s, err := j.make(j.opts.SegmentSize, true)
		if err != nil {
			return err
		}
		j.mu.Lock()
		j.spare = append(j.spare, s)
		j.mu.Unlock()
	}
}

// begin begins a segment with a batch, in a file of so many bytes or more. A record that is longer
// than a segment gets a file of its own.
func (j *Journal) begin(first uint64, need int64) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if need > j.opts.SegmentSize || len(j.spare) == 0 {
		// Whoever waits for a reply does not wait until all blocks are written.
		s, err := j.make(max(need, j.opts.SegmentSize), false)
		if err != nil {
			return err
		}
		j.spare = slices.Insert(j.spare, 0, s)
	}
	s, b := j.spare[0], make([]byte, page)
	s.header, s.first = newHeader(j.end.Segment+1), first
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
func (j *Journal) make(size int64, fill bool) (*segment, error) {
	file, err := os.CreateTemp(j.dir, "*"+suffix)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFull, err)
	}
	if err = allocate(file, size); err == nil && fill {
		blank := make([]byte, min(size, 1<<20))
		for at := int64(0); at < size && err == nil; at += int64(len(blank)) {
			_, err = file.WriteAt(blank[:min(int64(len(blank)), size-at)], at)
		}
		if err == nil {
			err = file.Sync()
		}
	}
	s := &segment{file: file, size: size}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrFull, err), remove([]*segment{s}))
	}
	if err := j.unknown(j.folder.Sync()); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return s, nil
}

// Release gives up the segments that hold no batch above upto, but the last one. Their files are
// used again, or removed where enough are free.
func (j *Journal) Release(upto uint64) error {
	var gone []*segment
	j.mu.Lock()
	for len(j.begun) > 1 && j.begun[1].first <= upto+1 {
		if s := j.begun[0]; s.size == j.opts.SegmentSize && len(j.spare) <= j.opts.Spares {
			j.spare = append(j.spare, s)
		} else {
			gone = append(gone, s)
		}
		j.begun = slices.Delete(j.begun, 0, 1)
	}
	j.mu.Unlock()
	return remove(gone)
}

// Trim removes the files that hold no record behind a mark: room for the tables of a start. It is
// for a journal that has not begun.
func (j *Journal) Trim(after Mark) error {
	paths, err := j.paths()
	for _, path := range paths {
		if h, unread := headerOf(path); unread == nil && h.Number < max(after.Segment, 1) {
			err = errors.Join(err, os.Remove(path))
		}
	}
	return err
}

// remove removes files that no list has any more.
func remove(segments []*segment) (err error) {
	for _, s := range segments {
		err = errors.Join(err, s.file.Close(), os.Remove(s.file.Name()))
	}
	return err
}

// Clear removes all files of the journal, and syncs the folder: all that they held is in tables.
// Nobody else uses the journal meanwhile.
func (j *Journal) Clear() error {
	_ = j.closeFiles()
	paths, err := j.paths()
	if err != nil {
		return err
	}
	for _, path := range paths {
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	return j.unknown(j.folder.Sync())
}

// paths returns the files of the journal that are in the folder.
func (j *Journal) paths() (paths []string, err error) {
	entries, err := os.ReadDir(j.dir)
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), suffix) {
			paths = append(paths, filepath.Join(j.dir, e.Name()))
		}
	}
	return paths, err
}

func (j *Journal) closeFiles() (err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, s := range slices.Concat(j.begun, j.spare) {
		err = errors.Join(err, s.file.Close())
	}
	j.begun, j.spare, j.current = nil, nil, nil
	return err
}
