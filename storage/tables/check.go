package tables

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/sys/unix"
)

// Bad is a table that is not what was written.
type Bad struct {
	ID   uint64
	Name string // of its file
	Err  error  // wraps ErrDamaged
}

// Damaged compares the file of each listed table with its size and sum, and returns those that
// differ or are missing. It calls progress, which may be nil, with the bytes that it has read. The
// error is about the system, and not about what a file holds.
func Damaged(dir string, l *List, progress func(n int64)) (bad []Bad, err error) {
	for _, t := range l.Tables {
		name := t.Name()
		data, err := mapTable(filepath.Join(dir, name), t)
		switch {
		case err == nil:
			_ = unix.Munmap(data)
		case errors.Is(err, ErrDamaged):
			bad = append(bad, Bad{t.ID, name, err})
		default:
			return nil, err
		}
		if progress != nil {
			progress(t.Size)
		}
	}
	return bad, nil
}

// Check returns the first error of Damaged.
func Check(dir string, l *List, progress func(n int64)) error {
	bad, err := Damaged(dir, l, progress)
	if err == nil && len(bad) > 0 {
		err = bad[0].Err
		if more := len(bad) - 1; more > 0 {
			err = fmt.Errorf("%w (and %d more)", err, more)
		}
	}
	return err
}

// mapTable maps the file of a table, if it has the size and the sum that the list says.
func mapTable(path string, t Table) (data []byte, err error) {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	name := filepath.Base(path)
	if info, err := file.Stat(); err != nil {
		return nil, err
	} else if info.Size() != t.Size || t.Size == 0 {
		return nil, fmt.Errorf("%w: %s has %d bytes, want %d", ErrDamaged, name, info.Size(), t.Size)
	}
	if data, err = unix.Mmap(int(file.Fd()), 0, int(t.Size), unix.PROT_READ, unix.MAP_SHARED); err != nil {
		return nil, fmt.Errorf("cannot map %s: %w", name, err)
	}
	defer func() {
		if err != nil {
			_ = unix.Munmap(data)
			data = nil
		}
	}()
	defer catchDamage(&err, debug.SetPanicOnFault(true))
	_ = unix.Madvise(data, unix.MADV_SEQUENTIAL)
	if xxhash.Sum64(data) != t.Sum {
		return data, fmt.Errorf("%w: %s does not have the sum that was written", ErrDamaged, name)
	}
	return data, nil
}

// catchDamage makes an error of a panic: of Badger, or of a page that the device cannot read. was
// is what SetPanicOnFault returned.
func catchDamage(err *error, was bool) {
	debug.SetPanicOnFault(was)
	if p := recover(); p != nil {
		*err = fmt.Errorf("%w: %v", ErrDamaged, p)
	}
}
