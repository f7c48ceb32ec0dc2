package storage

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// memoryFolder copies a folder into a file system in memory, holes and all,
// and fills that to its last page.
func memoryFolder(t *testing.T, from string) (dir string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("skipped: mounting a file system needs root")
	}
	at := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=16m,huge=never", "tmpfs", at).CombinedOutput(); err != nil {
		t.Skipf("skipped: cannot mount a file system here: %v %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", at).CombinedOutput(); err != nil {
			t.Errorf("umount: %v %s", err, out)
		}
	})
	dir = filepath.Join(at, "data")
	copyFolder(t, from, dir)
	logs, err := logNames(filepath.Join(dir, dbName))
	if err != nil || len(logs) == 0 {
		t.Fatalf("%d logs, %v", len(logs), err)
	}
	for _, name := range logs {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, size := range []int64{int64(len(bytes.TrimRight(b, "\x00"))), int64(len(b))} {
			if err := os.Truncate(name, size); err != nil {
				t.Fatal(err)
			}
		}
	}
	fillUp(t, filepath.Join(at, "rest"))
	return dir
}

// fillUp writes a file until there is no room.
func fillUp(t *testing.T, name string) {
	t.Helper()
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	page := bytes.Repeat([]byte{1}, 4096)
	for err == nil {
		_, err = file.Write(page)
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
}

func TestSparseLogIsReadWhereItsHolesHaveNoRoomInMemory(t *testing.T) {
	f := newDamageFolder(t, true)
	dir := memoryFolder(t, f.dir)
	for name, o := range map[string]ViewOptions{"look": {}, "salvage": {Tolerant: true}} {
		v, err := OpenView(dir, o)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if ids := viewed(t, v); len(ids) != len(f.want) || len(v.Findings()) > 0 {
			t.Errorf("%s shows %d packets of %d, and %v", name, len(ids), len(f.want), v.Findings())
		}
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := checkLogs(filepath.Join(dir, dbName), secretOf(t, dir), nil); err != nil {
		t.Error(err)
	}
}

func TestFileWithoutRoomToMapItIsNotDamage(t *testing.T) {
	f := newDamageFolder(t, true)
	dir := memoryFolder(t, f.dir)
	tables, err := filepath.Glob(filepath.Join(dir, dbName, "*"+tableSuffix))
	if err != nil || len(tables) == 0 {
		t.Fatalf("%d tables, %v", len(tables), err)
	}
	if err := os.Truncate(tables[0], 1<<20); err != nil { // all behind is a hole, and the footer is looked for there
		t.Fatal(err)
	}
	err = checkTable(tables[0], everyBlock)
	if !errors.Is(err, errNoRoom) || errors.Is(err, ErrDamaged) {
		t.Errorf("checking gives %v", err)
	}
	for _, open := range []func() error{
		func() error { _, err := openings["look"](dir); return err },
		func() error { return explainRefusal(checkTables(filepath.Join(dir, dbName))) },
	} {
		if err := open(); !errors.Is(err, ErrFull) || errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), filepath.Base(tables[0])) ||
			strings.Contains(err.Error(), "runtime error") {
			t.Errorf("opening gives %v", err)
		}
	}
}
