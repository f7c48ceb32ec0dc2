package tables

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/cespare/xxhash/v2"
	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
	"github.com/dgraph-io/badger/v4/table"
	"github.com/dgraph-io/ristretto/v2/z"
	"golang.org/x/sys/unix"
)

// TakeOver reads which tables a folder of Badger's own has. Their list is in force when Name has
// written it: until then nothing in dir changes, and the set can only Build and read Newest. build
// is an empty folder in the same file system.
func TakeOver(dir, build string) (_ *Set, err error) {
	s := &Set{dir: dir, build: build, pool: z.NewAllocatorPool(2)}
	defer func() {
		if err != nil {
			s.pool.Release()
		}
	}()
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot read the folder of the tables: %w", err)
	}
	for _, f := range files {
		if id, ok := table.ParseFileID(f.Name()); ok {
			s.lastID.Store(max(s.lastID.Load(), id))
		}
	}
	old, err := badgerList(dir)
	if err != nil && (s.lastID.Load() > 0 || !errors.Is(err, os.ErrNotExist)) { // it may have no tables yet
		return nil, fmt.Errorf("%w: the list of tables cannot be read: %w", ErrDamaged, err)
	}
	l := &List{Format: listFormat}
	for id, m := range old.Tables {
		t, err := s.describe(id, int(m.Level))
		if err == nil && (m.KeyID != 0 || m.Compression != options.None || t.Level >= levels) {
			err = errors.New("it is encrypted or compressed, or of a level that there is not")
		}
		if err != nil {
			return nil, fmt.Errorf("%w: table %s: %w", ErrDamaged, Table{ID: id}.Name(), err)
		}
		l.Tables = append(l.Tables, t)
		l.Window = max(l.Window, t.Version)
	}
	links := filepath.Join(build, "view")
	defer os.RemoveAll(links)
	s.view, err = s.openView(links, l)
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
func (s *Set) describe(id uint64, level int) (t Table, err error) {
	path := filepath.Join(s.dir, Table{ID: id}.Name())
	t = Table{ID: id, Level: level}
	if t.Size, t.Sum, err = sumFile(path); err != nil {
		return t, err
	}
	data, err := mapTable(path, t)
	if err != nil {
		return t, err
	}
	defer func() { _ = unix.Munmap(data) }()
	defer catchDamage(&err, debug.SetPanicOnFault(true))
	read, err := table.OpenInMemoryTable(data, id, s.tableOptions(0))
	if err != nil {
		return t, err
	}
	t.Entries, t.Version = uint64(read.KeyCount()), read.MaxVersion()
	return t, nil
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

// Newest calls fn with the newest entry of each key, in order, also with one that is deleted or has
// expired. What fn gets is valid until it returns. All blocks are read. doubled is how many
// entries stand in two tables.
func (s *Set) Newest(fn func(Entry) error) (doubled int64, err error) {
	defer catchDamage(&err, debug.SetPanicOnFault(true))
	v := s.View()
	defer v.Close()
	var failed error
	it := s.merged(v.byKey(), &failed)
	defer it.Close()
	doubled = int64(v.List.Entries())
	var last []byte
	for ; it.Valid() && failed == nil; it.Next() {
		doubled--
		e := entryOf(it.Key(), it.Value())
		if bytes.Equal(e.Key, last) {
			continue
		}
		last = append(last[:0], e.Key...)
		if err := fn(e); err != nil {
			return 0, err
		}
	}
	return doubled, failed
}

// Name puts the tables that were taken over in force, with new ones. Then all else goes from their
// folder: also logs, since tables have all that they held.
func (s *Set) Name(a Adoption) error {
	if err := s.Adopt(a); err != nil {
		return err
	}
	if err := removeUnnamed(s.dir, s.List()); err != nil {
		return err
	}
	return syncFolder(s.dir)
}
