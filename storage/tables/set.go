package tables

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/ristretto/v2/z"
	"golang.org/x/sys/unix"
)

// ErrUnknown: a folder could not be synced, or the list not renamed. Nobody knows which list is on
// the device: the store must stop. Both lists are whole, and the next start takes what is there.
var ErrUnknown = errors.New("which tables are on the device is not known")

// ErrView: the tables are in force, but could not be opened to read them. Reopen tries again.
var ErrView = errors.New("new tables cannot be opened")

// Set is the tables of a data folder. Build and Merge may run beside each other and beside readers;
// one lock orders what they adopt. Of two merges one waits for the other.
type Set struct {
	dir   string // of the tables that the list names
	build string // of those in the making
	pool  *z.AllocatorPool

	merging  sync.Mutex // of one merge; taken before adopting
	adopting sync.Mutex // of one adoption, from the first rename to the new view

	mu   sync.Mutex // guards what follows
	list *List
	next uint64 // ID of the next table
	view *View

	buffers sync.Pool // of tables in the making: *[]byte
}

// Open opens the tables in dir. build is an empty folder in the same file system. What dir holds
// besides is removed: only tables that the list names count.
func Open(dir, build string) (*Set, error) {
	list, err := ReadList(dir)
	if err != nil {
		return nil, err
	}
	if err := removeUnnamed(dir, list); err != nil {
		return nil, err
	}
	s := &Set{dir: dir, build: build, list: list, next: list.next, pool: z.NewAllocatorPool(2)}
	// Written anew: what a process left whose sync failed only looks written.
	if err := s.commit(list); err != nil {
		return nil, err
	}
	return s, s.Reopen()
}

// Bad is a table that is not what was written.
type Bad struct {
	ID   uint64
	Name string // of its file
	Err  error
}

// Damaged compares the file of each listed table with its size and sum, and returns those that
// differ. It calls progress, which may be nil, with the bytes that it has read, in one call at a
// time. The error is about the system, and not about what a file holds.
func Damaged(dir string, list *List, progress func(n int64)) (bad []Bad, err error) {
	const readers = 2
	work := make(chan Table)
	var mu sync.Mutex // of what the readers share
	var all sync.WaitGroup
	for range readers {
		all.Go(func() {
			for t := range work {
				data, why := mapTable(filepath.Join(dir, tableName(t.ID)), t)
				mu.Lock()
				switch {
				case why == nil:
					_ = unix.Munmap(data)
				case errors.Is(why, ErrDamaged), errors.Is(why, os.ErrNotExist):
					bad = append(bad, Bad{t.ID, tableName(t.ID), fmt.Errorf("%w: %w", ErrDamaged, why)})
				default:
					err = why
				}
				if progress != nil {
					progress(t.Size)
				}
				mu.Unlock()
			}
		})
	}
	for _, t := range list.Tables {
		work <- t
	}
	close(work)
	all.Wait()
	return bad, err
}

// Check returns the first error of Damaged.
func Check(dir string, list *List, progress func(n int64)) error {
	bad, err := Damaged(dir, list, progress)
	if err == nil && len(bad) > 0 {
		err = fmt.Errorf("table %s: %w", bad[0].Name, bad[0].Err)
		if more := len(bad) - 1; more > 0 {
			err = fmt.Errorf("%w (and %d more)", err, more)
		}
	}
	return err
}

// Link makes a folder with the list, and links to its tables in dir. It is for who looks at a
// folder that may not be changed.
func Link(dir, scratch string, list *List) error {
	b, err := list.encode()
	if err != nil {
		return err
	}
	if err := os.Mkdir(scratch, 0o700); err != nil {
		return err
	}
	err = os.WriteFile(filepath.Join(scratch, badger.ManifestFilename), b, 0o600)
	for _, t := range list.Tables {
		path, absErr := filepath.Abs(filepath.Join(dir, tableName(t.ID)))
		err = errors.Join(err, absErr, os.Symlink(path, filepath.Join(scratch, tableName(t.ID))))
	}
	return err
}

// removeUnnamed removes the files that the list does not name. Logs of Badger's own with something
// in them are refused: another program wrote to the folder.
func removeUnnamed(dir string, l *List) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("cannot read the folder of the tables: %w", err)
	}
	for _, f := range files {
		name := f.Name()
		var id uint64
		switch {
		case name == badger.ManifestFilename:
			continue
		case strings.HasSuffix(name, suffix):
			if _, err := fmt.Sscanf(name, "%d"+suffix, &id); err == nil && contains(l.Tables, id) {
				continue
			}
		case strings.HasSuffix(name, ".mem"), strings.HasSuffix(name, ".vlog"):
			if used, err := holdsBytes(filepath.Join(dir, name)); err != nil || used {
				return errors.Join(fmt.Errorf("%w: %s holds what another program wrote", ErrDamaged, name), err)
			}
		}
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("cannot remove what is no table: %w", err)
		}
	}
	return nil
}

// logHead is how many bytes of a log of Badger's stand before its first entry.
const logHead = 20

// holdsBytes says whether a log has anything but zeros behind its head.
func holdsBytes(path string) (bool, error) {
	b, err := os.ReadFile(path)
	return len(b) > logHead && strings.Trim(string(b[logHead:]), "\x00") != "", err
}

// List returns the list in force.
func (s *Set) List() *List {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list
}

// newID returns the ID of a new table.
func (s *Set) newID() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next++
	return s.next - 1
}

// Adoption says what changes together.
type Adoption struct {
	Add     *Built
	Drop    []Table
	Window  uint64 // 0 leaves the last one
	Floor   *Floor // nil leaves it
	Doubled uint64 // see List
}

// Adopt puts tables in force, in place of others, and opens them. Its errors: one that wraps
// ErrView says that they are in force and cannot be read yet, and one that wraps ErrUnknown ends
// the store. After any other nothing has changed, and what was built is gone.
func (s *Set) Adopt(a Adoption) error {
	s.adopting.Lock()
	defer s.adopting.Unlock()
	if err := s.adopt(a); err != nil {
		return err
	}
	return s.reopen()
}

// adopt is Adopt without a new view.
func (s *Set) adopt(a Adoption) (err error) {
	moved := &Built{}
	defer func() {
		if err != nil && !errors.Is(err, ErrUnknown) {
			s.discard(a.Add)
			for _, t := range moved.tables {
				_ = os.Remove(filepath.Join(s.dir, tableName(t.ID)))
			}
		}
	}()
	for _, t := range a.Add.tables {
		if err := os.Rename(filepath.Join(s.build, tableName(t.ID)), filepath.Join(s.dir, tableName(t.ID))); err != nil {
			return fmt.Errorf("cannot move a new table: %w", err)
		}
		moved.tables = append(moved.tables, t)
	}
	if err := syncFolder(s.dir); err != nil {
		return fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	list := s.List().with(a.Add.tables, a.Drop)
	list.Doubled = a.Doubled
	if a.Window > 0 {
		list.Window = a.Window
	}
	if a.Floor != nil {
		list.Floor = *a.Floor
	}
	return s.commit(list)
}

// commit replaces MANIFEST.
func (s *Set) commit(l *List) error {
	s.mu.Lock()
	l.next = s.next
	s.mu.Unlock()
	b, err := l.encode()
	if err != nil {
		return err
	}
	path := filepath.Join(s.dir, newManifest)
	if err := writeTable(path, b); err != nil {
		return errors.Join(fmt.Errorf("cannot write the list of tables: %w", err), removeIfThere(path))
	}
	if err := os.Rename(path, filepath.Join(s.dir, badger.ManifestFilename)); err != nil {
		return fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	if err := syncFolder(s.dir); err != nil {
		return fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	s.mu.Lock()
	s.list = l
	s.mu.Unlock()
	return nil
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func syncFolder(dir string) (err error) {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return f.Sync()
}

// Close closes the view. Readers that still have it end it later.
func (s *Set) Close() {
	s.mu.Lock()
	view := s.view
	s.view = nil
	s.mu.Unlock()
	if view != nil {
		view.Close()
	}
	s.pool.Release()
}
