package tables

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"
	"github.com/dgraph-io/badger/v4/options"
	"github.com/dgraph-io/badger/v4/table"
	"github.com/holdfast-queue/holdfast/storage/disk"
	"golang.org/x/sys/unix"
)

// file is a table that is mapped. Those who read it share it, also when its name is gone.
type file struct {
	Table
	path string
	read *table.Table
	data []byte
	refs atomic.Int64

	merging atomic.Bool // a merge has taken it
	wait    func()      // that of the set
}

// readOptions returns Badger's options for reading a table: each block is checked.
func readOptions() *table.Options { return &table.Options{ChkMode: options.OnBlockRead} }

// openFile maps a file. The error wraps ErrDamaged if the file is missing, or has not the size and,
// unless that was checked, the sum that t says: of another file Badger could end the process.
func (s *Set) openFile(path string, t Table, checked bool) (_ *file, err error) {
	f := &file{Table: t, path: path, wait: s.wait}
	from, err := disk.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if err != nil {
		return nil, err
	}
	defer from.Close()
	if info, err := from.Stat(); err != nil {
		return nil, err
	} else if info.Size() != t.Size || t.Size == 0 {
		return nil, f.damage(fmt.Sprintf("it has %d bytes, want %d", info.Size(), t.Size))
	}
	if f.data, err = from.Map(t.Size); err != nil {
		return nil, fmt.Errorf("cannot map %s: %w", t.Name(), err)
	}
	f.refs.Store(1)
	defer func() {
		if err != nil {
			f.release()
		}
	}()
	defer catchDamage(&err, debug.SetPanicOnFault(true))
	if !checked {
		if err := f.check(); err != nil {
			return nil, err
		}
	}
	if f.read, err = table.OpenInMemoryTable(f.data, t.ID, readOptions()); err != nil {
		return nil, f.damage(err)
	}
	return f, nil
}

// check compares the table with the sum that was written.
func (f *file) check() (err error) {
	defer catchDamage(&err, debug.SetPanicOnFault(true))
	sum := xxhash.New()
	for piece := range slices.Chunk(f.data, disk.Piece) {
		f.wait()
		bring(piece)
		_, _ = sum.Write(piece)
	}
	if sum.Sum64() != f.Sum {
		return f.damage("it does not have the sum that was written")
	}
	f.rest()
	return nil
}

// content reads all entries of the table.
func (f *file) content() (d digest, err error) {
	defer catchDamage(&err, debug.SetPanicOnFault(true))
	r := run{files: []*file{f}}
	defer r.close()
	for err = r.next(); err == nil && r.valid(); err = r.next() {
		d.add(r.it.Key(), r.it.Value())
	}
	f.rest()
	return d, err
}

// rest gives up the memory that reading the table took.
func (f *file) rest() { _ = unix.Madvise(f.data, unix.MADV_DONTNEED) }

// release ends a use of the table.
func (f *file) release() {
	if f.refs.Add(-1) == 0 {
		_ = unix.Munmap(f.data)
		f.data = nil // so that no later rest gives up what others have mapped there
	}
}

// damage is an error about the table.
func (f *file) damage(what any) error { return fmt.Errorf("%w: %s: %v", ErrDamaged, f.Name(), what) }

// catchDamage makes an error of a panic: of Badger, or of a page that the device cannot read. was
// must come from SetPanicOnFault. A nil pointer is no damage: it is passed on.
func catchDamage(err *error, was bool) {
	debug.SetPanicOnFault(was)
	p := recover()
	_, page := p.(interface{ Addr() uintptr })
	if e, ok := p.(runtime.Error); ok && !page && strings.Contains(e.Error(), "nil pointer") {
		panic(p)
	}
	if p != nil {
		*err = fmt.Errorf("%w: %v", ErrDamaged, p)
	}
}

// run reads tables one after the other: all of a level, by key, or one of level 0. It stands
// nowhere before the first next.
//
// Badger's iterator ends where it meets damage, without a word. So each table must give as many
// entries as the list says.
type run struct {
	files []*file         // what is left; it stands in the first
	it    *table.Iterator // nil behind the last entry, and after an error
	seen  uint64          // entries of the first file so far
}

// next goes to the next entry.
func (r *run) next() error {
	for len(r.files) > 0 {
		f := r.files[0]
		if r.it == nil {
			r.it, r.seen = f.read.NewIterator(table.NOCACHE), 0
			r.it.Rewind()
		} else {
			r.it.Next()
		}
		if r.it.Valid() {
			r.seen++
			return nil
		}
		r.close()
		if r.seen != f.Entries {
			return f.damage(fmt.Sprintf("it ended behind %d of %d entries", r.seen, f.Entries))
		}
		r.files = r.files[1:]
	}
	return nil
}

// valid says whether the run stands at an entry.
func (r *run) valid() bool { return r.it != nil }

// entry returns the entry, which is valid until next.
func (r *run) entry() Entry { return entryOf(r.it.Key(), r.it.Value()) }

// close ends the run.
func (r *run) close() {
	if r.it != nil {
		_ = r.it.Close()
		r.it = nil
	}
}
