package storage

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// TestReserveOfACopiedFolderCountsForWhatItTakes opens a folder whose reserve
// became another one since it was made.
func TestReserveOfACopiedFolderCountsForWhatItTakes(t *testing.T) {
	const whole = 1 << 30 // bytes of the file system
	sizing := sizingFor(whole, minMemTable)
	want := sizing.reserve(whole)
	hole := func(size int64) func(name string) error {
		return func(name string) error {
			return errors.Join(os.WriteFile(name, nil, 0o600), os.Truncate(name, size))
		}
	}
	blocks := func(size int64) func(name string) error {
		return func(name string) error {
			file, err := os.Create(name)
			if err != nil {
				return err
			}
			return errors.Join(allocate(file, size), file.Close())
		}
	}
	little := sizing.background(0) + sizing.draining() // room for no reserve
	same := func(string) error { return nil }
	for name, row := range map[string]struct {
		change func(name string) error
		room   int64 // free bytes with those of the reserve
		held   int64
	}{
		"as it was made":               {same, whole, want},
		"removed":                      {os.Remove, whole, want},
		"a hole":                       {hole(want), whole, want},
		"of a smaller memory table":    {blocks(want / 2), whole, want},
		"of a larger memory table":     {blocks(2 * want), whole, want},
		"as it was, and little room":   {same, little, want},
		"a hole, and little room":      {hole(want), little, 0},
		"smaller, and little room":     {blocks(1 << 20), little, 1 << 20},
		"larger, and little room":      {blocks(want + 1<<20), little, want + 1<<20},
		"larger, with room for itself": {blocks(2 * want), little + want + 1<<20, want},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			var room atomic.Int64
			room.Store(whole)
			o := Options{MemTable: minMemTable, tune: tuning{stat: func(string) (int64, int64, error) {
				var st unix.Stat_t // no blocks when there is no reserve
				_ = unix.Stat(filepath.Join(dir, reserveName), &st)
				return room.Load() - st.Blocks*statBlock, whole, nil
			}}}
			s, err := Open(dir, o)
			if err != nil {
				t.Fatal(err)
			}
			reserve := s.guard.reserve
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(reserve); errors.Is(err, fs.ErrNotExist) {
				t.Skip("skipped: the file system gives no blocks in advance")
			}
			if err := row.change(reserve); err != nil {
				t.Fatal(err)
			}
			room.Store(row.room)
			s, err = Open(dir, o)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			s.guard.mu.Lock()
			held := s.guard.reserved
			s.guard.mu.Unlock()
			if held != row.held {
				t.Errorf("the reserve counts for %d bytes, want %d", held, row.held)
			}
			sizes, err := Sizes(dir)
			if err != nil {
				t.Fatal(err)
			}
			const page = 4096
			if sizes.Reserve < held || sizes.Reserve > held+page {
				t.Errorf("it takes %d bytes and counts for %d", sizes.Reserve, held)
			}
		})
	}
}
