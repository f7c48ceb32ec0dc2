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

// View is the tables of one list, opened by Badger to read them. It may be used by several
// goroutines. Tables that a later list drops can be read until the view is closed.
type View struct {
	List *List
	db   *badger.DB
	txn  *badger.Txn // reads at any version
	refs atomic.Int64
}

// viewOptions are those of Badger for reading tables: no caches beside the system's, and each block
// is checked.
func viewOptions(dir string) badger.Options {
	return badger.DefaultOptions(dir).WithReadOnly(true).WithBypassLockGuard(true).WithLogger(nil).
		WithBlockCacheSize(0).WithIndexCacheSize(0).WithMetricsEnabled(false).
		WithCompression(options.None).WithChecksumVerificationMode(options.OnBlockRead)
}

// Link makes a folder with a list, and links to its tables in dir. Badger opens that as it would
// open dir, and changes nothing there.
func Link(dir, folder string, l *List) error {
	from, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	b, err := l.encode()
	if err != nil {
		return err
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		return err
	}
	for _, t := range l.Tables {
		if err := os.Symlink(filepath.Join(from, t.Name()), filepath.Join(folder, t.Name())); err != nil {
			return err
		}
	}
	return writeFile(filepath.Join(folder, badger.ManifestFilename), b)
}

// openView opens the tables of a list through links in a folder, which may go then.
func (s *Set) openView(links string, l *List) (*View, error) {
	if err := errors.Join(os.RemoveAll(links), Link(s.dir, links, l)); err != nil {
		return nil, fmt.Errorf("cannot prepare the list of tables: %w", err)
	}
	db, err := badger.OpenManaged(viewOptions(links))
	if err != nil {
		return nil, fmt.Errorf("cannot open the tables: %w", err)
	}
	if n := len(db.Tables()); n != len(l.Tables) { // Badger passes over one with a wrong sum
		_ = db.Close()
		return nil, fmt.Errorf("%w: %d of %d can be opened", ErrDamaged, n, len(l.Tables))
	}
	v := &View{List: l, db: db, txn: db.NewTransactionAt(math.MaxUint64, false)}
	v.refs.Store(1)
	return v, nil
}

// byKey returns the tables by level, and by key within each.
func (v *View) byKey() []Table {
	first := make(map[uint64][]byte) // keys with versions
	for _, t := range v.db.Tables() {
		first[t.ID] = t.Left
	}
	return slices.SortedFunc(slices.Values(v.List.Tables), func(a, b Table) int {
		return cmp.Or(cmp.Compare(a.Level, b.Level), y.CompareKeys(first[a.ID], first[b.ID]))
	})
}

// Close gives the view up.
func (v *View) Close() {
	if v.refs.Add(-1) == 0 {
		v.txn.Discard()
		_ = v.db.Close()
	}
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

// Scan calls fn with each key from one on that has a prefix, in order: the newest entry of it, also
// one that is deleted or has expired. What fn gets is valid until it returns. fn ends the scan with
// false. Scan returns how many entries of all versions it saw: damage can end a scan early without
// an error, so who needs all of a view compares that with its list.
func (v *View) Scan(prefix, from []byte, fn func(Entry) bool) (seen uint64, err error) {
	it := v.Iterator(prefix)
	defer it.Close()
	for it.Seek(from); it.Valid() && fn(it.Entry()); it.Next() {
	}
	return it.Seen, it.Err()
}

// Iterator steps through the keys of a view that have a prefix, in order. It stands nowhere before
// its first Seek. One goroutine at a time may use it.
type Iterator struct {
	Seen   uint64 // entries of all versions that were passed or stood at; see Scan
	badger *badger.Iterator
	entry  Entry
	last   []byte // the key that Next left
	err    error
}

// Iterator returns an iterator over the keys that have a prefix. It must be closed before the view.
func (v *View) Iterator(prefix []byte) *Iterator {
	return &Iterator{badger: v.txn.NewIterator(badger.IteratorOptions{Prefix: prefix, AllVersions: true})}
}

// Seek goes to the first key from one on, which has the prefix; without one to the first of all.
func (it *Iterator) Seek(key []byte) {
	defer catchDamage(&it.err, debug.SetPanicOnFault(true))
	it.badger.Seek(key)
	it.load()
}

// Next goes to the next key. It may be called only while Valid.
func (it *Iterator) Next() {
	defer catchDamage(&it.err, debug.SetPanicOnFault(true))
	it.last = append(it.last[:0], it.entry.Key...)
	it.badger.Next()
	for it.badger.Valid() && bytes.Equal(it.badger.Item().Key(), it.last) {
		it.Seen++
		it.badger.Next()
	}
	it.load()
}

// load reads the entry that Badger stands at.
func (it *Iterator) load() {
	if !it.badger.Valid() {
		return
	}
	it.Seen++
	item := it.badger.Item()
	it.entry = Entry{
		Key: item.Key(), Version: item.Version(), Expires: item.ExpiresAt(), Deleted: item.IsDeletedOrExpired(),
	}
	err := item.Value(func(b []byte) error {
		it.entry.Value = b // a buffer of the item, which Next gives to another one
		return nil
	})
	if err != nil {
		it.err = fmt.Errorf("%w: %w", ErrDamaged, err)
	}
}

// Valid says whether the iterator stands at a key. It does not behind the last one, nor after an
// error.
func (it *Iterator) Valid() bool { return it.err == nil && it.badger.Valid() }

// Entry returns the newest entry of the key, also one that is deleted or has expired: it has
// Deleted set. Its bytes are valid until Next or Seek.
func (it *Iterator) Entry() Entry { return it.entry }

// Err returns ErrDamaged if a part of the tables could not be read. The iterator then stays where
// it is.
func (it *Iterator) Err() error { return it.err }

// Close ends the iterator.
func (it *Iterator) Close() { it.badger.Close() }
