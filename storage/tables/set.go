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
	dir    string   // of the tables that the list names
	folder *os.File // dir, open since it is the set's: to sync the names in it
	build  string   // of what is in the making
	look   bool     // see Options
	lastID atomic.Uint64
	pool   *z.AllocatorPool

	merging  sync.Mutex // held for a whole merge
	adopting sync.Mutex // held for a whole adoption

	mu   sync.Mutex // guards what follows
	view *View      // of the list in force; nil before the first
}

// Options of Open.
type Options struct {
	// Look leaves the folder as it is: what is built stays in its own folder, and no list names it
	// before Begin.
	Look bool
	// Damaged is called with a table that is missing or is not what was written, and why. If it
	// returns nil the set goes on without that table. A nil func refuses all of them.
	Damaged func(t Table, err error) error
	// Progress is called with the bytes of the tables that were read so far, and of all. It may be
	// nil.
	Progress func(done, total int64)
}

// Open opens the tables in dir, each of which is what was written. build is an empty folder in the
// same file system. What dir holds besides is removed: only tables that the list names count.
func Open(dir, build string, o Options) (_ *Set, err error) {
	list, err := ReadList(dir)
	if err != nil {
		return nil, err
	}
	s := newSet(dir, build)
	s.look = o.Look
	s.lastID.Store(list.LastID)
	found := &Built{}
	defer func() {
		found.release()
		if err != nil {
			s.Close()
		}
	}()
	var done int64
	for _, t := range list.Tables {
		f, err := openFile(filepath.Join(dir, t.Name()), t)
		if errors.Is(err, ErrDamaged) && o.Damaged != nil {
			err = o.Damaged(t, err)
		}
		if err != nil {
			return nil, err
		}
		if f != nil {
			found.files = append(found.files, f)
		}
		if done += t.Size; o.Progress != nil {
			o.Progress(done, list.Bytes())
		}
	}
	if !s.look {
		if err := s.own(list); err != nil {
			return nil, err
		}
	}
	// Written anew: what a process left whose sync failed only looks written.
	if err := s.replace(*list, found.files); err != nil {
		return nil, err
	}
	return s, nil
}

func newSet(dir, build string) *Set {
	return &Set{dir: dir, build: build, pool: z.NewAllocatorPool(2)}
}

// own makes the folder that of the set: what the list does not name goes.
func (s *Set) own(l *List) (err error) {
	if s.folder, err = os.Open(s.dir); err != nil {
		return fmt.Errorf("cannot open the folder of the tables: %w", err)
	}
	if err := refuseLogs(s.dir); err != nil {
		return err
	}
	return removeUnnamed(s.dir, l)
}

// Begin ends Options.Look: what was built meanwhile comes in force, and the folder is the set's.
func (s *Set) Begin() error {
	s.adopting.Lock()
	defer s.adopting.Unlock()
	v := s.View()
	defer v.Close()
	if err := s.own(v.List); err != nil {
		return err
	}
	s.look = false
	if err := s.move(&Built{files: v.files}); err != nil {
		return err
	}
	return s.replace(*v.List, v.files)
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
	Add    *Built
	Window uint64 // 0 leaves the last one
	Floor  *Floor // nil leaves it
	drop   []*file
}

// Adopt puts tables in force, in place of others. An error that wraps ErrUnknown ends the store.
// After any other nothing has changed, and what was built is gone.
func (s *Set) Adopt(a Adoption) (err error) {
	s.adopting.Lock()
	defer s.adopting.Unlock()
	defer func() {
		if err == nil || errors.Is(err, ErrUnknown) {
			a.Add.release()
		} else {
			s.discard(a.Add)
		}
	}()
	v := s.View()
	defer v.Close()
	next := *v.List
	if a.Window > 0 {
		next.Window = a.Window
	}
	if a.Floor != nil {
		next.Floor = *a.Floor
	}
	if err := s.move(a.Add); err != nil {
		return err
	}
	kept := slices.DeleteFunc(slices.Clone(v.files), func(f *file) bool { return slices.Contains(a.drop, f) })
	if err := s.replace(next, append(kept, a.Add.files...)); err != nil {
		return err
	}
	for _, f := range a.drop {
		_ = os.Remove(filepath.Join(s.dir, f.Name())) // the next start tries again
	}
	return nil
}

// move moves new tables to those that the list names, which may name them then.
func (s *Set) move(b *Built) error {
	if s.look {
		return nil
	}
	for _, f := range b.files {
		to := filepath.Join(s.dir, f.Name())
		if f.path == to { // of a start
			continue
		}
		if err := os.Rename(f.path, to); err != nil {
			return fmt.Errorf("cannot move a new table: %w", err)
		}
		f.path = to
	}
	return unknown(s.folder.Sync())
}

// replace puts a list in force whose tables are some files. Badger opens them before: what it
// cannot read takes nobody's place.
func (s *Set) replace(l List, files []*file) error {
	l.LastID = s.lastID.Load()
	links := filepath.Join(s.build, "view")
	defer os.RemoveAll(links)
	v, err := newView(links, l, files)
	if err != nil {
		return err
	}
	if !s.look {
		err = os.Rename(filepath.Join(links, badger.ManifestFilename), filepath.Join(s.dir, badger.ManifestFilename))
		if err == nil {
			err = s.folder.Sync()
		}
		if err != nil {
			v.Close()
			return unknown(err)
		}
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

func unknown(err error) error {
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	return err
}

// release gives up tables that were built.
func (b *Built) release() {
	for _, f := range b.files {
		f.release()
	}
}

// discard removes tables that no list names.
func (s *Set) discard(b *Built) {
	for _, f := range b.files {
		_ = os.Remove(f.path)
	}
	b.release()
}

// Close closes the view. Readers that still have it end it later.
func (s *Set) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.view != nil {
		s.view.Close()
	}
	s.pool.Release()
	_ = s.folder.Close()
}
