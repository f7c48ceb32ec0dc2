package tables

import (
	"bytes"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestIteratorShowsTheNewestEntryOfEachLiveKey(t *testing.T) {
	s := open(t, t.TempDir())
	window(t, s, []Entry{{Key: []byte("a1"), Value: []byte("old")}, {Key: []byte("a2"), Value: []byte("old")}, {Key: []byte("b1")}})
	window(t, s, []Entry{{Key: []byte("a2"), Deleted: true}, {Key: []byte("a3"), Value: []byte("x"), Expires: 1}})
	window(t, s, []Entry{{Key: []byte("_")}, {Key: []byte("a1"), Value: []byte("new")}, {Key: []byte("a4"), Value: []byte("y"), Expires: 4_000_000_000}})
	v := s.View()
	defer v.Close()
	it := v.Iterator([]byte("a"))
	defer it.Close()
	if it.Valid() {
		t.Error("an iterator stands somewhere before its first Seek")
	}
	want := []Entry{
		{Key: []byte("a1"), Value: []byte("new"), Version: 3},
		{Key: []byte("a3"), Value: []byte("x"), Version: 2, Expires: 1},
		{Key: []byte("a4"), Value: []byte("y"), Version: 3, Expires: 4_000_000_000},
	}
	for key, from := range map[string]int{"": 0, "a": 0, "a2": 1, "a4": 2, "a5": 3} {
		left := want[from:]
		for it.Seek([]byte(key)); it.Valid(); it.Next() {
			if e := it.Entry(); len(left) == 0 || !sameEntry(e, left[0]) {
				t.Fatalf("from %q there is %v, want %v", key, e, left)
			}
			left = left[1:]
		}
		if len(left) > 0 || it.Err() != nil {
			t.Errorf("from %q %v is left out, %v", key, left, it.Err())
		}
	}
}

func TestAnIteratorTellsOfEntriesThatItDoesNotShow(t *testing.T) {
	const keys = 3 << 12
	s := open(t, t.TempDir())
	puts, deletes := make([]Entry, keys), make([]Entry, keys)
	for i := range keys {
		puts[i], deletes[i] = Entry{Key: key(i)}, Entry{Key: key(i), Deleted: true}
	}
	window(t, s, puts)
	window(t, s, deletes)
	v := s.View()
	defer v.Close()
	steps, stop := 0, 0
	walk := func() error {
		it := v.Iterator(nil)
		defer it.Close()
		it.Step = func() error {
			if steps++; steps == stop {
				return os.ErrDeadlineExceeded
			}
			return nil
		}
		if it.Seek(nil); it.Valid() {
			t.Error("it shows something")
		}
		return it.Err()
	}
	if err := walk(); err != nil || steps != 6 {
		t.Errorf("it tells %d times of %d entries, %v", steps, 2*keys, err)
	}
	steps, stop = 0, 2
	if err := walk(); err != os.ErrDeadlineExceeded || steps != 2 {
		t.Errorf("behind %d steps it ends with %v", steps, err)
	}
}

func sameEntry(a, b Entry) bool {
	return string(a.Key) == string(b.Key) && string(a.Value) == string(b.Value) &&
		a.Version == b.Version && a.Expires == b.Expires && a.Deleted == b.Deleted
}

// Pages behind the end of a file fault as those that the device cannot read.
func TestPagesThatCannotBeReadAreDamage(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	model := map[string]string{}
	window(t, s, random(model, rand.New(rand.NewPCG(5, 5)), 400, 300))
	v := s.View()
	defer v.Close()
	it := v.Iterator(nil)
	defer it.Close()
	it.Seek(nil)
	if err := os.Truncate(filepath.Join(root, "db", v.files[0].Name()), 0); err != nil {
		t.Fatal(err)
	}
	if _, _, err := v.Get([]byte(slices.Min(slices.Collect(maps.Keys(model))))); !errors.Is(err, ErrDamaged) {
		t.Errorf("a lookup gives %v", err)
	}
	if err := scan(v, func(Entry) {}); !errors.Is(err, ErrDamaged) {
		t.Errorf("a scan gives %v", err)
	}
	if e := it.Entry(); string(e.Value) != model[string(e.Key)] {
		t.Errorf("what was shown before is %v", e)
	}
}

// rot flips a bit of each block in turn, as a device may do long after the start, and calls fn with
// the key that the block begins with.
func rot(t *testing.T, s *Set, fn func(first string)) {
	t.Helper()
	v := s.View()
	defer v.Close()
	for _, f := range v.files {
		file, err := os.OpenFile(filepath.Join(s.dir, f.Name()), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, first := range f.read.KeySplits(1<<30, nil) {
			key := []byte(first)[:len(first)-8]
			at := int64(bytes.Index(f.data, key)) // the first entry of a block has its whole key
			b := []byte{f.data[at+2]}
			for range 2 {
				b[0] ^= 4
				if _, err := file.WriteAt(b, at+2); err != nil {
					t.Fatal(err)
				}
				if b[0] != f.data[at+2] {
					t.Fatal("the mapping does not show what was written")
				}
				if b[0]&4 != first[2]&4 {
					fn(string(key))
				}
			}
		}
		_ = file.Close()
	}
}

func TestABlockThatRotsAfterTheStartIsFoundByACheckAndByAMerge(t *testing.T) {
	const keys = 600
	s := open(t, t.TempDir())
	model, r := map[string]string{}, rand.New(rand.NewPCG(7, 7))
	window(t, s, random(model, r, keys, keys))
	if _, err := s.Merge(t.Context(), MergeOptions{Size: tableSize, All: true}); err != nil {
		t.Fatal(err)
	}
	window(t, s, random(model, r, keys, keys/2)) // hides a part of what is below
	v := s.View()
	defer v.Close()
	blocks := 0
	rot(t, s, func(first string) {
		blocks++
		if err := v.Check(); !errors.Is(err, ErrDamaged) {
			t.Errorf("block %s: a check gives %v", first, err)
		}
		if _, err := s.Merge(t.Context(), MergeOptions{Size: tableSize, Step: 16 * tableSize, All: true}); !errors.Is(err, ErrDamaged) {
			t.Fatalf("block %s: a merge gives %v", first, err)
		}
	})
	if err := v.Check(); err != nil {
		t.Errorf("sound again: %v", err)
	}
	if blocks < 20 {
		t.Errorf("only %d blocks", blocks)
	}
}

func TestANilPointerIsNoDamage(t *testing.T) {
	try := func(do func()) (err error) {
		defer catchDamage(&err, false)
		do()
		return nil
	}
	if err := try(func() { _ = make([]byte, 1)[len(t.Name()):] }); !errors.Is(err, ErrDamaged) {
		t.Errorf("a length beyond the end gives %v", err)
	}
	defer func() {
		if recover() == nil {
			t.Error("a nil pointer is taken for damage")
		}
	}()
	var f *file
	err := try(func() { f.Size++ })
	t.Errorf("a nil pointer gives %v", err)
}

// A read of neighbours leaves tables out, but none that may have one of them.
func TestKeysBetweenAreReadFromAllTablesThatMayHaveThem(t *testing.T) {
	s := open(t, t.TempDir())
	for from := 0; from < 30; from += 10 { // tables of ten keys
		var some []Entry
		for n := range 10 {
			some = append(some, Entry{Key: key(from + n), Value: key(from + n)})
		}
		window(t, s, some)
	}
	window(t, s, []Entry{{Key: key(15), Deleted: true}})
	v := s.View()
	defer v.Close()
	for _, row := range []struct{ first, last, want int }{{0, 29, 29}, {9, 10, 2}, {19, 20, 2}, {10, 19, 9}, {15, 15, 0}, {40, 50, 0}} {
		it, got := v.Between(key(0)[:2], key(row.first), key(row.last)), 0
		for it.Seek(key(row.first)); it.Valid() && bytes.Compare(it.Entry().Key, key(row.last)) <= 0; it.Next() {
			got++
		}
		if it.Close(); got != row.want || it.Err() != nil {
			t.Errorf("from %d to %d there are %d keys, %v, want %d", row.first, row.last, got, it.Err(), row.want)
		}
	}
}
