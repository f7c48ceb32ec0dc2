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
	"github.com/holdfast-queue/holdfast/storage/disk"
)

// ErrUnknown: a folder could not be synced, or the list not renamed. Nobody knows which list is on
// the device: the store must stop. Both lists are whole, and the next start takes what is there.
var ErrUnknown = errors.New("which tables are on the device is not known")

// Set is the tables of a data folder. Build and Merge may run beside each other and beside readers.
type Set struct {
	dir    string     // of the tables that the list names
	folder *disk.File // dir, to sync the names in it; nil before Begin
	build  string     // of what is in the making
	lastID atomic.Uint64
	pool   *z.AllocatorPool
	output sync.Pool // of *[]byte, what Build writes: the first use of fresh memory is slow
	wait   func()    // Options.Wait

	merging  sync.Mutex  // held for a whole merge
	beside   sync.Mutex  // held for a whole merge beside that one, and while that one begins
	leaves   atomic.Bool // a merge is under way that began without level 1
	adopting sync.Mutex  // held for a whole adoption

	mu     sync.Mutex // guards what follows
	view   *View      // of the list in force; nil before the first
	closed bool
}

// Options of Open.
type Options struct {
	// Damaged is called with a table that is missing or is not what was written, and why. If it
	// returns nil the set goes on without that table. A nil func refuses all of them.
	Damaged func(t Table, err error) error
	// Checked says that each table had its sum a moment ago: it is not read for that again.
	Checked bool
	// Wait is called before each piece of disk.Piece bytes that goes to the device, or that a check or
	// a merge brings from there, and before each Read of a Reader. It may be nil.
	Wait func()
	// Progress is called with the bytes of the tables that were read so far, and of all. It may be
	// nil.
	Progress func(done, total int64)
}

// openers is how many tables are read at a time when a set opens: their sums take a processor more
// than a quick disk.
const openers = 2

// Open opens the tables in dir, each as it was written. build is an empty folder: what is adopted
// stays there until Begin, and nothing in dir changes.
func Open(dir, build string, o Options) (*Set, error) {
	list, err := ReadList(dir)
	if err != nil {
		return nil, err
	}
	return openList(dir, build, list, o)
}

func openList(dir, build string, list *List, o Options) (_ *Set, err error) {
	s := &Set{dir: dir, build: build, pool: z.NewAllocatorPool(2), wait: o.Wait}
	if s.wait == nil {
		s.wait = func() {}
	}
	s.lastID.Store(list.LastID)
	var found Built
	defer func() {
		found.release()
		if err != nil {
			s.Close()
		}
	}()
	var done int64
	for some := range slices.Chunk(list.Tables, openers) {
		var errs [openers]error
		var files [openers]*file
		var opened sync.WaitGroup
		for i, t := range some {
			opened.Go(func() { files[i], errs[i] = s.openFile(filepath.Join(dir, t.Name()), t, o.Checked) })
			if disk.Mounted() { // a test hears the calls in order
				opened.Wait()
			}
		}
		opened.Wait()
		for _, f := range files {
			if f != nil {
				found = append(found, f)
			}
		}
		for i, t := range some {
			if errors.Is(errs[i], ErrDamaged) && o.Damaged != nil {
				errs[i] = o.Damaged(t, errs[i])
			}
			if errs[i] != nil {
				return nil, errs[i]
			}
			if done += t.Size; o.Progress != nil {
				o.Progress(done, list.Bytes)
			}
		}
	}
	if err := s.replace(*list, found); err != nil {
		return nil, err
	}
	return s, nil
}

// Begin makes dir the folder of the set. What was adopted comes in force, and what the list does
// not name goes. build is in the same file system. The list is written anew in any case: what a
// process left whose sync failed only looks written.
func (s *Set) Begin() (err error) {
	strays, err := s.strays()
	if err != nil {
		return err
	}
	if s.folder, err = disk.Open(s.dir); err != nil {
		return fmt.Errorf("cannot open the folder of the tables: %w", err)
	}
	if err := s.Adopt(Adoption{}); err != nil {
		return err
	}
	for _, path := range strays {
		if err := disk.RemoveAll(path); err != nil {
			return unknown(fmt.Errorf("cannot remove what is no table: %w", err))
		}
	}
	return unknown(s.folder.Sync())
}

// Hold takes Begin back: what is adopted from here on stays in build until the next Begin, and
// nothing in dir changes.
func (s *Set) Hold() {
	_ = s.folder.Close()
	s.folder = nil
}

// Foreign returns an error that wraps ErrDamaged if another program wrote to the folder, which may
// be missing. Begin does, too.
func (s *Set) Foreign() error {
	_, err := s.strays()
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// strays returns what the list does not name: a start, or a tool of Badger's, left it. The error
// wraps ErrDamaged if a log of Badger's has something in it: another program wrote what no table
// has.
func (s *Set) strays() (paths []string, err error) {
	files, err := disk.ReadDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("cannot read the folder of the tables: %w", err)
	}
	named := map[string]bool{badger.ManifestFilename: true}
	for _, t := range s.List().Tables {
		named[t.Name()] = true
	}
	for _, f := range files {
		path, ext := filepath.Join(s.dir, f.Name()), filepath.Ext(f.Name())
		if named[f.Name()] {
			continue
		}
		if (ext == ".mem" || ext == ".vlog") && holdsEntries(path) {
			return nil, fmt.Errorf("%w: %s holds what another program wrote", ErrDamaged, f.Name())
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// holdsEntries says whether a log has an entry: one begins behind its head.
func holdsEntries(path string) bool {
	const head = 20
	b := make([]byte, 4096)
	file, err := disk.Open(path)
	if err != nil {
		return true // nobody knows
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

// Beside returns how many tables of level 0 a merge beside the one under way would take.
func (s *Set) Beside() (tables int) {
	v := s.View()
	defer v.Close()
	for _, f := range s.besideOthers(v.files) {
		if f.Level == 0 {
			tables++
		}
	}
	return tables
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
	Add    Built
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
			a.Add.discard()
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
	files := slices.DeleteFunc(slices.Clone(v.files), func(f *file) bool { return slices.Contains(a.drop, f) })
	files = append(files, a.Add...)
	if err := s.move(files); err != nil {
		return err
	}
	if err := s.replace(next, files); err != nil {
		return err
	}
	for _, f := range a.drop {
		if s.folder != nil || filepath.Dir(f.path) == s.build { // else Begin removes it
			_ = disk.Remove(f.path) // the next start tries again
		}
	}
	return nil
}

// move moves tables to where the list may name them.
func (s *Set) move(files []*file) error {
	if s.folder == nil {
		return nil
	}
	for _, f := range files {
		to := filepath.Join(s.dir, f.Name())
		if f.path == to {
			continue
		}
		if err := disk.Rename(f.path, to); err != nil {
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
	defer disk.RemoveAll(links)
	v, err := newView(links, l, files)
	if err != nil {
		return err
	}
	if s.folder != nil {
		err = disk.Rename(filepath.Join(links, badger.ManifestFilename), filepath.Join(s.dir, badger.ManifestFilename))
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

// Close closes the view. Readers that still have it end it later. A second Close does nothing.
func (s *Set) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	if s.view != nil {
		s.view.Close()
	}
	s.pool.Release()
	_ = s.folder.Close()
}
