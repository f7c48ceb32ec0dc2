package journal

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// smallDisk mounts a file system in memory.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=256k"); err != nil {
		t.Skip("a small file system cannot be mounted here:", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

// leave fills a file system, but for some bytes. It returns what gives the room back.
func leave(t *testing.T, dir string, free int) func() {
	t.Helper()
	name := filepath.Join(dir, "full")
	err := os.WriteFile(name, make([]byte, 1<<20), 0o600)
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal("the disk is not full:", err)
	}
	info, err := os.Stat(name)
	if err == nil {
		err = os.Truncate(name, info.Size()-int64(free))
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSystemShortWriteIsNoRecordAndIsTriedAgain(t *testing.T) {
	for name, again := range map[string]Content{
		"the same":  {Batch: 2, Body: [][]byte{bytes.Repeat([]byte("x"), page)}},
		"a shorter": {Batch: 2},
	} {
		t.Run(name, func(t *testing.T) {
			dir := smallDisk(t)
			j := open(t, dir, Options{})
			appendUpTo(t, j, 1, 1)
			// A file system that copies on write has no room where blocks were there.
			at := j.end.End
			if err := unix.Fallocate(int(j.current.file.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, at, segmentSize-at); err != nil {
				t.Fatal(err)
			}
			free := leave(t, dir, page)
			if _, _, err := j.Append(Content{Batch: 2, Body: [][]byte{bytes.Repeat([]byte("x"), page)}}); !errors.Is(err, ErrFull) || errors.Is(err, ErrUnknown) {
				t.Errorf("on a full disk: %v", err)
			}
			if b := files(t, dir)[filepath.Base(j.current.file.Name())]; !slices.Equal(b[at:at+4], recordMagic[:]) {
				t.Error("no part of it was written")
			}
			free()
			other := open(t, dir, Options{})
			if last, err := replayed(t, other, ReplayOptions{}); last != 1 || err != nil {
				t.Errorf("it ends at %d: %v", last, err)
			}
			if place, _, err := j.Append(again); err != nil || int64(place.Offset) != at {
				t.Errorf("at %d, not %d: %v", place.Offset, at, err)
			}
			if end, err := other.Replay(ReplayOptions{}, func(Record) error { return nil }); end.Batch != 2 || err != nil {
				t.Errorf("it ends at %d: %v", end.Batch, err)
			}
		})
	}
}

func TestSystemFullDiskTakesOnlyWhatIsReady(t *testing.T) {
	dir := smallDisk(t)
	j := open(t, dir, Options{})
	appendUpTo(t, j, 1, 2)
	if err := j.SetSpares(2); err != nil {
		t.Fatal(err)
	}
	free := leave(t, dir, page)
	n := uint64(3)
	for ; ; n++ {
		if _, _, err := j.Append(content(n)); errors.Is(err, ErrFull) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if len(j.begun) != 4 || len(files(t, dir)) != 5 {
		t.Errorf("%d segments and %d files, want 4 and 5", len(j.begun), len(files(t, dir)))
	}
	if err := j.Prepare(); !errors.Is(err, ErrFull) {
		t.Error(err)
	}
	free()
	appendUpTo(t, j, n, n+10)
	if last, err := reread(t, dir, ReplayOptions{}); last != n+10 || err != nil {
		t.Errorf("it ends at %d: %v", last, err)
	}
}
