package storage

import (
	"bytes"
	"errors"
	"io"
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
		func() error { return whenStarved(checkTables(filepath.Join(dir, dbName))) },
	} {
		if err := open(); !errors.Is(err, ErrFull) || errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), filepath.Base(tables[0])) ||
			strings.Contains(err.Error(), "runtime error") {
			t.Errorf("opening gives %v", err)
		}
	}
}

func TestLogIsMappedUpToTheZerosAtItsEnd(t *testing.T) {
	const size = 3 << 18
	for name, row := range map[string]struct{ last, want int64 }{
		"nothing":                    {-1, 4096},
		"in the first page":          {10, 4096},
		"a checksum ends in zeros":   {4093, 8192},
		"before the end of a chunk":  {1<<18 - 10, 1 << 18},
		"at the end of a chunk":      {1<<18 - 1, 1<<18 + 4096},
		"at the beginning of one":    {1 << 18, 1<<18 + 4096},
		"at the end of all":          {size - 1, size},
		"before the end of the last": {size - 4097, size},
	} {
		b := make([]byte, size)
		if row.last >= 0 {
			b[row.last], b[row.last/2] = 1, 1
		}
		if got := dataEnd(bytes.NewReader(b), size); got != row.want {
			t.Errorf("%s: %d, want %d", name, got, row.want)
		}
	}
	if got := dataEnd(badReader{}, 100_000); got != 100_000 {
		t.Errorf("of a file that cannot be read: %d", got)
	}
	if got := dataEnd(bytes.NewReader(make([]byte, 7)), 7); got != 7 {
		t.Errorf("of a short file: %d", got)
	}
}

// badReader is a device that reads nothing.
type badReader struct{}

func (badReader) ReadAt([]byte, int64) (int, error) { return 0, io.ErrUnexpectedEOF }
