package storage

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"
	"time"

	"github.com/holdfast-queue/holdfast/storage/disk"
)

// sizes are chosen by the size of the file system, in bytes.
type sizes struct {
	window  int64 // what may wait to become tables; also the unit of what is kept free
	segment int64 // of the journal
	spares  int   // segments more, which are room that nobody else can take
}

const (
	minWindow = 2 << 20
	maxWindow = 64 << 20
)

// sizesFor returns the sizes for a file system of total bytes. most is the largest window to
// choose, 0 for maxWindow; window is 0 unless a test says it.
func sizesFor(total, most, window int64) sizes {
	if window == 0 {
		window = max(min(total/64, cmp.Or(most, maxWindow), maxWindow), minWindow)
	}
	const page = 4096
	return sizes{window: window, segment: min(max(window/4/page*page, 1<<20), 16<<20), spares: 4}
}

// table is the size of one table where all of them have stored bytes: more in a large store, so
// that they stay few: a process can map some 20,000. A window is four at least: what they have
// besides its entries is in the size. Badger counts the bytes of a table with 32 bits.
func (s sizes) table(stored int64) int64 {
	return max(s.segment*27/25, min(stored/256, 64<<20), min(stored/4096, 1<<30))
}

// step is how much of a merge of some stored bytes comes in force together where it may take so
// much room. It stands beside what it was made of, and what comes meanwhile is added to that.
func (s sizes) step(room, stored int64) int64 {
	return min(room/4, max(stored/8, s.window), stepWindows*s.window)
}

// Most of the room that a folder takes besides its packets is the journal.
const (
	journalWindows = 2  // of journal, until a window is frozen
	keepWindows    = 6  // of room are kept free from pushes, or as many of the longest payload
	spareWindows   = 64 // of room; with less the journal keeps files of its own
	stepWindows    = 16 // of a merge come in force together, at most
)

// allowance is how many dead bytes there may be, however little is live.
func (s sizes) allowance() int64 { return 4 * s.window }

// FileSizes says what a data folder takes on its file system, in bytes of blocks: a file with holes
// counts for what it really takes.
type FileSizes struct {
	Total   int64 // all files and folders
	Journal int64 // the files of the journal, a part of it

	Newest time.Time // when a file was written last
}

// Sizes measures the data folder dir without opening it; a server may be running on it. A file that
// goes away meanwhile counts nothing. The error wraps ErrNotFolder when there is no data folder.
// With another error it returns the sizes of what can be read.
func Sizes(dir string) (FileSizes, error) {
	if _, err := disk.Stat(filepath.Join(dir, formatName)); errors.Is(err, fs.ErrNotExist) {
		return FileSizes{}, fmt.Errorf("%w: %s has no file %q", ErrNotFolder, dir, formatName)
	}
	var sizes FileSizes
	var unread error
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		var info fs.FileInfo
		if err == nil {
			info, err = d.Info()
		}
		if errors.Is(err, fs.ErrNotExist) && path != dir {
			return nil
		}
		if err != nil {
			unread = cmp.Or(unread, err)
			return nil
		}
		n := info.Sys().(*syscall.Stat_t).Blocks * statBlock
		sizes.Total += n
		if at := info.ModTime(); !d.IsDir() && at.After(sizes.Newest) {
			sizes.Newest = at
		}
		if filepath.Base(filepath.Dir(path)) == journalName {
			sizes.Journal += n
		}
		return nil
	})
	if unread != nil {
		return sizes, fmt.Errorf("cannot measure the data folder: %w", unread)
	}
	return sizes, nil
}

// statBlock is the unit of st_blocks, whatever the file system's own is.
const statBlock = 512
