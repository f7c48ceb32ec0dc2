package tables

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dgraph-io/badger/v4"
)

// takenOver takes a folder over with no tables but its own.
func takenOver(t *testing.T, root string) (*Set, error) {
	t.Helper()
	s, err := TakeOver(filepath.Join(root, "db"), filepath.Join(root, "build"))
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if err := s.Begin(); err != nil {
		return nil, err
	}
	return open(t, root), nil
}

// twice adds a copy of a table to a level.
func twice(t *testing.T, s *Set, of Table, level int) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(s.dir, of.Name()))
	if err != nil {
		t.Fatal(err)
	}
	of.ID, of.Level = s.lastID.Add(1), level
	list := *s.List()
	list.Tables = append(slices.Clone(list.Tables), of)
	manifest, err := list.encode()
	if err := errors.Join(err, os.WriteFile(filepath.Join(s.dir, of.Name()), b, 0o600),
		os.WriteFile(filepath.Join(s.dir, badger.ManifestFilename), manifest, 0o600)); err != nil {
		t.Fatal(err)
	}
}

func TestTakeOverKeepsWhatBadgerWrote(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "db")
	model := map[string]string{}
	r := rand.New(rand.NewPCG(5, 5))
	for range 4 { // a table for each memory table
		db, err := badger.Open(badger.DefaultOptions(dir).WithLogger(nil).WithCompression(0))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range random(model, r, 300, 200) {
			err = errors.Join(err, db.Update(func(txn *badger.Txn) error {
				if e.Deleted {
					return txn.Delete(e.Key)
				}
				entry := badger.NewEntry(e.Key, e.Value)
				entry.ExpiresAt = e.Expires
				return txn.SetEntry(entry)
			}))
		}
		if err := errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(root, "build"), 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := takenOver(t, root)
	if err != nil {
		t.Fatal(err)
	}
	if n, _ := s.List().Zero(); n != 4 {
		t.Errorf("%d tables are in level 0, want 4", n)
	}
	check(t, s, model, 300)
	window(t, s, random(model, r, 300, 200))
	check(t, s, model, 300)
	if _, err := s.Merge(t.Context(), MergeOptions{Size: tableSize, All: true}); err != nil {
		t.Fatal(err)
	}
	check(t, s, model, 300)
}

func TestEntriesThatStandInTwoTablesAreShownOnce(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	model := map[string]string{}
	r := rand.New(rand.NewPCG(6, 6))
	window(t, s, random(model, r, 300, 200))
	twice(t, s, s.List().Tables[0], 5)
	twice(t, s, s.List().Tables[0], 6)
	s, err := takenOver(t, root)
	if err != nil {
		t.Fatal(err)
	}
	check(t, s, model, 300)
	window(t, s, random(model, r, 300, 200))
	check(t, s, model, 300)
	if _, err := s.Merge(t.Context(), MergeOptions{Size: tableSize, All: true}); err != nil || s.List().Entries() != uint64(len(model)) {
		t.Errorf("a merge leaves %d entries for %d keys, %v", s.List().Entries(), len(model), err)
	}
	check(t, s, model, 300)
}

// Badger merges tables of level 0 into one, so the versions of one may lie around those of another.
func TestAStepOfAMergeBringsNothingBackWhereBadgerMixedVersions(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	around := []Entry{{Key: key(0), Version: 300}, {Key: key(10), Version: 50, Value: []byte("old")}, {Key: key(9999), Version: 300}}
	for k := range 2000 {
		around = append(around, Entry{Key: key(100 + k), Version: 250, Value: make([]byte, 100)})
	}
	between := []Entry{{Key: key(0), Version: 200}, {Key: key(10), Version: 150, Deleted: true}, {Key: key(11), Version: 200}}
	for _, entries := range [][]Entry{around, between} {
		built, err := s.Build(0, 1<<20, sorted(entries))
		if err := errors.Join(err, s.Adopt(Adoption{Add: built})); err != nil {
			t.Fatal(err)
		}
	}
	s, err := takenOver(t, root)
	if err != nil {
		t.Fatal(err)
	}
	left := 1
	ctx := &eachStep{t.Context(), func() error {
		if left--; left < 0 {
			return context.Canceled
		}
		return nil
	}}
	if _, err := s.Merge(ctx, MergeOptions{Size: tableSize, All: true}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	v := s.View()
	defer v.Close()
	if _, ok, err := v.Get(key(10)); ok || err != nil {
		t.Errorf("what was deleted is there: %v, %v", ok, err)
	}
}

func TestTakeOverRefusesWhatItCannotKeep(t *testing.T) {
	for name, row := range map[string]struct {
		change func(t *testing.T, s *Set)
		says   string
	}{
		"no list": {func(t *testing.T, s *Set) {
			if err := os.Remove(filepath.Join(s.dir, badger.ManifestFilename)); err != nil {
				t.Fatal(err)
			}
		}, "MANIFEST is missing"},
		"a level that there is not": {func(t *testing.T, s *Set) { twice(t, s, s.List().Tables[0], levels) }, "of a level that there is not"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			s := open(t, root)
			window(t, s, random(map[string]string{}, rand.New(rand.NewPCG(8, 8)), 300, 200))
			row.change(t, s)
			if _, err := takenOver(t, root); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), row.says) {
				t.Errorf("it gives %v", err)
			}
		})
	}
}

func TestTakeOverFindsFlippedBytesOfATable(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	window(t, s, random(map[string]string{}, rand.New(rand.NewPCG(9, 9)), 100, 60))
	path := filepath.Join(s.dir, s.List().Tables[0].Name())
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want, err := contents(s)
	if err != nil {
		t.Fatal(err)
	}
	for i := range whole {
		if i%97 != 0 && i < len(whole)-200 { // of the footer each
			continue
		}
		b := bytes.Clone(whole)
		b[i] ^= 1 << (i % 8)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		taken, err := TakeOver(s.dir, s.build)
		if err != nil {
			if !errors.Is(err, ErrDamaged) {
				t.Fatalf("byte %d: %v", i, err)
			}
			continue
		}
		got, err := contents(taken)
		if taken.Close(); !errors.Is(err, ErrDamaged) && !maps.Equal(got, want) {
			t.Fatalf("byte %d: %d entries of %d, %v", i, len(got), len(want), err)
		}
	}
}
