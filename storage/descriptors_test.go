package storage

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// openFiles lets the process have so many files open until the test ends.
func openFiles(t *testing.T, most uint64) {
	t.Helper()
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: most, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Setrlimit(unix.RLIMIT_NOFILE, &was) })
}

// openings are all ways to open a folder, with what is found wrong in it.
var openings = map[string]func(dir string) ([]Finding, error){
	"open": func(dir string) ([]Finding, error) {
		s, err := Open(dir, Options{MemTable: minMemTable})
		if err == nil {
			err = s.Close()
		}
		return nil, err
	},
	"look": func(dir string) ([]Finding, error) { return look(dir, ViewOptions{}) },
	"salvage": func(dir string) ([]Finding, error) {
		return look(dir, ViewOptions{Tolerant: true})
	},
}

func look(dir string, o ViewOptions) ([]Finding, error) {
	v, err := OpenView(dir, o)
	if err != nil {
		return nil, err
	}
	return v.Findings(), v.Close()
}

func TestLimitOfOpenFilesThatIsTooLowIsToldBeforeAnythingIsOpened(t *testing.T) {
	f := newDamageFolder(t, true)
	for name, row := range map[string]struct {
		limit uint64
		how   string
		want  error
	}{
		"too low to serve":   {workFiles, "open", ErrTooManyFiles},
		"enough to look":     {workFiles, "look", nil},
		"too low to look":    {lookFiles, "look", ErrTooManyFiles},
		"too low to salvage": {lookFiles, "salvage", ErrTooManyFiles},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			copyFolder(t, f.dir, dir)
			openFiles(t, row.limit)
			if _, err := openings[row.how](dir); !errors.Is(err, row.want) || errors.Is(err, ErrDamaged) {
				t.Errorf("it gives %v", err)
			}
		})
	}
}

func TestFilesThatCannotBeOpenedAreNotDamage(t *testing.T) {
	f := newDamageFolder(t, true)
	for _, how := range []string{"look", "salvage"} { // Badger may end a process that opens for writing
		t.Run(how, func(t *testing.T) {
			dir := t.TempDir()
			copyFolder(t, f.dir, dir)
			openFiles(t, 2*workFiles)
			var taken []*os.File
			defer func() {
				for _, file := range taken {
					_ = file.Close()
				}
			}()
			refused := 0
			for free := 1; ; free++ {
				for file, err := os.Open(os.DevNull); err == nil; file, err = os.Open(os.DevNull) {
					taken = append(taken, file)
				}
				for range free {
					last := len(taken) - 1
					_ = taken[last].Close()
					taken = taken[:last]
				}
				found, err := openings[how](dir)
				if err == nil && len(found) == 0 {
					break
				}
				if !refusedBySystem(err) && !errors.Is(err, ErrTooManyFiles) || errors.Is(err, ErrDamaged) {
					t.Fatalf("with %d files left: %v, findings %v", free, err, found)
				}
				refused++
			}
			if refused < 4 {
				t.Errorf("only %d times the limit was met", refused)
			}
		})
	}
}

func TestMergeThatMightNotGetItsFilesIsNotBegun(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{MemTable: minMemTable, Sync: SyncNever()})
	left := popped(t, s, 20_000, 2)
	if err := s.rotate(); err != nil {
		t.Fatal(err)
	}
	tables := len(s.db.Tables())
	if tables < 3 {
		t.Fatalf("there are %d tables", tables)
	}
	openFiles(t, uint64(tables+workFiles)) // which Open is content with
	if err := s.Compact(t.Context(), nil); !errors.Is(err, ErrTooManyFiles) {
		t.Errorf("compacting gives %v", err)
	}
	var tidier tidier
	if tidier.sound(s) || tidier.hindered == 0 {
		t.Error("a merge would be begun without being asked")
	}
	left.check(t, s)
	openFiles(t, uint64(2*tables+2*workFiles))
	if err := s.Compact(t.Context(), nil); err != nil {
		t.Error(err)
	}
	left.check(t, s)
}
