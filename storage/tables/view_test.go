package tables

import (
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestIteratorShowsTheNewestEntryOfEachKeyOnce(t *testing.T) {
	s := open(t, t.TempDir())
	window(t, s, []Entry{{Key: []byte("a1"), Value: []byte("old")}, {Key: []byte("a2"), Value: []byte("old")}, {Key: []byte("b1")}})
	window(t, s, []Entry{{Key: []byte("a2"), Deleted: true}, {Key: []byte("a3"), Value: []byte("x"), Expires: 1}})
	window(t, s, []Entry{{Key: []byte("a1"), Value: []byte("new")}, {Key: []byte("a4"), Value: []byte("y"), Expires: 4_000_000_000}})
	v := s.View()
	defer v.Close()
	it := v.Iterator([]byte("a"))
	defer it.Close()
	if it.Valid() {
		t.Error("an iterator stands somewhere before its first Seek")
	}
	want := []Entry{
		{Key: []byte("a1"), Value: []byte("new"), Version: 3},
		{Key: []byte("a2"), Version: 2, Deleted: true},
		{Key: []byte("a3"), Value: []byte("x"), Version: 2, Expires: 1, Deleted: true},
		{Key: []byte("a4"), Value: []byte("y"), Version: 3, Expires: 4_000_000_000},
	}
	for from, key := range []string{"", "a2", "a20", "a4", "a5"} {
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
	if it.Seek(nil); it.Seen != 6+4+2+1+0+1 {
		t.Errorf("it saw %d entries", it.Seen)
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
	if err := os.Truncate(filepath.Join(root, "db", v.byKey()[0].Name()), 0); err != nil {
		t.Fatal(err)
	}
	if _, _, err := v.Get([]byte(slices.Min(slices.Collect(maps.Keys(model))))); !errors.Is(err, ErrDamaged) {
		t.Errorf("a lookup gives %v", err)
	}
	if _, err := v.Scan(nil, nil, func(Entry) bool { return true }); !errors.Is(err, ErrDamaged) {
		t.Errorf("a scan gives %v", err)
	}
}
