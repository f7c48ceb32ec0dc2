package disk

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// ear is a device that hears, and leaves all to the system, but for what it is to refuse.
type ear struct {
	heard  []string
	refuse Op
}

var errRefused = errors.New("refused")

func (e *ear) Do(c *Call) (err error) {
	e.heard = append(e.heard, fmt.Sprint(c.Op, " ", filepath.Base(c.Path), string(c.Data)))
	switch {
	case c.Op == e.refuse:
		return errRefused
	case c.Op == OpCreate:
		c.File, err = os.OpenFile(c.Path, c.Flags, c.Perm)
	case c.Op == OpWrite:
		_, err = c.File.WriteAt(c.Data, c.At)
	case c.Op == OpSpace:
		c.Free, c.Size = 3, 4
	}
	return err
}

func TestADeviceHearsWhatIsDoneBelowItsFolderAlone(t *testing.T) {
	dir, e := t.TempDir(), &ear{}
	mine, other := filepath.Join(dir, "mine"), filepath.Join(dir, "mine too")
	unmount := Mount(mine, e)
	for _, path := range []string{mine, other} {
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		f, err := OpenFile(filepath.Join(path, "f"), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.Copy(f, io.LimitReader(strings.NewReader("ab"), 2)) // the file reads by itself
		_, again := f.Write([]byte("c"))
		b, err2 := ReadFile(f.Name())
		if err := errors.Join(err, again, err2, f.Close()); err != nil || string(b) != "abc" {
			t.Errorf("the file has %q, want abc: %v", b, err)
		}
	}
	want := []string{"create f", "write fab", "write fc", "read f"}
	if !slices.Equal(e.heard, want) {
		t.Errorf("heard %q, want %q", e.heard, want)
	}
	if free, total, err := Space(filepath.Join(mine, "x")); free != 3 || total != 4 || err != nil {
		t.Errorf("%d of %d bytes are free: %v", free, total, err)
	}
	unmount()
	if free, _, err := Space(mine); free == 3 || err != nil {
		t.Errorf("behind unmount %d bytes are free: %v", free, err)
	}
}

func TestACallThatADeviceRefusesDoesNothing(t *testing.T) {
	dir := t.TempDir()
	f, old := filepath.Join(dir, "f"), filepath.Join(dir, "old")
	if err := os.WriteFile(old, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	e := &ear{}
	defer Mount(dir, e)()
	file, err := Open(old)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for op, call := range map[Op]func() error{
		OpMkdir: func() error { return Mkdir(f, 0o700) }, OpMkdirAll: func() error { return MkdirAll(f, 0o700) }, OpLink: func() error { return Symlink(old, f) },
		OpRename: func() error { return Rename(old, f) }, OpRemove: func() error { return Remove(old) }, OpRemoveAll: func() error { return RemoveAll(old) },
		OpCreate: func() error { _, err := CreateTemp(dir, ".x"); return err }, OpOpen: func() error { _, err := Open(old); return err },
		OpStat: func() error {
			_, err := Stat(old)
			_, too := Lstat(old)
			_, three := file.Stat()
			return errors.Join(err, too, three)
		},
		OpList: func() error { _, err := ReadDir(dir); _, too := file.Names(); return errors.Join(err, too) },
		OpRead: func() error {
			_, err := ReadFile(old)
			_, too := file.ReadAt(make([]byte, 1), 0)
			return errors.Join(err, too)
		},
		OpMap: func() error { _, err := file.Map(1); return err }, OpTruncate: func() error { return file.Truncate(0) },
		OpSync: file.Sync, OpSpace: func() error { _, _, err := Space(dir); return err },
		OpWrite:    func() error { _, err := file.WriteAt([]byte("y"), 0); return err },
		OpAllocate: func() error { _, err := file.Do(OpAllocate, 9); return err },
	} {
		if e.refuse = op; !errors.Is(call(), errRefused) {
			t.Errorf("%s is not refused", op)
		}
	}
	entries, err := os.ReadDir(dir)
	b, too := os.ReadFile(old)
	if len(entries) != 1 || string(b) != "x" || err != nil || too != nil {
		t.Errorf("there are %v, and %q in one: %v %v", entries, b, err, too)
	}
}
