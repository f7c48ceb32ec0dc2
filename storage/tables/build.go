package tables

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/cespare/xxhash/v2"
	"github.com/dgraph-io/badger/v4/options"
	"github.com/dgraph-io/badger/v4/table"
	"github.com/dgraph-io/badger/v4/y"
	"golang.org/x/sys/unix"
)

// Entry is a key with a value, as it stands in a table. Of the entries of one key the one with the
// highest version counts.
type Entry struct {
	Key, Value []byte
	Version    uint64
	Expires    uint64 // Unix seconds; 0 for never
	Deleted    bool   // the key has no value from this version on
}

const deletedMeta = 1 // Badger's bit of a deleted entry

// tableOptions are those of the tables that holdfast makes. Badger reads them with its defaults.
func (s *Set) tableOptions(size int64) table.Options {
	return table.Options{
		TableSize: uint64(size), BlockSize: 4096, BloomFalsePositive: 0.01,
		ChkMode: options.OnBlockRead, AllocPool: s.pool,
	}
}

// Built is tables that were made, and that no list names yet.
type Built struct{ tables []Table }

// Build makes tables of some level from entries, which come sorted by key, the highest version of a
// key first. Each is about so many bytes. What it made is written, synced, and read back: it is
// what went in. After an error nothing is left.
func (s *Set) Build(level int, size int64, entries iter.Seq2[Entry, error]) (_ *Built, err error) {
	b := &Built{}
	var t *tableBuilder
	defer func() {
		if err != nil {
			s.discard(b)
		}
		if t != nil {
			t.builder.Close()
		}
	}()
	for e, err := range entries {
		if err != nil {
			return nil, err
		}
		if t == nil {
			t = s.newTable(level, size)
		}
		if t.add(e); t.builder.ReachedCapacity() {
			if err := t.finish(b); err != nil {
				return nil, err
			}
			t.builder.Close()
			t = nil
		}
	}
	if t != nil {
		if err := t.finish(b); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// discard removes tables that nothing names.
func (s *Set) discard(b *Built) {
	for _, t := range b.tables {
		_ = os.Remove(filepath.Join(s.build, tableName(t.ID)))
	}
}

// tableBuilder makes one table.
type tableBuilder struct {
	s       *Set
	options table.Options
	builder *table.Builder
	table   Table
	content digest
	key     []byte
}

func (s *Set) newTable(level int, size int64) *tableBuilder {
	o := s.tableOptions(size)
	return &tableBuilder{s: s, options: o, builder: table.NewTableBuilder(o), table: Table{Level: level}}
}

func (t *tableBuilder) add(e Entry) {
	t.key = versioned(t.key, e.Key, e.Version)
	v := y.ValueStruct{Value: e.Value, ExpiresAt: e.Expires}
	if e.Deleted {
		v.Meta = deletedMeta
	}
	t.builder.Add(t.key, v, 0)
	t.content.add(t.key, v)
	if t.table.Entries++; t.table.First == nil {
		t.table.First = bytes.Clone(e.Key)
	}
	t.table.Version = max(t.table.Version, e.Version)
}

// finish writes the table, reads it back, and adds it to what was built.
func (t *tableBuilder) finish(b *Built) error {
	s := t.s
	data := t.builder.Done()
	kept, _ := s.buffers.Get().(*[]byte)
	if kept == nil || cap(*kept) < data.Size {
		b := make([]byte, data.Size)
		kept = &b
	}
	defer s.buffers.Put(kept)
	buffer := (*kept)[:data.Size]
	data.Copy(buffer)
	t.table.ID = s.newID()
	t.table.Size, t.table.Sum = int64(len(buffer)), xxhash.Sum64(buffer)
	path := filepath.Join(s.build, tableName(t.table.ID))
	err := writeTable(path, buffer)
	if err == nil {
		err = t.readBack(path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("cannot make table %s: %w", tableName(t.table.ID), err), os.Remove(path))
	}
	b.tables = append(b.tables, t.table)
	return nil
}

// piece is how much of a table is on its way to the device at a time: a sync of the journal waits
// behind two of them at most.
const piece = 1 << 20

// writeTable makes a file and syncs it.
func writeTable(path string, b []byte) (err error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	for at := 0; at < len(b); at += piece {
		n := min(piece, len(b)-at)
		if _, err := file.WriteAt(b[at:at+n], int64(at)); err != nil {
			return err
		}
		writeBehind(file, int64(at), int64(n))
	}
	return file.Sync()
}

// readBack compares the file with what went in.
func (t *tableBuilder) readBack(path string) (err error) {
	data, err := mapTable(path, t.table)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Munmap(data) }()
	defer catchDamage(&err, debug.SetPanicOnFault(true))
	read, err := table.OpenInMemoryTable(data, t.table.ID, &t.options)
	if err != nil {
		return err
	}
	it := read.NewIterator(table.NOCACHE)
	var content digest
	var n uint64
	for it.Rewind(); it.Valid(); it.Next() {
		content.add(it.Key(), it.Value())
		n++
	}
	if n != t.table.Entries || content != t.content {
		return fmt.Errorf("%w: %d entries were read back of %d, or others", ErrDamaged, n, t.table.Entries)
	}
	return nil
}

// digest is a sum of entries, in any order.
type digest struct{ sum, count uint64 }

func (d *digest) add(key []byte, v y.ValueStruct) {
	sum := xxhash.Sum64(key)*31 + xxhash.Sum64(v.Value)
	d.sum += (sum*31+v.ExpiresAt)*31 + uint64(v.Meta)
	d.count++
}

// mapTable maps the file of a table, if it has the size and the sum that the list says.
func mapTable(path string, t Table) (data []byte, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() != t.Size || t.Size == 0 {
		return nil, fmt.Errorf("%w: %s has %d bytes, want %d", ErrDamaged, filepath.Base(path), info.Size(), t.Size)
	}
	if data, err = unix.Mmap(int(file.Fd()), 0, int(t.Size), unix.PROT_READ, unix.MAP_SHARED); err != nil {
		return nil, fmt.Errorf("cannot map %s: %w", filepath.Base(path), err)
	}
	defer func() {
		if err != nil {
			_ = unix.Munmap(data)
		}
	}()
	defer catchDamage(&err, debug.SetPanicOnFault(true))
	_ = unix.Madvise(data, unix.MADV_SEQUENTIAL)
	if xxhash.Sum64(data) != t.Sum {
		return nil, fmt.Errorf("%w: %s does not have the sum that was written", ErrDamaged, filepath.Base(path))
	}
	return data, nil
}

// catchDamage makes an error of a panic: of Badger, or of a page that the device cannot read. was is
// what SetPanicOnFault returned.
func catchDamage(err *error, was bool) {
	debug.SetPanicOnFault(was)
	if p := recover(); p != nil {
		*err = fmt.Errorf("%w: %v", ErrDamaged, p)
	}
}
