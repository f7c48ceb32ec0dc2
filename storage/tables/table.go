package tables

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"sort"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"
	"github.com/dgraph-io/badger/v4/options"
	"github.com/dgraph-io/badger/v4/table"
	"github.com/dgraph-io/badger/v4/y"
	"golang.org/x/sys/unix"
)

// file is a table that is mapped. Those who read it share it, also when its name is gone.
type file struct {
	Table
	path string
	read *table.Table
	data []byte
	refs atomic.Int64
}

// readOptions are those of Badger for reading a table: each block is checked.
func readOptions() *table.Options { return &table.Options{ChkMode: options.OnBlockRead} }

// openFile maps a file. The error wraps ErrDamaged if the file is missing, or has not the size and
// the sum that t says: of another file Badger could end the process.
func openFile(path string, t Table) (_ *file, err error) {
	from, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if err != nil {
		return nil, err
	}
	defer from.Close()
	name := filepath.Base(path)
	if info, err := from.Stat(); err != nil {
		return nil, err
	} else if info.Size() != t.Size || t.Size == 0 {
		return nil, fmt.Errorf("%w: %s has %d bytes, want %d", ErrDamaged, name, info.Size(), t.Size)
	}
	f := &file{Table: t, path: path}
	f.refs.Store(1)
	if f.data, err = unix.Mmap(int(from.Fd()), 0, int(t.Size), unix.PROT_READ, unix.MAP_SHARED); err != nil {
		return nil, fmt.Errorf("cannot map %s: %w", name, err)
	}
	defer func() {
		if err != nil {
			f.release()
		}
	}()
	defer catchDamage(&err, debug.SetPanicOnFault(true))
	if xxhash.Sum64(f.data) != t.Sum {
		return nil, fmt.Errorf("%w: %s does not have the sum that was written", ErrDamaged, name)
	}
	if f.read, err = table.OpenInMemoryTable(f.data, t.ID, readOptions()); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrDamaged, name, err)
	}
	f.rest()
	return f, nil
}

// rest gives up the memory of a table that was read as a whole.
func (f *file) rest() { _ = unix.Madvise(f.data, unix.MADV_DONTNEED) }

// release ends a use of the table.
func (f *file) release() {
	if f.refs.Add(-1) == 0 {
		_ = unix.Munmap(f.data)
	}
}

// damage is an error about the table.
func (f *file) damage(what any) error { return fmt.Errorf("%w: %s: %v", ErrDamaged, f.Name(), what) }

// catchDamage makes an error of a panic: of Badger, or of a page that the device cannot read. was
// is what SetPanicOnFault returned.
func catchDamage(err *error, was bool) {
	debug.SetPanicOnFault(was)
	if p := recover(); p != nil {
		*err = fmt.Errorf("%w: %v", ErrDamaged, p)
	}
}

// run reads tables one after the other: those of a level, by key, or one of level 0.
//
// Badger's iterator ends where it meets damage, without a word. So a table that ends before its
// last key is damaged, as is one that was read from its first key on and gave another number of
// entries than the list says.
type run struct {
	files []*file
	at    int             // the one that it stands in
	it    *table.Iterator // nil behind the last entry, and after an error
	seen  uint64          // entries of this one
	whole bool            // it was read from its first key on
	err   *error          // of this run and others
}

// Rewind goes to the first entry of the first table.
func (r *run) Rewind() { r.begin(0, nil) }

// Seek goes to the first entry from a key on.
func (r *run) Seek(key []byte) {
	r.begin(sort.Search(len(r.files), func(i int) bool { return y.CompareKeys(r.files[i].read.Biggest(), key) >= 0 }), key)
}

// begin goes to the first entry of a table, or to the first one from a key on, which it has.
func (r *run) begin(at int, key []byte) {
	_ = r.Close()
	if r.at = at; at >= len(r.files) {
		return
	}
	f := r.files[at]
	if r.it = f.read.NewIterator(table.NOCACHE); key == nil {
		r.it.Rewind()
	} else {
		r.it.Seek(key)
	}
	if !r.it.Valid() {
		r.fail("a block cannot be read")
		return
	}
	r.seen, r.whole = 1, bytes.Equal(r.it.Key(), f.read.Smallest())
}

// Next goes to the next entry.
func (r *run) Next() {
	f := r.files[r.at]
	last := bytes.Equal(r.it.Key(), f.read.Biggest())
	r.it.Next()
	switch {
	case r.it.Valid():
		r.seen++
	case !last || r.whole && r.seen != f.Entries:
		r.fail(fmt.Sprintf("it ended behind %d of %d entries", r.seen, f.Entries))
	default:
		r.begin(r.at+1, nil)
	}
}

func (r *run) fail(what string) {
	*r.err = r.files[r.at].damage(what)
	_ = r.Close()
}

// Valid says whether the run stands at an entry.
func (r *run) Valid() bool { return r.it != nil }

// Key returns the key of the entry, with its version.
func (r *run) Key() []byte { return r.it.Key() }

// Value returns the value of the entry.
func (r *run) Value() y.ValueStruct { return r.it.Value() }

// between says that the run stands at the first entry of a table.
func (r *run) between() bool { return r.Valid() && r.seen == 1 }

// Close ends the run.
func (r *run) Close() (err error) {
	if r.it != nil {
		err = r.it.Close()
		r.it = nil
	}
	return err
}

// merged reads tables, which come by level and by key, as one: by key, the highest version first,
// and an entry that stands in two tables once. It stands nowhere before its first Rewind or Seek.
// It must not be read further once err is set.
func merged(files []*file, err *error) y.Iterator {
	var runs []y.Iterator
	for i, f := range files {
		if i == 0 || f.Level == 0 || f.Level != files[i-1].Level {
			runs = append(runs, &run{err: err})
		}
		last := runs[len(runs)-1].(*run)
		last.files = append(last.files, f)
	}
	if len(runs) == 0 { // Badger wants one at least
		runs = append(runs, &run{})
	}
	return table.NewMergeIterator(runs, false)
}
