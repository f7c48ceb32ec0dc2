package tables

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"
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

// badgerKey is the key of an entry as Badger has it, with the version.
func (e *Entry) badgerKey(dst []byte) []byte {
	return binary.BigEndian.AppendUint64(append(dst[:0], e.Key...), math.MaxUint64-e.Version)
}

func (e *Entry) badgerValue() y.ValueStruct {
	v := y.ValueStruct{Value: e.Value, ExpiresAt: e.Expires}
	if e.Deleted {
		v.Meta = deletedMeta
	}
	return v
}

func entryOf(key []byte, v y.ValueStruct) Entry {
	return Entry{
		Key: y.ParseKey(key), Value: v.Value, Version: y.ParseTs(key), Expires: v.ExpiresAt, Deleted: v.Meta&deletedMeta != 0,
	}
}

// tableOptions are those of the tables that holdfast makes. Badger reads them with its defaults.
func (s *Set) tableOptions(size int64) *table.Options {
	return &table.Options{
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
	b, t := &Built{}, s.newTable(level, size)
	defer func() {
		t.Close()
		if err != nil {
			s.discard(b)
		}
	}()
	for e, err := range entries {
		if err == nil && t.ReachedCapacity() {
			err = t.finish(s, b)
			t.Close()
			t = s.newTable(level, size)
		}
		if err != nil {
			return nil, err
		}
		t.add(&e)
	}
	if !t.Empty() {
		err = t.finish(s, b)
	}
	return b, err
}

// tableBuilder makes one table.
type tableBuilder struct {
	*table.Builder
	table   Table
	content digest
	key     []byte
}

func (s *Set) newTable(level int, size int64) *tableBuilder {
	return &tableBuilder{Builder: table.NewTableBuilder(*s.tableOptions(size)), table: Table{Level: level}}
}

func (t *tableBuilder) add(e *Entry) {
	t.key = e.badgerKey(t.key)
	v := e.badgerValue()
	t.Add(t.key, v, 0)
	t.content.add(t.key, v)
	t.table.Version = max(t.table.Version, e.Version)
}

// finish writes the table, reads it back, and adds it to what was built, also after an error: then
// that has what must go.
func (t *tableBuilder) finish(s *Set, b *Built) error {
	data := t.Done()
	kept, _ := s.buffers.Get().(*[]byte)
	if kept == nil || cap(*kept) < data.Size {
		more := make([]byte, data.Size)
		kept = &more
	}
	defer s.buffers.Put(kept)
	buffer := (*kept)[:data.Size]
	data.Copy(buffer)
	t.table.ID, t.table.Entries = s.lastID.Add(1), t.content.count
	t.table.Size, t.table.Sum = int64(len(buffer)), xxhash.Sum64(buffer)
	b.tables = append(b.tables, t.table)
	path := filepath.Join(s.build, t.table.Name())
	err := writeFile(path, buffer)
	if err == nil {
		err = t.readBack(path, s)
	}
	if err != nil {
		return fmt.Errorf("cannot make table %s: %w", filepath.Base(path), err)
	}
	return nil
}

// piece is how much of a table is on its way to the device at a time: a sync of the journal waits
// behind two of them at most.
const piece = 1 << 20

// writeFile makes a file and syncs it.
func writeFile(path string, b []byte) (err error) {
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

// syncFolder brings the names in a folder to the device.
func syncFolder(dir string) (err error) {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return f.Sync()
}

// readBack compares the file with what went in.
func (t *tableBuilder) readBack(path string, s *Set) (err error) {
	data, err := mapTable(path, t.table)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Munmap(data) }()
	defer catchDamage(&err, debug.SetPanicOnFault(true))
	read, err := table.OpenInMemoryTable(data, t.table.ID, s.tableOptions(0))
	if err != nil {
		return err
	}
	it := read.NewIterator(table.NOCACHE)
	var content digest
	for it.Rewind(); it.Valid(); it.Next() {
		content.add(it.Key(), it.Value())
	}
	if content != t.content {
		return fmt.Errorf("%w: %d entries were read back of %d, or others", ErrDamaged, content.count, t.content.count)
	}
	return nil
}

// digest is a sum of entries.
type digest struct{ sum, count uint64 }

func (d *digest) add(key []byte, v y.ValueStruct) {
	sum := xxhash.Sum64(key)*31 + xxhash.Sum64(v.Value)
	d.sum += (sum*31+v.ExpiresAt)*31 + uint64(v.Meta)
	d.count++
}
