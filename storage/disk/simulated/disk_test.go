package simulated

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-queue/holdfast/storage/disk"
)

// mounted returns a disk, and a function that says what a cut leaves of it.
func mounted(t *testing.T) (d *Disk, dir string, left func(cut Cut) string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err == nil {
		d, err = Mount(dir, 1)
	}
	must(t, err)
	t.Cleanup(d.Unmount)
	return d, dir, func(cut Cut) string {
		t.Helper()
		to := t.TempDir()
		must(t, d.Leave(to, cut, rand.New(rand.NewPCG(1, 2))))
		all := ""
		must(t, filepath.WalkDir(to, func(path string, e os.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				b, _ := os.ReadFile(path)
				all += fmt.Sprintf("%s=%s ", e.Name(), b)
			}
			return err
		}))
		return strings.TrimSpace(all)
	}
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func made(t *testing.T, path, text string) *disk.File {
	t.Helper()
	f, err := disk.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	must(t, err)
	_, err = f.Write([]byte(text))
	must(t, err)
	return f
}

// Whatever fails of a file that is written in pieces, its writer hears of it: no later call tells.
func TestAnyPieceMayFail(t *testing.T) {
	d, dir, _ := mounted(t)
	calls, failAt, whole := 0, 0, make([]byte, 40<<10)
	d.Hook = func(int64, *disk.Call) error {
		if calls++; calls == failAt {
			return syscall.EIO
		}
		return nil
	}
	for failAt = 1; ; failAt++ {
		calls = 1 << 20 // none of these fails
		f, waits := made(t, filepath.Join(dir, fmt.Sprint(failAt)), ""), 0
		calls = 0
		err := f.WritePieces(int64(len(whole)), func(at, n int64) []byte { return whole[at : at+n] }, func() { waits++ })
		must(t, f.Close())
		if calls < failAt {
			if err != nil || waits < 4 || calls != 2*waits-1 {
				t.Errorf("%d calls and %d waits: %v", calls, waits, err)
			}
			return
		}
		if !errors.Is(err, syscall.EIO) {
			t.Errorf("call %d failed, and the error is %v", failAt, err)
		}
	}
}

func TestACutLeavesWhatWasSynced(t *testing.T) {
	_, dir, left := mounted(t)
	folder, err := disk.Open(dir)
	must(t, err)
	f := made(t, filepath.Join(dir, "f"), "one")
	if must(t, f.Sync()); left(Nothing) != "" {
		t.Error("a name is there whose folder was not synced")
	}
	must(t, folder.Sync())
	_, err = f.WriteAt([]byte("t"), 0)
	if must(t, err); left(Nothing) != "f=one" {
		t.Errorf("there is %q, want what was synced", left(Nothing))
	}
	must(t, f.Sync(), disk.Rename(f.Name(), filepath.Join(dir, "g")))
	if got := left(Nothing); got != "f=tne" {
		t.Errorf("there is %q, want the old name", got)
	}
	must(t, folder.Sync(), disk.Remove(filepath.Join(dir, "g")))
	if got := left(Nothing); got != "g=tne" {
		t.Errorf("there is %q, want the new name", got)
	}
	must(t, folder.Sync(), disk.MkdirAll(filepath.Join(dir, "a", "b"), 0o700), disk.RemoveAll(filepath.Join(dir, "a")))
	if entries, err := os.ReadDir(dir); len(entries) > 0 || err != nil || left(Nothing) != "" {
		t.Errorf("there are %v: %v", entries, err)
	}
}

func TestASyncThatFailedIsForgotten(t *testing.T) {
	d, dir, left := mounted(t)
	folder, err := disk.Open(dir)
	f := made(t, filepath.Join(dir, "f"), "one")
	must(t, err, f.Sync(), folder.Sync())
	for try := 0; left(Nothing) == "f=one"; try++ {
		d.Hook = func(_ int64, c *disk.Call) error {
			return map[disk.Op]error{disk.OpSync: syscall.EIO}[c.Op]
		}
		_, err := f.WriteAt([]byte("two"), 0)
		if must(t, err); !errors.Is(f.Sync(), syscall.EIO) {
			t.Fatal("the sync does not fail")
		}
		if d.Hook = nil; left(Nothing) == "f=one" {
			must(t, f.Sync()) // which brings nothing more
			break
		}
		_, err = f.WriteAt([]byte("one"), 0)
		must(t, err, f.Sync())
	}
	d.Freeze()
	if _, err := f.WriteAt([]byte("six"), 0); !errors.Is(err, ErrFrozen) {
		t.Errorf("a write of a dead process: %v", err)
	}
	must(t, d.Thaw(true))
	if b, err := os.ReadFile(f.Name()); string(b) != "one" || left(Any) != "f=one" || err != nil {
		t.Errorf("the kernel has %q, and the device %q: %v", b, left(Any), err)
	}
}

func TestADiskIsFullAndGarblesBits(t *testing.T) {
	d, dir, _ := mounted(t)
	f := made(t, filepath.Join(dir, "f"), "one")
	d.Room(4)
	if _, err := f.WriteAt([]byte("two"), 3); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a write beyond the room: %v", err)
	}
	if free, total, err := disk.Space(dir); free != 1 || total != 4 || err != nil {
		t.Errorf("%d of %d bytes are free: %v", free, total, err)
	}
	d.Hook = func(int64, *disk.Call) error { return ErrGarbled }
	must(t, f.Sync())
	d.Hook = nil
	before, err := os.ReadFile(f.Name())
	_, forgets := f.Do(disk.OpForget, 0)
	must(t, err, forgets)
	if after, err := os.ReadFile(f.Name()); string(before) != "one" || string(after) == "one" || len(after) != 3 || err != nil {
		t.Errorf("there was %q, and is %q: %v", before, after, err)
	}
}
