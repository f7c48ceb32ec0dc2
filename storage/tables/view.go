package tables

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync/atomic"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
	"github.com/dgraph-io/badger/v4/y"
	"github.com/holdfast-queue/holdfast/storage/disk"
)

// View is the tables of one list, which Badger opened to read them. It may be used by several
// goroutines. Tables that a later list drops can be read until the view is closed.
type View struct {
	List  *List
	db    *badger.DB
	txn   *badger.Txn // reads at any version
	files []*file     // by level, and by key within each: what merges and scans read
	refs  atomic.Int64
}

// viewOptions returns Badger's options for reading tables: no caches beside the system's, and each
// block is checked.
func viewOptions(dir string) badger.Options {
	return badger.DefaultOptions(dir).WithReadOnly(true).WithBypassLockGuard(true).WithLogger(nil).
		WithBlockCacheSize(0).WithIndexCacheSize(0).WithMetricsEnabled(false).
		WithCompression(options.None).WithChecksumVerificationMode(options.OnBlockRead)
}

// newView opens files as the tables of a list. Badger opens them through links in a folder that has
// nothing else: it removes what no list names.
func newView(links string, l List, files []*file) (_ *View, err error) {
	slices.SortFunc(files, func(a, b *file) int {
		return cmp.Or(cmp.Compare(a.Level, b.Level), y.CompareKeys(a.read.Smallest(), b.read.Smallest()))
	})
	l.Tables = nil
	for _, f := range files {
		l.Tables = append(l.Tables, f.Table)
	}
	l.sum()
	v := &View{List: &l, files: files}
	if err := link(links, v); err != nil {
		return nil, fmt.Errorf("cannot prepare the list of tables: %w", err)
	}
	if v.db, err = badger.OpenManaged(viewOptions(links)); err != nil {
		return nil, fmt.Errorf("cannot open the tables: %w", err)
	}
	if n := len(v.db.Tables()); n != len(files) { // Badger passes over one with a wrong sum
		_ = v.db.Close()
		return nil, fmt.Errorf("%w: %d of %d can be opened", ErrDamaged, n, len(files))
	}
	v.txn = v.db.NewTransactionAt(math.MaxUint64, false)
	for _, f := range files {
		f.refs.Add(1)
	}
	v.refs.Store(1)
	return v, nil
}

// link makes a folder with the list of a view, and links to its tables.
func link(folder string, v *View) error {
	b, err := v.List.encode()
	if err != nil {
		return err
	}
	if err := errors.Join(disk.RemoveAll(folder), disk.Mkdir(folder, 0o700)); err != nil {
		return err
	}
	for _, f := range v.files {
		path, err := filepath.Abs(f.path)
		if err == nil {
			err = disk.Symlink(path, filepath.Join(folder, f.Name()))
		}
		if err != nil {
			return err
		}
	}
	return writeFile(filepath.Join(folder, badger.ManifestFilename), b, func() {})
}

// Close gives the view up.
func (v *View) Close() {
	if v.refs.Add(-1) != 0 {
		return
	}
	v.txn.Discard()
	_ = v.db.Close()
	for _, f := range v.files {
		f.rest() // a later view may have the table, and keep what was read through this one
		f.release()
	}
}

// Rest gives up the memory that scans have taken. It is the system's to take back at any time, but
// counts as the process's until the view is closed.
func (v *View) Rest() {
	for _, f := range v.files {
		f.rest()
	}
}

// Check reads all tables. It returns an error that wraps ErrDamaged if one is not what was written:
// Badger passes over a block that it cannot read.
func (v *View) Check() error {
	for _, f := range v.files {
		if err := f.check(); err != nil {
			return err
		}
	}
	return nil
}

// Get looks a key up. ok is false if it is not there or was deleted. The value is the caller's.
// What it does not find may be damaged: who knows that a key is there takes that for ErrDamaged.
func (v *View) Get(key []byte) (e Entry, ok bool, err error) {
	defer catchDamage(&err, debug.SetPanicOnFault(true))
	item, err := v.txn.Get(key)
	if errors.Is(err, badger.ErrKeyNotFound) {
		return v.seek(key) // it may have expired by Badger's clock, which decides nothing
	}
	if err != nil {
		return e, false, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	e = Entry{Key: key, Version: item.Version(), Expires: item.ExpiresAt()}
	if e.Value, err = item.ValueCopy(nil); err != nil {
		return e, false, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return e, true, nil
}

// seek is Get by an iterator.
func (v *View) seek(key []byte) (e Entry, ok bool, err error) {
	it := v.Iterator(key[:2])
	defer it.Close()
	if it.Seek(key); it.Valid() && bytes.Equal(it.entry.Key, key) {
		e, ok = it.entry, true // nothing else has its bytes
	}
	return e, ok, it.err
}
