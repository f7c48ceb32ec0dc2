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

// shadowFolder is the temporary folder of a view. A command that is killed
// leaves it behind; the next one of the same user removes it. While somebody
// holds the lock of the file heldName in it (flock), which ends with the
// process, nobody else touches it.
//
// Between making a folder and taking its lock another process may take it for
// one that was left, and remove it. It then removes that file or the empty
// folder, so the maker sees it and makes another.
type shadowFolder struct {
	path string   // absolute and without links, as the kernel names what is mapped
	held *os.File // with the lock
}

const (
	shadowPrefix = "holdfast-view-" // digits follow
	heldName     = "held"           // no name that Badger knows
	shadowTries  = 100
)

// makeShadow makes a folder that is ours until remove.
func makeShadow() (*shadowFolder, error) {
	for range shadowTries {
		path, err := os.MkdirTemp("", shadowPrefix)
		if err == nil {
			path, err = filepath.EvalSymlinks(path)
		}
		if err == nil {
			var f *shadowFolder
			if f, err = holdShadow(path, true); err == nil {
				return f, nil
			}
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("cannot make a temporary folder: %w", err)
		}
		if _, serr := os.Stat(os.TempDir()); serr != nil {
			return nil, fmt.Errorf("cannot make a temporary folder: %w", serr)
		}
	}
	return nil, fmt.Errorf("cannot make a temporary folder: %d were removed at once by others", shadowTries)
}

// holdShadow takes the lock of a folder, which is new or was left. The error
// wraps fs.ErrNotExist when there is none to take, or no folder, and
// EWOULDBLOCK when somebody has it.
func holdShadow(path string, fresh bool) (_ *shadowFolder, err error) {
	f := &shadowFolder{path: path}
	name := filepath.Join(path, heldName)
	flags := os.O_RDWR | unix.O_NOFOLLOW
	if fresh {
		flags |= os.O_CREATE | os.O_EXCL
	}
	if f.held, err = os.OpenFile(name, flags, 0o600); err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.held.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if fresh && !errors.Is(err, unix.EWOULDBLOCK) {
		err = nil // where no lock can be taken nobody removes what was left
	}
	if err == nil {
		var here, there os.FileInfo
		if here, err = f.held.Stat(); err == nil {
			there, err = os.Lstat(name)
		}
		if err == nil && !os.SameFile(here, there) {
			err = fs.ErrNotExist
		}
	}
	if err != nil {
		_ = f.held.Close()
		return nil, err
	}
	return f, nil
}

// remove removes the folder, and the file with the lock as the last one in it:
// who is killed meanwhile leaves what the next one removes.
func (f *shadowFolder) remove() error {
	defer f.held.Close() // gives the lock up
	entries, err := os.ReadDir(f.path)
	for _, entry := range entries {
		if entry.Name() != heldName {
			err = errors.Join(err, os.RemoveAll(filepath.Join(f.path, entry.Name())))
		}
	}
	if err == nil {
		err = os.RemoveAll(f.path)
	}
	if err != nil {
		return fmt.Errorf("cannot remove a temporary folder: %w", err)
	}
	return nil
}

// removeLeftShadows removes the folders of this user that killed commands left.
func removeLeftShadows() error {
	temp := os.TempDir()
	dir, err := os.Open(temp)
	if err != nil {
		return fmt.Errorf("cannot read the folder for temporary files: %w", err)
	}
	names, err := dir.Readdirnames(-1)
	_ = dir.Close()
	for _, name := range names {
		digits, ok := strings.CutPrefix(name, shadowPrefix)
		if ok && digits != "" && strings.Trim(digits, "0123456789") == "" {
			err = errors.Join(err, removeLeft(filepath.Join(temp, name)))
		}
	}
	return err
}

// removeLeft removes one folder, if it is this user's and nobody holds it. One
// without the file to lock is removed only when it is empty.
func removeLeft(path string) error {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR || int(st.Uid) != os.Geteuid() {
		return nil
	}
	f, err := holdShadow(path, false)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		_ = os.Remove(path) // which fails when something is in it
		return nil
	case errors.Is(err, unix.EWOULDBLOCK):
		return nil
	case err != nil:
		return fmt.Errorf("cannot remove a temporary folder: %w", err)
	}
	return f.remove()
}
