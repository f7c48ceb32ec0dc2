package storage

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestAcceptedLossIsToldOnce(t *testing.T) {
	f := newDamageFolder(t, true)
	logs, err := logNames(filepath.Join(f.dir, dbName))
	if err != nil || len(logs) == 0 {
		t.Fatalf("%d logs, %v", len(logs), err)
	}
	log := filepath.Join(dbName, filepath.Base(logs[len(logs)-1]))
	whole, err := os.ReadFile(filepath.Join(f.dir, log))
	if err != nil {
		t.Fatal(err)
	}
	end := readLog(whole, anyVersion).at
	for name, row := range map[string]struct {
		damage func(name string) error
		kinds  []string
	}{
		"nothing is wrong":      {func(string) error { return nil }, nil},
		"the log is removed":    {os.Remove, []string{FindingAnchor}},
		"the log is cut":        {func(name string) error { return os.Truncate(name, int64(end/2)) }, []string{FindingAnchor}},
		"bytes in it are zeros": {func(name string) error { return overwrite(name, end/3, make([]byte, 300)) }, []string{FindingAnchor, FindingLog}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			copyFolder(t, f.dir, dir)
			if err := row.damage(filepath.Join(dir, log)); err != nil {
				t.Fatal(err)
			}
			if row.kinds != nil {
				if _, err := Open(dir, Options{MemTable: minMemTable}); !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrLoss) {
					t.Fatalf("it opens with %v", err)
				}
			}
			for _, want := range [][]string{row.kinds, nil} {
				s, err := Open(dir, Options{MemTable: minMemTable, AcceptLoss: true})
				if err != nil {
					t.Fatal(err)
				}
				var kinds []string
				for _, f := range s.Accepted() {
					kinds = append(kinds, f.Kind)
				}
				if slices.Sort(kinds); !slices.Equal(kinds, want) {
					t.Errorf("accepted: %v, want %v", s.Accepted(), want)
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// overwrite puts bytes into a file.
func overwrite(name string, at int, b []byte) error {
	file, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteAt(b, int64(at))
	return errors.Join(err, file.Close())
}
