package tables

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/dgraph-io/badger/v4"
)

func open(t testing.TB, root string) *Set {
	t.Helper()
	dir, build := filepath.Join(root, "db"), filepath.Join(root, "build")
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.RemoveAll(build), os.Mkdir(build, 0o700)); err != nil {
		t.Fatal(err)
	}
	s, err := Open(dir, build)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// sorted gives entries by key.
func sorted(entries []Entry) iter.Seq2[Entry, error] {
	entries = slices.Clone(entries)
	slices.SortFunc(entries, func(a, b Entry) int {
		return cmp.Or(bytes.Compare(a.Key, b.Key), cmp.Compare(b.Version, a.Version))
	})
	return func(yield func(Entry, error) bool) {
		for _, e := range entries {
			if !yield(e, nil) {
				return
			}
		}
	}
}

const tableSize = 16 << 10

// window writes entries as the next window.
func window(t testing.TB, s *Set, entries []Entry) {
	t.Helper()
	n := s.List().Window + 1
	for i := range entries {
		entries[i].Version = n
	}
	b, err := s.Build(0, tableSize, sorted(entries))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Adopt(Adoption{Add: b, Window: n, Floor: &Floor{Batch: n}, Doubled: s.List().Doubled}); err != nil {
		t.Fatal(err)
	}
}

func key(n int) []byte { return fmt.Appendf(nil, " q%016d", n) }

// random makes the entries of a window, and notes in the model what they leave.
func random(model map[string]string, r *rand.Rand, keys, n int) (entries []Entry) {
	taken := map[int]bool{}
	for range n {
		k := r.IntN(keys)
		if taken[k] {
			continue
		}
		taken[k] = true
		e := Entry{Key: key(k), Value: make([]byte, r.IntN(300))}
		for i := range e.Value {
			e.Value[i] = byte(r.Uint32())
		}
		switch r.IntN(4) {
		case 0:
			e.Deleted, e.Value = true, nil
			delete(model, string(e.Key))
		case 1:
			e.Expires = uint64(r.IntN(2)) * 4_000_000_000 // never, or far away
			fallthrough
		default:
			model[string(e.Key)] = string(e.Value)
		}
		entries = append(entries, e)
	}
	return entries
}

// check compares the tables with the model: a scan, lookups, and the count of entries.
func check(t testing.TB, s *Set, model map[string]string, keys int) {
	t.Helper()
	v := s.View()
	defer v.Close()
	got := map[string]string{}
	seen, err := v.Scan(nil, nil, func(e Entry) bool {
		if !e.Deleted {
			got[string(e.Key)] = string(e.Value)
		}
		return true
	})
	if err != nil || !maps.Equal(got, model) {
		t.Fatalf("a scan shows %d keys of %d, %v", len(got), len(model), err)
	}
	if want := v.List.Entries(); seen != want {
		t.Fatalf("a scan saw %d entries, the list says %d (%d doubled)", seen, want, v.List.Doubled)
	}
	for range 20 {
		k := key(rand.IntN(keys))
		e, ok, err := v.Get(k)
		if want, there := model[string(k)]; err != nil || ok != there || string(e.Value) != want {
			t.Fatalf("%s is there: %v, want %v, %v", k, ok, there, err)
		}
	}
}

func TestBadgerOpensTheFolder(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	model := map[string]string{}
	r := rand.New(rand.NewPCG(1, 2))
	for range 5 {
		window(t, s, random(model, r, 500, 300))
	}
	s.Close()
	for _, o := range []badger.Options{
		badger.DefaultOptions(filepath.Join(root, "db")).WithReadOnly(true),
		badger.DefaultOptions(filepath.Join(root, "db")),
	} {
		db, err := badger.Open(o.WithLogger(nil))
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		err = db.View(func(txn *badger.Txn) error {
			it := txn.NewIterator(badger.DefaultIteratorOptions)
			defer it.Close()
			for it.Rewind(); it.Valid(); it.Next() {
				value, err := it.Item().ValueCopy(nil)
				if err != nil {
					return err
				}
				got[string(it.Item().Key())] = string(value)
			}
			return nil
		})
		if !o.ReadOnly {
			err = errors.Join(err, db.Update(func(txn *badger.Txn) error { return txn.Set([]byte("k"), []byte("v")) }))
		}
		if err := errors.Join(err, db.Close()); err != nil || !maps.Equal(got, model) {
			t.Errorf("Badger shows %d keys of %d, %v", len(got), len(model), err)
		}
	}
	if _, err := ReadList(filepath.Join(root, "db")); !errors.Is(err, ErrDamaged) {
		t.Errorf("what another program wrote gives %v", err)
	}
}

func TestMergesKeepWhatCounts(t *testing.T) {
	for seed := range uint64(3) {
		r := rand.New(rand.NewPCG(seed, 3))
		root := t.TempDir()
		s := open(t, root)
		model := map[string]string{}
		keys := 100 << (seed % 3 * 2)
		for range 25 {
			window(t, s, random(model, r, keys, 1+r.IntN(keys)))
			check(t, s, model, keys)
			if r.IntN(3) == 0 {
				if _, err := s.Merge(t.Context(), MergeOptions{Size: tableSize, All: r.IntN(4) == 0}); err != nil {
					t.Fatal(err)
				}
				check(t, s, model, keys)
			}
			if r.IntN(6) == 0 {
				s.Close()
				s = open(t, root)
				check(t, s, model, keys)
			}
		}
		if _, err := s.Merge(t.Context(), MergeOptions{Size: tableSize, All: true}); err != nil {
			t.Fatal(err)
		}
		check(t, s, model, keys)
		if n := s.List().Entries(); n != uint64(len(model)) {
			t.Errorf("after a merge of everything there are %d entries for %d keys", n, len(model))
		}
	}
}

// stop is done after some steps of a merge.
type stop struct {
	context.Context
	steps int
}

func (c *stop) Err() error {
	if c.steps--; c.steps < 0 {
		return context.Canceled
	}
	return nil
}

func TestMergeThatIsCutOffLeavesAWholeState(t *testing.T) {
	const keys = 6000
	r := rand.New(rand.NewPCG(7, 7))
	root := t.TempDir()
	s := open(t, root)
	model := map[string]string{}
	cut := 0
	for i := range 12 {
		window(t, s, random(model, r, keys, keys/2))
		_, err := s.Merge(&stop{t.Context(), i % 4}, MergeOptions{Size: tableSize, All: i%3 == 0})
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if s.List().Doubled > 0 {
			cut++
		}
		check(t, s, model, keys)
		window(t, s, random(model, r, keys, keys/10))
		check(t, s, model, keys)
		if i%2 == 0 {
			s.Close()
			s = open(t, root)
		}
	}
	if cut < 3 {
		t.Errorf("only %d merges left entries twice", cut)
	}
	if _, err := s.Merge(t.Context(), MergeOptions{Size: tableSize}); err != nil || s.List().Doubled != 0 {
		t.Errorf("a merge behind one that was cut off: %d doubled, %v", s.List().Doubled, err)
	}
	check(t, s, model, keys)
}

func TestOldViewsStayWhole(t *testing.T) {
	s := open(t, t.TempDir())
	model := map[string]string{}
	r := rand.New(rand.NewPCG(4, 4))
	window(t, s, random(model, r, 400, 300))
	v, before := s.View(), maps.Clone(model)
	defer v.Close()
	window(t, s, random(model, r, 400, 300))
	if _, err := s.Merge(t.Context(), MergeOptions{Size: tableSize, All: true}); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	seen, err := v.Scan(nil, nil, func(e Entry) bool {
		if !e.Deleted {
			got[string(e.Key)] = string(e.Value)
		}
		return true
	})
	if err != nil || seen != v.List.Entries() || !maps.Equal(got, before) {
		t.Errorf("an old view shows %d keys of %d, %v", len(got), len(before), err)
	}
}

func TestEveryFlippedBitOfATableIsFound(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	window(t, s, random(map[string]string{}, rand.New(rand.NewPCG(9, 9)), 300, 200))
	s.Close()
	list := s.List()
	path := filepath.Join(root, "db", tableName(list.Tables[0].ID))
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range b {
		b[i] ^= 1 << (i % 8)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := Check(filepath.Join(root, "db"), list, nil); !errors.Is(err, ErrDamaged) {
			t.Fatalf("byte %d: %v", i, err)
		}
		b[i] ^= 1 << (i % 8)
	}
	if err := errors.Join(os.WriteFile(path, b, 0o600), Check(filepath.Join(root, "db"), list, nil)); err != nil {
		t.Error(err)
	}
}

func FuzzList(f *testing.F) {
	l := &List{Window: 3, Floor: Floor{1, 2, 3, 4}, next: 9, Tables: []Table{{ID: 7, Level: 1, Size: 10, Sum: 11, Entries: 12, Version: 2, First: []byte("k")}}}
	b, err := l.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		if l, err := decode(b); err == nil {
			again, err := l.encode()
			if err != nil {
				t.Fatal(err)
			}
			if same, err := decode(again); err != nil || fmt.Sprint(same) != fmt.Sprint(l) {
				t.Errorf("%v becomes %v, %v", l, same, err)
			}
		}
	})
}
