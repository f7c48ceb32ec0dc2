package tables

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/dgraph-io/badger/v4"
	"golang.org/x/sys/unix"

	"github.com/holdfast-queue/holdfast/storage/inject"
)

func open(t testing.TB, root string) *Set {
	t.Helper()
	dir, build := filepath.Join(root, "db"), filepath.Join(root, "build")
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.RemoveAll(build), os.Mkdir(build, 0o700)); err != nil {
		t.Fatal(err)
	}
	s, err := Open(dir, build, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	if err := s.Begin(); err != nil {
		t.Fatal(err)
	}
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
	if err := s.Adopt(Adoption{Add: b, Window: n, Floor: &Floor{Batch: n}}); err != nil {
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

// check compares the tables with the model: a scan and lookups.
func check(t testing.TB, s *Set, model map[string]string, keys int) {
	t.Helper()
	v := s.View()
	defer v.Close()
	if got, err := contents(s); err != nil || !maps.Equal(got, model) {
		t.Fatalf("a scan shows %d keys of %d, %v", len(got), len(model), err)
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

var errNoRoom = errors.New("there is no room")

// beside writes a window and merges beside the merge under way, which may end at any step.
func beside(t *testing.T, s *Set, model map[string]string, r *rand.Rand, keys int) {
	for range 1 + r.IntN(2) {
		window(t, s, random(model, r, keys, 1+r.IntN(keys)))
	}
	check(t, s, model, keys)
	left := r.IntN(4)
	before, takes := s.List().Besides, s.Beside()
	m, err := s.Merge(t.Context(), MergeOptions{Beside: true, Size: tableSize, Room: func(int64, int64) error {
		if left--; left < 0 {
			return errNoRoom
		}
		return nil
	}})
	if err != nil && !errors.Is(err, errNoRoom) || m.Any != (takes > 0) || err == nil && m.Any && s.List().Besides == 0 {
		t.Fatalf("a merge of %d tables beside another one, %d were made before: %+v, %v", takes, before, m, err)
	}
	check(t, s, model, keys)
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
				steps := r.IntN(6)
				o := MergeOptions{Size: tableSize, All: r.IntN(2) == 0, Upper: int64(r.IntN(2) * r.IntN(1<<17)), Room: func(int64, int64) error {
					if r.IntN(2) == 0 {
						beside(t, s, model, r, keys)
					}
					if steps--; steps < 0 {
						return errNoRoom
					}
					return nil
				}}
				if _, err := s.Merge(t.Context(), o); err != nil && !errors.Is(err, errNoRoom) {
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
		if n := s.List().Entries; n != uint64(len(model)) {
			t.Errorf("after a merge of everything there are %d entries for %d keys", n, len(model))
		}
	}
}

func TestAStepOfAMergeTakesLittleRoomHoweverWideTheTablesBelowAre(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	value := bytes.Repeat([]byte("v"), 100)
	window(t, s, []Entry{{Key: key(0), Value: value}, {Key: key(5000), Value: value}})
	if _, err := s.Merge(t.Context(), MergeOptions{Size: tableSize, All: true}); err != nil {
		t.Fatal(err)
	}
	var entries []Entry
	for k := 1; k < 5000; k++ {
		entries = append(entries, Entry{Key: key(k), Value: value})
	}
	window(t, s, entries)
	steps := 0
	_, err := s.Merge(t.Context(), MergeOptions{Size: tableSize, All: true, Room: func(int64, int64) error {
		steps++
		var n int64
		err := filepath.WalkDir(filepath.Join(root, "build"), func(_ string, d fs.DirEntry, err error) error {
			if info, fails := d.Info(); err == nil && !d.IsDir() {
				err, n = fails, n+info.Size()
			}
			return err
		})
		if n == 0 || n > 4*tableSize {
			t.Errorf("a step makes %d bytes, with tables of %d", n, tableSize)
		}
		return err
	}})
	if err != nil || steps < 20 || s.List().Entries != 5001 {
		t.Errorf("a merge in %d steps leaves %d entries, %v", steps, s.List().Entries, err)
	}
}

// eachStep calls a function before each step of a merge.
type eachStep struct {
	context.Context
	fn func() error
}

func (c *eachStep) Err() error { return c.fn() }

func TestMergeThatIsCutOffLeavesAWholeState(t *testing.T) {
	const keys = 4500
	r := rand.New(rand.NewPCG(7, 7))
	root := t.TempDir()
	s := open(t, root)
	model := map[string]string{}
	cut := 0
	for i := range 8 {
		window(t, s, random(model, r, keys, keys/2))
		left := i % 4
		ctx := &eachStep{t.Context(), func() error {
			if left--; left < 0 {
				return context.Canceled
			}
			return nil
		}}
		before := s.List()
		_, err := s.Merge(ctx, MergeOptions{Size: tableSize, All: i%3 == 0})
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if err != nil && s.List() != before {
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
	if cut < 2 {
		t.Errorf("only %d merges were cut off between two steps", cut)
	}
	if _, err := s.Merge(t.Context(), MergeOptions{Size: tableSize, All: true}); err != nil || s.List().Entries != uint64(len(model)) {
		t.Errorf("a merge behind one that was cut off leaves %d entries for %d keys, %v", s.List().Entries, len(model), err)
	}
	check(t, s, model, keys)
}

func TestEachStepOfAMergeIsAWholeStateToStartFrom(t *testing.T) {
	const keys = 5000
	r := rand.New(rand.NewPCG(6, 6))
	root := t.TempDir()
	s := open(t, root)
	model := map[string]string{}
	for range 2 {
		window(t, s, random(model, r, keys, 2*keys))
		if _, err := s.Merge(t.Context(), MergeOptions{Size: tableSize}); err != nil {
			t.Fatal(err)
		}
		window(t, s, random(model, r, keys, keys/4))
	}
	window(t, s, random(model, r, keys, keys/4))
	var copies []string
	ctx := &eachStep{t.Context(), func() error {
		copies = append(copies, t.TempDir())
		return os.CopyFS(filepath.Join(copies[len(copies)-1], "db"), os.DirFS(filepath.Join(root, "db")))
	}}
	if _, err := s.Merge(ctx, MergeOptions{Size: tableSize, Step: 16 * tableSize, All: true}); err != nil || len(copies) < 3 {
		t.Fatalf("%d steps, %v", len(copies), err)
	}
	check(t, s, model, keys)
	for step, root := range copies {
		s := open(t, root)
		model := maps.Clone(model)
		check(t, s, model, keys)
		window(t, s, random(model, r, keys, keys/4))
		check(t, s, model, keys)
		if _, err := s.Merge(t.Context(), MergeOptions{Size: tableSize, All: true}); err != nil || s.List().Entries != uint64(len(model)) {
			t.Errorf("step %d: %d entries for %d keys, %v", step, s.List().Entries, len(model), err)
		}
		check(t, s, model, keys)
	}
}

func TestAHeldSetLeavesItsFolderAsItWasUntilItBegins(t *testing.T) {
	const keys = 2000
	r := rand.New(rand.NewPCG(7, 7))
	root, as := t.TempDir(), t.TempDir()
	s := open(t, root)
	model := map[string]string{}
	window(t, s, random(model, r, keys, keys))
	before := maps.Clone(model)
	s.Hold()
	for range 3 {
		window(t, s, random(model, r, keys, keys))
		if _, err := s.Merge(t.Context(), MergeOptions{Size: tableSize, Step: tableSize, All: true}); err != nil {
			t.Fatal(err)
		}
		window(t, s, random(model, r, keys, keys/4))
	}
	check(t, s, model, keys)
	if err := os.CopyFS(filepath.Join(as, "db"), os.DirFS(filepath.Join(root, "db"))); err != nil {
		t.Fatal(err)
	}
	check(t, open(t, as), before, keys)
	if err := s.Begin(); err != nil {
		t.Fatal(err)
	}
	check(t, open(t, root), model, keys)
}

func TestWhatAMergeTakes(t *testing.T) {
	for _, c := range []struct {
		name  string
		sizes [levels]int64
		all   bool
		want  int
	}{
		{"into the deepest level where none is taken", [levels]int64{9}, false, 6},
		{"above a level that is larger", [levels]int64{9, 0, 0, 10}, false, 2},
		{"with a level that is not larger", [levels]int64{9, 0, 0, 9}, false, 3},
		{"with each that is not larger than all above", [levels]int64{1, 0, 1, 2, 4, 9}, false, 4},
		{"no level below one that is larger", [levels]int64{9, 0, 0, 10, 1}, false, 2},
		{"with level 2 however large", [levels]int64{1, 0, 10, 12}, false, 2},
		{"with level 2, and what is not larger with it", [levels]int64{1, 0, 10, 11}, false, 3},
		{"level 1 alone into the deepest free level", [levels]int64{9, 1, 0, 0, 10}, false, 3},
		{"level 1 with level 2 alone", [levels]int64{9, 9, 1, 1}, false, 2},
		{"all that is meant", [levels]int64{1, 10, 0, 100}, true, 3},
		{"all, without level 0", [levels]int64{0, 0, 5, 100}, true, 3},
	} {
		var files []*file
		for n, size := range c.sizes {
			if size > 0 {
				files = append(files, &file{Table: Table{Level: n, Size: size}})
			}
		}
		if got := output(files, c.all); got != c.want {
			t.Errorf("%s: into level %d, want %d", c.name, got, c.want)
		}
	}
}

func TestAMergeOfTheOldestWindowsTakesAllThatMayBeOlderThanLevel1(t *testing.T) {
	var files []*file
	for version := range uint64(6) {
		files = append(files, &file{Table: Table{Level: 0, Size: 10, Version: version + 1}})
	}
	for _, c := range []struct{ level1, most, want uint64 }{{0, 1, 1}, {0, 25, 2}, {4, 1, 4}, {4, 50, 5}} {
		all := files
		if c.level1 > 0 {
			all = append(slices.Clone(files), &file{Table: Table{Level: besideLevel, Size: 10, Version: c.level1}})
		}
		got := oldest(all, int64(c.most))
		if n := uint64(len(got) - (len(all) - len(files))); n != c.want {
			t.Errorf("with versions up to %d in level 1, %d bytes of windows are %d, want %d", c.level1, c.most, n, c.want)
		}
	}
}

func TestAMergeDropsWhatHidesOnlyAtTheBottom(t *testing.T) {
	s := open(t, t.TempDir())
	many := []Entry{{Key: key(1), Value: []byte("old")}, {Key: key(2), Value: []byte("old")}}
	for n := range 2000 {
		many = append(many, Entry{Key: key(10 + n), Value: []byte("value")})
	}
	merge := func(all bool, want uint64) {
		t.Helper()
		if _, err := s.Merge(t.Context(), MergeOptions{Size: tableSize, All: all, Now: 1000}); err != nil {
			t.Fatal(err)
		}
		if n := s.List().Entries; n != want {
			t.Errorf("%d entries are left, want %d", n, want)
		}
		v := s.View()
		defer v.Close()
		for _, n := range []int{1, 2} {
			if e, _, err := v.Get(key(n)); len(e.Value) > 0 || err != nil {
				t.Errorf("key %d is back with %q, %v", n, e.Value, err)
			}
		}
	}
	window(t, s, many)
	if _, err := s.Merge(t.Context(), MergeOptions{Size: tableSize}); err != nil {
		t.Fatal(err)
	}
	window(t, s, []Entry{{Key: key(1), Deleted: true}, {Key: key(2), Expires: 1000}, {Key: key(3), Expires: 1001}})
	merge(false, 2005)
	merge(true, 2001)
}

func TestAMergeThatReadsTooLittleIsNotAdopted(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	model := map[string]string{}
	window(t, s, random(model, rand.New(rand.NewPCG(3, 3)), 400, 300))
	s.Close()
	list := *s.List()
	list.Tables = slices.Clone(list.Tables)
	list.Tables[0].Entries++
	b, err := list.encode()
	if err := errors.Join(err, os.WriteFile(filepath.Join(root, "db", badger.ManifestFilename), b, 0o600)); err != nil {
		t.Fatal(err)
	}
	s = open(t, root)
	before := s.List()
	if _, err := s.Merge(t.Context(), MergeOptions{Size: tableSize, All: true}); !errors.Is(err, ErrDamaged) || s.List() != before {
		t.Errorf("the merge gives %v, and another list: %v", err, s.List() != before)
	}
	if left, err := os.ReadDir(filepath.Join(root, "build")); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v, %v", left, err)
	}
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
	err := scan(v, func(e Entry) { got[string(e.Key)] = string(e.Value) })
	if err != nil || !maps.Equal(got, before) {
		t.Errorf("an old view shows %d keys of %d, %v", len(got), len(before), err)
	}
}

func TestAdoptionsAtOnceAreAllKept(t *testing.T) {
	s, start := open(t, t.TempDir()), make(chan struct{})
	var all sync.WaitGroup
	for i := range 40 {
		built, err := s.Build(0, tableSize, sorted([]Entry{{Key: key(i), Value: []byte("value"), Version: 1}}))
		all.Go(func() {
			<-start
			if err := errors.Join(err, s.Adopt(Adoption{Add: built})); err != nil {
				t.Error(err)
			}
		})
	}
	close(start)
	all.Wait()
	if n := len(s.List().Tables); n != 40 {
		t.Errorf("%d tables of 40 are in force", n)
	}
}

func TestASecondCloseOfASetEndsNoReader(t *testing.T) {
	s := open(t, t.TempDir())
	window(t, s, []Entry{{Key: key(1), Value: []byte("value")}})
	v := s.View()
	defer v.Close()
	s.Close()
	s.Close()
	if e, ok, err := v.Get(key(1)); !ok || err != nil || string(e.Value) != "value" {
		t.Errorf("the reader gets %q, %v, %v", e.Value, ok, err)
	}
}

func TestEveryFlippedBitOfATableIsFound(t *testing.T) {
	if testing.Short() {
		t.Skip("a table is opened 60,000 times")
	}
	root := t.TempDir()
	s := open(t, root)
	var entries []Entry
	for n := range 400 {
		entries = append(entries, Entry{Key: key(n), Version: 1, Value: make([]byte, 140), Expires: uint64(n)})
	}
	built, err := s.Build(0, 1<<20, sorted(entries))
	if err := errors.Join(err, s.Adopt(Adoption{Add: built, Window: 1})); err != nil {
		t.Fatal(err)
	}
	list := s.List()
	path := filepath.Join(root, "db", list.Tables[0].Name())
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	// The file is changed through a mapping, which is faster than writing it 500,000 times.
	b, err := unix.Mmap(int(file.Fd()), 0, int(list.Tables[0].Size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil || len(b) < 60<<10 {
		t.Fatal(len(b), err)
	}
	defer func() { _ = unix.Munmap(b) }()
	for i := range b {
		for bit := range 8 {
			if !inject.Every() && bit != i%8 {
				continue
			}
			b[i] ^= 1 << bit
			if _, err := s.openFile(path, list.Tables[0], false); !errors.Is(err, ErrDamaged) {
				t.Fatalf("bit %d of byte %d: %v", bit, i, err)
			}
			b[i] ^= 1 << bit
		}
	}
	if f, err := s.openFile(path, list.Tables[0], false); err != nil {
		t.Error(err)
	} else {
		f.release()
	}
}

func TestTablesWithoutTheirListAreRefused(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	window(t, s, []Entry{{Key: key(1)}})
	s.Close()
	db := filepath.Join(root, "db")
	if err := os.Remove(filepath.Join(db, badger.ManifestFilename)); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(db, filepath.Join(root, "build"), Options{}); !errors.Is(err, ErrDamaged) {
		t.Errorf("the start gives %v", err)
	}
	if left, err := os.ReadDir(db); err != nil || len(left) == 0 {
		t.Errorf("of the tables are left: %v, %v", left, err)
	}
}

func TestSystemAFewEntriesTakeLittleMemory(t *testing.T) {
	s := open(t, t.TempDir())
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	b, err := s.Build(0, 16<<20, sorted([]Entry{{Key: key(1), Version: 1, Deleted: true}}))
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	b.discard()
	if took := after.TotalAlloc - before.TotalAlloc; took > 8<<20 {
		t.Errorf("a table of one entry takes %d KiB of memory, at most 8,192 are expected", took>>10)
	}
}
