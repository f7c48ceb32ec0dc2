package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// lookFolder is openFolder for somebody who only looks: it takes the lock shared, so that several
// may look at once and nobody may serve, and changes nothing, not even the number in the lock.
func lookFolder(path string) (_ *folder, err error) {
	if path, err = filepath.Abs(path); err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot find the data folder: %w", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("cannot find the data folder: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%w: %s is a file", ErrNotFolder, path)
	}
	dir, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot open the data folder: %w", err)
	}
	f := &folder{path: path, dir: dir}
	if err := f.shareLock(); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

// shareLock takes the lock together with others who look. Where there is no lock nobody serves the
// folder, and none is made: who has no right to write may look, too.
func (f *folder) shareLock() error {
	lock, err := os.Open(f.name(lockName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot open the lock of the data folder: %w", err)
	}
	return f.flock(lock, unix.LOCK_SH)
}
