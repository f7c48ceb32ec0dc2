package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// FileSizes is what a data folder takes on its file system, in bytes of blocks: a file with holes
// counts for what it really takes.
type FileSizes struct {
	Total   int64 // all files and folders
	Reserve int64 // the reserve file, a part of it
}

// Sizes measures the data folder dir without opening it; a server may be running on it. A file that
// goes away meanwhile counts nothing. The error wraps ErrNotFolder when there is no data folder.
func Sizes(dir string) (FileSizes, error) {
	if _, err := os.Stat(filepath.Join(dir, formatName)); errors.Is(err, fs.ErrNotExist) {
		return FileSizes{}, fmt.Errorf("%w: %s has no file %q", ErrNotFolder, dir, formatName)
	}
	var sizes FileSizes
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path != dir {
			return nil
		}
		if err != nil {
			return err
		}
		var st unix.Stat_t
		switch err := unix.Lstat(path, &st); {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return &os.PathError{Op: "lstat", Path: path, Err: err}
		}
		sizes.Total += st.Blocks * statBlock
		if filepath.Base(path) == reserveName {
			sizes.Reserve = st.Blocks * statBlock
		}
		return nil
	})
	if err != nil {
		return FileSizes{}, fmt.Errorf("cannot measure the data folder: %w", err)
	}
	return sizes, nil
}

// statBlock is the unit of st_blocks, whatever the file system's own is.
const statBlock = 512

// maxDead is how many dead bytes a running server leaves for each live one, once there are more
// than the allowance.
const maxDead = 4

// Bound says how large the folder of a running server gets in steady traffic. Dead bytes are those
// of packets that are gone, and of what says that they are. A queue that is drained all at once
// leaves more for a while: until as much again was written, or until there is little to do.
type Bound struct {
	Allowance int64 // dead bytes that there may always be, however little is live
}

// BoundOf returns the bound of the data folder dir, which depends on the size of its file system.
func BoundOf(dir string) (Bound, error) {
	_, total, err := statSpace(dir)
	if err != nil {
		return Bound{}, err
	}
	return Bound{Allowance: sizingFor(total, 0).allowance()}, nil
}

// Most returns the most that a folder takes without its reserve file while its live packets, keys
// and records, take live bytes.
func (b Bound) Most(live int64) int64 { return live + max(maxDead*live, b.Allowance) }
