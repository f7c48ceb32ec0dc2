package storage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-queue/holdfast/storage/content"
	"github.com/holdfast-queue/holdfast/storage/tables"
)

// Batches that are one come in force at once, though they fill several windows, which a merge makes
// one run of with what was there before.
func TestBatchesThatAreOneAreThereOnceTheyAreKept(t *testing.T) {
	p := newPusher(t, smallStore(t, t.TempDir()))
	p.push(3000)
	settled(t, p.s)
	p.push(100)
	dir := killed(t, p.s) // what the journal has is there before, too
	before := &pusher{t: t, live: maps.Clone(p.live)}
	write := func() *Store {
		s, err := Open(dir, Options{Window: minWindow, Whole: true})
		if err != nil {
			t.Fatal(err)
		}
		p = &pusher{t: t, s: s, next: 1<<63 + 3100, live: maps.Clone(before.live)}
		for range 8 {
			p.push(1000)
			p.pop(900)
		}
		settled(t, s)
		if _, err := s.tables.Merge(context.Background(), tables.MergeOptions{All: true, Size: 1 << 20, Step: 1 << 20}); err != nil {
			t.Fatal(err)
		}
		p.push(10)
		return s
	}
	opened := func(dir string, want *pusher) {
		t.Helper()
		s, err := Open(dir, Options{Window: minWindow})
		if err != nil {
			t.Fatal(err)
		}
		want.check(s)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}

	s := write()
	opened(killed(t, s), before)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	opened(dir, before)

	s = write()
	if err := s.Keep(); err != nil {
		t.Fatal(err)
	}
	opened(killed(t, s), p)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{buildName, journalName} {
		if left, err := os.ReadDir(filepath.Join(dir, name)); err != nil || len(left) > 0 {
			t.Errorf("%s has %v, %v", name, left, err)
		}
	}
	tableFiles(t, dir)
	opened(dir, p)
}

func TestBatchesThatFailedAreNotKept(t *testing.T) {
	above := t.TempDir()
	dir := filepath.Join(above, "a", "data")
	s, err := Open(dir, Options{Window: minWindow, Whole: true})
	if err != nil {
		t.Fatal(err)
	}
	applied(t, s, one(1, content.Packet{}))
	build := filepath.Join(dir, buildName)
	away := filepath.Join(t.TempDir(), buildName)
	if err := errors.Join(os.Rename(build, away), os.WriteFile(build, nil, 0o600)); err != nil { // no table can be made
		t.Fatal(err)
	}
	if err := s.Keep(); err == nil || errors.Is(err, ErrUnknown) {
		t.Errorf("got %v, want that nothing is kept", err)
	}
	_ = s.Close()
	if left := namesBelow(t, above); len(left) > 1 {
		t.Errorf("%q are left of a folder that was not there", left)
	}
	if ids, tally := scanned(t, smallStore(t, dir)); len(ids) != 0 || tally.Live != 0 {
		t.Errorf("packets %v are there", ids)
	}
}

func TestSystemAWholeStoreThatFindsTooFewFilesLeavesNoFolder(t *testing.T) {
	for files := 3; files < 14; files++ {
		disk := t.TempDir()
		if err := unix.Mount("tmpfs", disk, "tmpfs", 0, fmt.Sprint("size=256m,nr_inodes=", files)); err != nil {
			t.Skip("cannot mount:", err)
		}
		dir := filepath.Join(disk, "new")
		s, err := Open(dir, Options{Whole: true})
		if err == nil {
			err = s.Close()
		}
		if _, there := os.Stat(dir); !errors.Is(there, fs.ErrNotExist) {
			t.Errorf("of %d files: %v; Stat of the folder gives %v", files, err, there)
		}
		if err := unix.Unmount(disk, 0); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAWholeStoreRemovesNoFolderThatHasTakenItsName(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	other := filepath.Join(t.TempDir(), "other")
	if err := smallStore(t, other).Close(); err != nil {
		t.Fatal(err)
	}
	s, err := Open(dir, Options{Whole: true})
	if err == nil {
		err = errors.Join(os.Rename(dir, dir+" moved"), os.Rename(other, dir), s.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, formatName)); err != nil {
		t.Error(err)
	}
}

func TestAWholeStoreThatCannotBeOpenedLeavesNoFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	fails := func(string) (free, total int64, err error) { return 0, 0, unix.EIO }
	_, err := Open(dir, Options{Whole: true, tune: tuning{stat: fails}})
	if _, there := os.Stat(dir); !errors.Is(err, unix.EIO) || !errors.Is(there, fs.ErrNotExist) {
		t.Errorf("Open gives %v, and Stat of the folder %v", err, there)
	}
}
