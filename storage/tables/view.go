package tables

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync/atomic"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
)

// View is the tables of one list, opened by Badger to read them. It may be used by several
// goroutines. Tables that a later list drops stay until the last view of them is closed.
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

// OpenView opens the tables of a list in a folder that nobody changes. It is for who only looks; a
// folder with files that the list does not name would lose them.
func OpenView(dir string, list *List) (_ *View, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", ErrView, p)
		}
	}()
	db, err := badger.OpenManaged(viewOptions(dir))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrView, err)
	}
	if n := len(db.Tables()); n != len(list.Tables) {
		return nil, errors.Join(fmt.Errorf("%w: %d of %d", ErrView, n, len(list.Tables)), db.Close())
	}
	v := &View{List: list, db: db, txn: db.NewTransactionAt(math.MaxUint64, false)}
	v.refs.Store(1)
	return v, nil
}

// Close gives the view up.
func (v *View) Close() {
	if v.refs.Add(-1) == 0 {
		v.txn.Discard()
		_ = v.db.Close()
	}
}

// View returns the view of the list in force. The caller closes it.
func (s *Set) View() *View {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.view.refs.Add(1)
	return s.view
}

// Reopen opens the tables of the list in force, where Adopt could not.
func (s *Set) Reopen() error {
	s.adopting.Lock()
	defer s.adopting.Unlock()
	return s.reopen()
}

// reopen puts a new view in the place of the one in force, if the list has changed.
func (s *Set) reopen() error {
	list := s.List()
	if s.view != nil && s.view.List == list {
		return nil
	}
	// What the list does not name any more goes. Badger would remove it, too, and give up where it
	// cannot.
	if err := removeUnnamed(s.dir, list); err != nil {
		return fmt.Errorf("%w: %w", ErrView, err)
	}
	v, err := OpenView(s.dir, list)
	if err != nil {
		return err
	}
	s.mu.Lock()
	old := s.view
	s.view = v
	s.mu.Unlock()
	if old != nil {
		old.Close()
	}
	return nil
}

// Get looks a key up. ok is false if it is not there, was deleted, or has expired. The value is the
// caller's. What it does not find may be damaged: who knows that a key is there takes that for
// ErrDamaged.
func (v *View) Get(key []byte) (e Entry, ok bool, err error) {
	defer catchFault(&err, debug.SetPanicOnFault(true))
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
// false. Scan returns how many entries of all versions it saw.
func (v *View) Scan(prefix, from []byte, fn func(Entry) bool) (seen uint64, err error) {
	defer catchFault(&err, debug.SetPanicOnFault(true))
	it := v.txn.NewIterator(badger.IteratorOptions{Prefix: prefix, AllVersions: true})
	defer it.Close()
	var last []byte
	if len(from) == 0 {
		from = prefix
	}
	for it.Seek(from); it.Valid(); it.Next() {
		item := it.Item()
		seen++
		if key := item.Key(); seen > 1 && string(key) == string(last) {
			continue // an older one
		}
		last = append(last[:0], item.Key()...)
		e := Entry{Key: last, Version: item.Version(), Expires: item.ExpiresAt(), Deleted: item.IsDeletedOrExpired()}
		more := true
		err := item.Value(func(b []byte) error {
			e.Value = b
			more = fn(e)
			return nil
		})
		if err != nil {
			return seen, fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		if !more {
			return seen, nil
		}
	}
	return seen, nil
}

// LinkView opens the tables of a folder that may not be changed, through links in an empty folder.
func LinkView(dir, scratch string, list *List) (*View, error) {
	b, err := list.encode()
	if err != nil {
		return nil, err
	}
	err = os.WriteFile(filepath.Join(scratch, badger.ManifestFilename), b, 0o600)
	for _, t := range list.Tables {
		path, absErr := filepath.Abs(filepath.Join(dir, tableName(t.ID)))
		err = errors.Join(err, absErr, os.Symlink(path, filepath.Join(scratch, tableName(t.ID))))
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrView, err)
	}
	return OpenView(scratch, list)
}
