package tables

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/cespare/xxhash/v2"
	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
	"github.com/dgraph-io/badger/v4/table"
)

// TakeOver reads which tables a folder of Badger's own has. Their list is in force when Name has
// written it: until then nothing in dir changes, and the set can only Build and be read. build is
// an empty folder in the same file system.
func TakeOver(dir, build string) (_ *Set, err error) {
	s := newSet(dir, build)
	found, l := &Built{}, List{Format: listFormat}
	defer func() {
		found.release()
		if err != nil {
			s.Close()
		}
	}()
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot read the folder of the tables: %w", err)
	}
	for _, e := range entries {
		if id, ok := table.ParseFileID(e.Name()); ok {
			s.lastID.Store(max(s.lastID.Load(), id))
		}
	}
	old, err := badgerList(dir)
	if err != nil && (s.lastID.Load() > 0 || !errors.Is(err, os.ErrNotExist)) { // it may have no tables yet
		return nil, fmt.Errorf("%w: the list of tables cannot be read: %w", ErrDamaged, err)
	}
	for id, m := range old.Tables {
		t := Table{ID: id, Level: int(m.Level)}
		f, err := s.describe(t)
		if err == nil {
			found.files = append(found.files, f)
			if m.KeyID != 0 || m.Compression != options.None || t.Level >= levels {
				err = f.damage("it is encrypted or compressed, or of a level that there is not")
			}
		}
		if err != nil {
			return nil, err
		}
		l.Window = max(l.Window, f.Version)
	}
	links := filepath.Join(build, "view")
	defer os.RemoveAll(links)
	s.view, err = newView(links, l, found.files)
	return s, err
}

func badgerList(dir string) (m badger.Manifest, err error) {
	f, err := os.Open(filepath.Join(dir, badger.ManifestFilename))
	if err != nil {
		return m, err
	}
	defer f.Close()
	m, _, err = badger.ReplayManifestFile(f, 0, badger.Options{})
	return m, err
}

// describe reads of a table what a list says. Its blocks are not looked at.
func (s *Set) describe(t Table) (f *file, err error) {
	path := filepath.Join(s.dir, t.Name())
	if t.Size, t.Sum, err = sumFile(path); err != nil {
		return nil, err
	}
	if f, err = openFile(path, t); err == nil {
		f.Entries, f.Version = uint64(f.read.KeyCount()), f.read.MaxVersion()
	}
	return f, err
}

// sumFile reads a file, which it also syncs.
func sumFile(path string) (size int64, sum uint64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	h := xxhash.New()
	if size, err = io.Copy(h, f); err == nil {
		err = f.Sync()
	}
	return size, h.Sum64(), err
}

// Name puts the tables that were taken over in force, with new ones. Then all else goes from their
// folder: also logs, since tables have all that they held.
func (s *Set) Name(a Adoption) error {
	var err error
	if s.folder, err = os.Open(s.dir); err != nil {
		return fmt.Errorf("cannot open the folder of the tables: %w", err)
	}
	if err := s.Adopt(a); err != nil {
		return err
	}
	if err := removeUnnamed(s.dir, s.List()); err != nil {
		return err
	}
	return s.folder.Sync()
}
