package tables

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/cespare/xxhash/v2"
	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
	"github.com/dgraph-io/badger/v4/table"
	"github.com/dgraph-io/badger/v4/y"
	"github.com/dgraph-io/ristretto/v2/z"
	"golang.org/x/sys/unix"
)

// TakeOver reads which tables a folder of Badger's own has. Their list is in force when Name has
// written it: until then nothing in dir changes, and the set can only Build and read Newest. build
// is an empty folder in the same file system.
func TakeOver(dir, build string) (_ *Set, err error) {
	s := &Set{dir: dir, build: build, list: &List{}, next: 1}
	defer func() {
		if err == nil {
			s.pool = z.NewAllocatorPool(2)
		}
	}()
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot read the folder of the tables: %w", err)
	}
	for _, f := range files {
		if id, ok := table.ParseFileID(f.Name()); ok {
			s.next = max(s.next, id+1)
		}
	}
	old, err := badgerList(dir)
	if errors.Is(err, os.ErrNotExist) && s.next == 1 { // it has no tables
		return s, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w: the list of tables cannot be read: %w", ErrDamaged, err)
	}
	var all []Table
	for id, m := range old.Tables {
		t, err := s.describe(id, int(m.Level))
		if err == nil && (m.KeyID != 0 || m.Compression != options.None || t.Level >= levels) {
			err = errors.New("it is encrypted or compressed, or of a level that there is not")
		}
		if err != nil {
			return nil, fmt.Errorf("%w: table %s: %w", ErrDamaged, tableName(id), err)
		}
		all = append(all, t)
		s.list.Window = max(s.list.Window, t.Version)
	}
	s.list = s.list.with(all, nil)
	return s, nil
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
	path := filepath.Join(s.dir, tableName(id))
	t = Table{ID: id, Level: level}
	if t.Size, t.Sum, err = sumFile(path); err != nil {
		return t, err
	}
	data, err := mapTable(path, t)
	if err != nil {
		return t, err
	}
	defer func() { _ = unix.Munmap(data) }()
	defer catchPanic(&err, debug.SetPanicOnFault(true))
	o := s.tableOptions(0)
	read, err := table.OpenInMemoryTable(data, id, &o)
	if err != nil {
		return t, err
	}
	t.Entries, t.Version, t.First = uint64(read.KeyCount()), read.MaxVersion(), bytes.Clone(y.ParseKey(read.Smallest()))
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
// expired. What fn gets is valid until it returns. All blocks are read. doubled is how many entries
// stand in two tables.
func (s *Set) Newest(fn func(Entry) error) (doubled uint64, err error) {
	m := &merge{s: s, plan: plan{above: s.List().Tables}}
	all := m.inputs()
	defer func() {
		for _, r := range all {
			r.close()
		}
	}()
	defer catchPanic(&err, debug.SetPanicOnFault(true))
	if err := m.runs.start(); err != nil {
		return 0, err
	}
	for len(m.runs) > 0 {
		e := m.runs[0].entry()
		switch c := bytes.Compare(e.Key, m.last); {
		case c > 0:
			err = fn(e)
		case c < 0:
			err = fmt.Errorf("%w: tables of one level overlap", ErrDamaged)
		case e.Version == m.version:
			doubled++
		}
		m.last, m.version = append(m.last[:0], e.Key...), e.Version
		if err = errors.Join(err, m.runs.advance()); err != nil {
			return 0, err
		}
	}
	return doubled, nil
}

// catchPanic makes an error of a fault, and of what Badger does where a footer or a block is
// damaged. was is what SetPanicOnFault returned.
func catchPanic(err *error, was bool) {
	debug.SetPanicOnFault(was)
	if p := recover(); p != nil {
		*err = fmt.Errorf("%w: %v", ErrDamaged, p)
	}
}

// Name puts the tables that were taken over in force, with new ones. Then all else goes from their
// folder: also logs, since tables have all that they held.
func (s *Set) Name(a Adoption) error {
	if err := removeIfThere(filepath.Join(s.dir, newManifest)); err != nil { // of a start cut short
		return err
	}
	if err := s.adopt(a); err != nil {
		return err
	}
	files, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		if strings.HasSuffix(f.Name(), ".mem") || strings.HasSuffix(f.Name(), ".vlog") {
			if err := os.Remove(filepath.Join(s.dir, f.Name())); err != nil {
				return err
			}
		}
	}
	if err := removeUnnamed(s.dir, s.List()); err != nil {
		return err
	}
	return syncFolder(s.dir)
}
