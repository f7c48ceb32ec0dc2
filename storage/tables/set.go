package tables

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/ristretto/v2/z"
)

// ErrUnknown: a folder could not be synced, or the list not renamed. Nobody knows which list is on
// the device: the store must stop. Both lists are whole, and the next start takes what is there.
var ErrUnknown = errors.New("which tables are on the device is not known")

// Set is the tables of a data folder. Build and Merge may run beside each other and beside readers.
type Set struct {
	dir     string // of the tables that the list names
	build   string // of what is in the making
	lastID  atomic.Uint64
	pool    *z.AllocatorPool
	buffers sync.Pool // of tables in the making: *[]byte

	merging  sync.Mutex // held for a whole merge
	adopting sync.Mutex // held for a whole adoption

	mu   sync.Mutex // guards what follows
	view *View      // of the list in force; nil before the first
}

// Open opens the tables in dir, whose files Check has seen. build is an empty folder in the same
// file system. What dir holds besides is removed: only tables that the list names count.
func Open(dir, build string) (*Set, error) {
	list, err := ReadList(dir)
	if err != nil {
		return nil, err
	}
	if err := refuseLogs(dir); err != nil {
		return nil, err
	}
	if err := removeUnnamed(dir, list); err != nil {
		return nil, err
	}
	s := &Set{dir: dir, build: build, pool: z.NewAllocatorPool(2)}
	s.lastID.Store(list.LastID)
	// Written anew: what a process left whose sync failed only looks written.
	if err := s.replace(list); err != nil {
		s.pool.Release()
		return nil, err
	}
	return s, nil
}

// removeUnnamed removes what the list does not name: what a start, or a tool of Badger's, left.
func removeUnnamed(dir string, l *List) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("cannot read the folder of the tables: %w", err)
	}
	named := map[string]bool{badger.ManifestFilename: true}
	for _, t := range l.Tables {
		named[t.Name()] = true
	}
	for _, f := range files {
		if named[f.Name()] {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, f.Name())); err != nil {
			return fmt.Errorf("cannot remove what is no table: %w", err)
		}
	}
	return nil
}

// refuseLogs returns ErrDamaged if a log of Badger's has something in it: another program wrote
// what no table has.
func refuseLogs(dir string) error {
	files, err := os.ReadDir(dir)
	for _, f := range files {
		ext := filepath.Ext(f.Name())
		if (ext == ".mem" || ext == ".vlog") && holdsEntries(filepath.Join(dir, f.Name())) {
			return fmt.Errorf("%w: %s holds what another program wrote", ErrDamaged, f.Name())
		}
	}
	return err
}

// holdsEntries says whether a log has an entry: one begins behind its head.
func holdsEntries(path string) bool {
	const head = 20
	b := make([]byte, 4096)
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	n, _ := file.ReadAt(b, 0)
	return len(bytes.Trim(b[min(head, n):n], "\x00")) > 0
}

// List returns the list in force.
func (s *Set) List() *List {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.view.List
}

// View returns the view of the list in force. The caller closes it.
func (s *Set) View() *View {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.view.refs.Add(1)
	return s.view
}

// Adoption says what changes together.
type Adoption struct {
	Add     *Built
	Drop    []Table
	Window  uint64 // 0 leaves the last one
	Floor   *Floor // nil leaves it
	Doubled int64  // by how much List.Doubled changes
}

// Adopt puts tables in force, in place of others. An error that wraps ErrUnknown ends the store.
// After any other nothing has changed, and what was built is gone.
func (s *Set) Adopt(a Adoption) (err error) {
	s.adopting.Lock()
	defer s.adopting.Unlock()
	defer func() {
		if err != nil && !errors.Is(err, ErrUnknown) {
			s.discard(a.Add)
		}
	}()
	next := *s.List()
	next.Tables = slices.DeleteFunc(slices.Clone(next.Tables), func(t Table) bool {
		return slices.ContainsFunc(a.Drop, func(d Table) bool { return d.ID == t.ID })
	})
	next.Tables = append(next.Tables, a.Add.tables...)
	next.Doubled += uint64(a.Doubled)
	if a.Window > 0 {
		next.Window = a.Window
	}
	if a.Floor != nil {
		next.Floor = *a.Floor
	}
	for _, t := range a.Add.tables {
		if err := os.Rename(filepath.Join(s.build, t.Name()), filepath.Join(s.dir, t.Name())); err != nil {
			return fmt.Errorf("cannot move a new table: %w", err)
		}
	}
	if err := syncFolder(s.dir); err != nil {
		return fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	if err := s.replace(&next); err != nil {
		return err
	}
	for _, t := range a.Drop {
		_ = os.Remove(filepath.Join(s.dir, t.Name())) // the next start tries again
	}
	return nil
}

// replace puts a list in force. Badger opens its tables first, by links: what it cannot read takes
// nobody's place, and it finds no file in that folder that it would remove.
func (s *Set) replace(l *List) error {
	l.LastID = s.lastID.Load()
	links := filepath.Join(s.build, "view")
	defer os.RemoveAll(links)
	v, err := s.openView(links, l)
	if err != nil {
		return err
	}
	err = os.Rename(filepath.Join(links, badger.ManifestFilename), filepath.Join(s.dir, badger.ManifestFilename))
	if err == nil {
		err = syncFolder(s.dir)
	}
	if err != nil {
		v.Close()
		return fmt.Errorf("%w: %w", ErrUnknown, err)
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

// discard removes tables that no list names.
func (s *Set) discard(b *Built) {
	for _, t := range b.tables {
		_ = os.Remove(filepath.Join(s.build, t.Name()))
		_ = os.Remove(filepath.Join(s.dir, t.Name()))
	}
}

// Close closes the view. Readers that still have it end it later.
func (s *Set) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.view.Close()
	s.pool.Release()
}
