package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/dgraph-io/badger/v4"
	"golang.org/x/sys/unix"
)

// FileSizes is what a data folder takes on its file system, in bytes of blocks by kind of file: a
// file with holes counts for what it really takes.
type FileSizes struct {
	Tables   int64 // tables of the database: packets, and what compactions have not removed yet
	Logs     int64 // logs of the memory tables: the newest batches
	ValueLog int64 // the value log, which holds no value, and its statistics
	Manifest int64 // the list of tables
	Reserve  int64 // the reserve file
	Other    int64 // all the rest: folders, lock, format, anchor, secret
}

// Total is the sum of all kinds.
func (z FileSizes) Total() int64 {
	return z.Tables + z.Logs + z.ValueLog + z.Manifest + z.Reserve + z.Other
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
		*sizes.of(filepath.Base(path), filepath.Dir(path) == filepath.Clean(dir)) += st.Blocks * statBlock
		return nil
	})
	if err != nil {
		return FileSizes{}, fmt.Errorf("cannot measure the data folder: %w", err)
	}
	return sizes, nil
}

// statBlock is the unit of st_blocks, whatever the file system's own is.
const statBlock = 512

// of returns where a file counts; top is true beside the database folder.
func (z *FileSizes) of(name string, top bool) *int64 {
	const discard = "DISCARD"
	switch {
	case top && name == reserveName:
		return &z.Reserve
	case top:
		return &z.Other
	case strings.HasSuffix(name, tableSuffix):
		return &z.Tables
	case strings.HasSuffix(name, logSuffix):
		return &z.Logs
	case strings.HasSuffix(name, valueLogSuffix) || name == discard:
		return &z.ValueLog
	case strings.HasPrefix(name, badger.ManifestFilename):
		return &z.Manifest
	default:
		return &z.Other
	}
}

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
