package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// scratchCopy is the temporary folder of a view. A command that is killed leaves it behind; the
// next one of the same user removes it. Whoever uses a folder holds its lock (flock), which ends
// with the process, and nobody else touches it meanwhile.
//
// Between making a folder and locking it another process may remove it as one that was left. The
// maker sees that and makes another.
type scratchCopy struct {
	path string   // absolute and without links, as the kernel names what is mapped
	dir  *os.File // with the lock
}

const (
	scratchPrefix = "holdfast-view-c" // digits follow
	scratchTries  = 100
)

// makeScratch makes a folder that is ours until remove.
func makeScratch() (f *scratchCopy, err error) {
	for range scratchTries {
		path, merr := os.MkdirTemp("", scratchPrefix)
		if merr == nil {
			path, err = filepath.EvalSymlinks(path)
		}
		if err == nil && merr == nil {
			f, err = lockScratch(path)
		}
		if err = errors.Join(merr, err); merr != nil || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.EWOULDBLOCK) {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot make a temporary folder: %w", err)
	}
	return f, nil
}

// lockScratch takes the lock of a folder. The error wraps fs.ErrNotExist when there is no such
// folder, and EWOULDBLOCK when somebody uses it.
func lockScratch(path string) (*scratchCopy, error) {
	dir, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if err = unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
		var here, there os.FileInfo
		if here, err = dir.Stat(); err == nil {
			there, err = os.Lstat(path)
		}
		if err == nil && !os.SameFile(here, there) {
			err = fs.ErrNotExist
		}
	}
	if err != nil {
		_ = dir.Close()
		return nil, err
	}
	return &scratchCopy{path, dir}, nil
}

func (f *scratchCopy) remove() error {
	defer f.dir.Close() // gives the lock up
	if err := os.RemoveAll(f.path); err != nil {
		return fmt.Errorf("cannot remove a temporary folder: %w", err)
	}
	return nil
}

// removeLeftScratch removes the folders of this user that killed commands left.
func removeLeftScratch() error {
	temp := os.TempDir()
	entries, err := os.ReadDir(temp)
	if err != nil {
		return fmt.Errorf("cannot read the folder for temporary files: %w", err)
	}
	for _, entry := range entries {
		digits, ok := strings.CutPrefix(entry.Name(), scratchPrefix)
		if ok && digits != "" && strings.Trim(digits, "0123456789") == "" {
			err = errors.Join(err, removeLeft(filepath.Join(temp, entry.Name())))
		}
	}
	return err
}

// removeLeft removes one folder, if it is this user's and nobody uses it.
func removeLeft(path string) error {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR || int(st.Uid) != os.Geteuid() {
		return nil
	}
	f, err := lockScratch(path)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.EWOULDBLOCK):
		return nil
	case err != nil:
		return fmt.Errorf("cannot remove a temporary folder: %w", err)
	}
	return f.remove()
}
