package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// serveBesideSmallDisk serves 2 MB of packets, and has a folder with room for 256 KiB.
func serveBesideSmallDisk(t *testing.T) (s *testServer, dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=256k"); err != nil {
		t.Skip("skipped: a small file system cannot be mounted here:", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	s = serve(t, filepath.Join(t.TempDir(), "data"), "--admin", "127.0.0.1:0")
	s.must(t, "bench", "push", "--count", "100", "--size", "20000", "--keep")
	return s, dir
}

func TestSystemBackupOfATimerThatFindsNoRoomRemovesNothing(t *testing.T) {
	s, dir := serveBesideSmallDisk(t)
	names := []string{"holdfast-20200101T000000.000Z.msgpack", "holdfast-20200102T000000.000Z.msgpack"}
	puts(t, dir, names...)
	oneErrorLine(t, s.run(t, "backup", "--to", dir, "--keep", "1"), exitFailed, "no space left on device; nothing was written to")
	if got := namesIn(t, dir); !slices.Equal(got, names) {
		t.Errorf("the folder holds %q, want %q", got, names)
	}
}

func TestSystemRestoreThatFindsNoRoomLeavesNothing(t *testing.T) {
	s, dir := serveBesideSmallDisk(t)
	file := filepath.Join(t.TempDir(), "backup")
	s.must(t, "backup", "--files", "--to", file)
	for _, to := range []string{dir, filepath.Join(dir, "new")} {
		oneErrorLine(t, cli(t, "restore", file, to), exitFailed, "are free below "+to)
		if got := namesIn(t, dir); len(got) > 0 {
			t.Errorf("the file system holds %q", got)
		}
	}
}

func TestSystemRestoreFillsAMountedFolder(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64m"); err != nil {
		t.Skip("skipped: a small file system cannot be mounted here:", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	s := serve(t, filepath.Join(t.TempDir(), "data"), "--admin", "127.0.0.1:0")
	s.must(t, "push", "jobs", "one")
	file := filepath.Join(t.TempDir(), "backup")
	s.must(t, "backup", "--files", "--to", file)
	done(t, "restore", file, dir)
	if out := done(t, "verify", dir, "--quiet"); !strings.Contains(out, "\nsound: 1 packet ") {
		t.Errorf("verify says %s", out)
	}
}
