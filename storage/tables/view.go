package tables

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync/atomic"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
	"github.com/dgraph-io/badger/v4/y"
)

// View is the tables of one list, which Badger opened to read them. It may be used by several
// goroutines. Tables that a later list drops can be read until the view is closed.
type View struct {
	List  *List
	db    *badger.DB
	txn   *badger.Txn // reads at any version
	files []*file     // by level, and by key within each: what merges read
	refs  atomic.Int64
}

// viewOptions are those of Badger for reading tables: no caches beside the system's, and each block
// is checked.
func viewOptions(dir string) badger.Options {
	return badger.DefaultOptions(dir).WithReadOnly(true).WithBypassLockGuard(true).WithLogger(nil).
		WithBlockCacheSize(0).WithIndexCacheSize(0).WithMetricsEnabled(false).
		WithCompression(options.None).WithChecksumVerificationMode(options.OnBlockRead)
}

// newView opens files, whose tables become those of the list. Badger opens them through links in a
// folder that has nothing else: it removes what no list names.
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
	if err := errors.Join(os.RemoveAll(folder), os.Mkdir(folder, 0o700)); err != nil {
		return err
	}
	for _, f := range v.files {
		path, err := filepath.Abs(f.path)
		if err == nil {
			err = os.Symlink(path, filepath.Join(folder, f.Name()))
		}
		if err != nil {
			return err
		}
	}
	return writeFile(filepath.Join(folder, badger.ManifestFilename), b)
}

// Close gives the view up.
func (v *View) Close() {
	if v.refs.Add(-1) > 0 {
		return
	}
	v.txn.Discard()
	_ = v.db.Close()
	for _, f := range v.files {
		f.release()
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

// Get looks a key up. ok is false if it is not there, was deleted, or has expired. The value is the
// caller's. What it does not find may be damaged: who knows that a key is there takes that for
// ErrDamaged.
func (v *View) Get(key []byte) (e Entry, ok bool, err error) {
	defer catchDamage(&err, debug.SetPanicOnFault(true))
	item, err := v.txn.Get(key)
	if errors.Is(err, badger.ErrKeyNotFound) {
		return e, false, nil
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

// Iterator steps through the keys of a view that have a prefix, in order: the newest entry of each,
// if that is not deleted and has not expired. It stands nowhere before its first Seek. One
// goroutine at a time may use it.
type Iterator struct {
	badger *badger.Iterator
	entry  Entry // valid as long as it has a key
	err    error
}

// Iterator returns an iterator over the keys that have a prefix. It must be closed before the view.
func (v *View) Iterator(prefix []byte) *Iterator {
	return &Iterator{badger: v.txn.NewIterator(badger.IteratorOptions{Prefix: prefix})}
}

// Seek goes to the first key from one on that has the prefix.
func (i *Iterator) Seek(key []byte) {
	defer catchDamage(&i.err, debug.SetPanicOnFault(true))
	i.badger.Seek(key)
	i.load()
}

// Next goes to the next key. It may be called only while Valid.
func (i *Iterator) Next() {
	defer catchDamage(&i.err, debug.SetPanicOnFault(true))
	i.badger.Next()
	i.load()
}

// nearSteps is how many steps are tried before a seek, which costs as much as some thirty of them.
const nearSteps = 16

// Advance is Seek to a key that is not before any that was asked for since the last Seek. It is
// quick where that is near.
func (i *Iterator) Advance(key []byte) {
	for n := 0; n < nearSteps && i.Valid() && bytes.Compare(i.entry.Key, key) < 0; n++ {
		i.Next()
	}
	if i.err == nil && (!i.Valid() || bytes.Compare(i.entry.Key, key) < 0) {
		i.Seek(key)
	}
}

// load reads the entry that Badger stands at.
func (i *Iterator) load() {
	if i.entry = (Entry{}); !i.badger.Valid() {
		return
	}
	item := i.badger.Item()
	err := item.Value(func(value []byte) error { // a buffer of the item, which Next gives to another one
		i.entry = Entry{Key: item.Key(), Value: value, Version: item.Version(), Expires: item.ExpiresAt()}
		return nil
	})
	if err != nil {
		i.err = fmt.Errorf("%w: %w", ErrDamaged, err)
	}
}

// Valid says whether the iterator stands at a key. It does not behind the last one, nor after an
// error.
func (i *Iterator) Valid() bool { return i.err == nil && i.entry.Key != nil }

// Entry returns what the iterator stands at. Its bytes are valid until Next or Seek.
func (i *Iterator) Entry() Entry { return i.entry }

// Err returns an error that wraps ErrDamaged if a part of the tables could not be read.
func (i *Iterator) Err() error { return i.err }

// Close ends the iterator.
func (i *Iterator) Close() { i.badger.Close() }
