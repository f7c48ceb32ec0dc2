package tables

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"
	"os"
	"path/filepath"

	"github.com/cespare/xxhash/v2"
	"github.com/dgraph-io/badger/v4/table"
	"github.com/dgraph-io/badger/v4/y"
	"github.com/dgraph-io/ristretto/v2/z"
	"github.com/holdfast-queue/holdfast/storage/disk"
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

// gone says that the key has no value at a time in Unix seconds.
func (e *Entry) gone(now uint64) bool { return e.Deleted || e.Expires != 0 && e.Expires <= now }

func entryOf(key []byte, v y.ValueStruct) Entry {
	return Entry{
		Key: y.ParseKey(key), Value: v.Value, Version: y.ParseTs(key), Expires: v.ExpiresAt, Deleted: v.Meta&deletedMeta != 0,
	}
}

// Built is tables that were made, and that no list names yet.
type Built []*file

// release gives up what was built.
func (b Built) release() {
	for _, f := range b {
		f.release()
	}
}

// discard removes what was built.
func (b Built) discard() {
	for _, f := range b {
		_ = disk.Remove(f.path)
	}
	b.release()
}

// Build makes tables of some level from entries, which come sorted by key, the highest version of a
// key first. Each has about size bytes. They are written, synced, and read back: what went in comes
// out. After an error, or a fault of what it reads, nothing is left.
func (s *Set) Build(level int, size int64, entries iter.Seq2[Entry, error]) (_ Built, err error) {
	b := &builder{set: s, level: level, size: size}
	s.pool.Return(z.NewAllocator(firstMemory, ""))
	b.begin(0)
	if kept, ok := s.output.Get().(*[]byte); ok {
		b.buffer = *kept
	}
	whole := false
	defer func() {
		b.Close()
		if kept := b.buffer; cap(kept) <= keepOutput {
			s.output.Put(&kept)
		}
		if !whole {
			b.built.discard()
		}
	}()
	for e, err := range entries {
		long := 0
		if len(e.Value) > longValue {
			long = len(e.Value)
		}
		if err == nil && (b.ReachedCapacity() || b.long+long > 0) {
			if !b.Empty() {
				err = b.finish()
			}
			b.Close()
			b.begin(long)
		}
		if err != nil {
			return nil, err
		}
		b.add(&e)
	}
	if !b.Empty() {
		err = b.finish()
	}
	whole = err == nil
	return b.built, err
}

// builder makes tables, one at a time.
type builder struct {
	set   *Set
	level int
	size  int64 // of a table in bytes
	long  int   // bytes of the one value that this table has; 0: it has others
	built Built

	*table.Builder
	content     digest
	version     uint64 // the highest
	key, buffer []byte
}

// firstMemory is where the memory of a builder begins, which grows as it is filled. Badger would
// take and clear four times a table, also for a window that has a handful of entries.
const firstMemory = 1 << 20

// keepOutput is the largest output that is kept for the next table, in bytes: enough for each where
// a store has 256 GiB at most.
const keepOutput = 72 << 20

// longValue is how many bytes a value has that gets a table of its own. Badger doubles the memory
// of a block that such a value has filled, and of all blocks.
const longValue = 8 << 20

// begin begins a table. It is for one value of long bytes, or for many if long is 0. Badger reads
// it with its defaults.
func (b *builder) begin(long int) {
	b.content, b.version, b.long = digest{}, 0, long
	o := table.Options{TableSize: uint64(b.size), BlockSize: 4096, BloomFalsePositive: 0.01, AllocPool: b.set.pool}
	if long > 0 {
		const more = 64 << 10 // for key, index and filter
		o.TableSize, o.BlockSize, o.AllocPool = uint64(long+2*more)/2, long+more, nil
	}
	b.Builder = table.NewTableBuilder(o)
}

func (b *builder) add(e *Entry) {
	b.key = binary.BigEndian.AppendUint64(append(b.key[:0], e.Key...), math.MaxUint64-e.Version)
	v := y.ValueStruct{Value: e.Value, ExpiresAt: e.Expires}
	if e.Deleted {
		v.Meta = deletedMeta
	}
	b.Add(b.key, v, 0)
	b.content.add(b.key, v)
	b.version = max(b.version, e.Version)
}

// finish writes the table and reads it back.
func (b *builder) finish() error {
	data := b.Done()
	if cap(b.buffer) < data.Size {
		b.buffer = touched(data.Size + data.Size/16) // the next one may be a little longer
	}
	b.buffer = b.buffer[:data.Size]
	data.Copy(b.buffer)
	t := Table{
		ID: b.set.lastID.Add(1), Level: b.level, Size: int64(len(b.buffer)), Sum: xxhash.Sum64(b.buffer),
		Entries: b.content.count, Version: b.version,
	}
	path := filepath.Join(b.set.build, t.Name())
	err := writeFile(path, b.buffer, b.set.wait)
	if err == nil {
		err = b.readBack(path, t)
	}
	if err != nil {
		_ = disk.Remove(path)
		return fmt.Errorf("cannot make table %s: %w", t.Name(), err)
	}
	return nil
}

// touched returns n bytes whose pages are there. The first use of memory is slow. The collector
// cannot stop Copy or slices.Grow in it: the loop once stood still for 130 ms.
func touched(n int) []byte {
	b := make([]byte, n)
	for i := 0; i < n; i += os.Getpagesize() {
		b[i] = 0
	}
	return b
}

// writeFile makes a file, syncs it, and has the next read come from the device. wait is called
// before each piece.
func writeFile(path string, b []byte, wait func()) (err error) {
	file, err := disk.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	err = file.WritePieces(int64(len(b)), func(at, n int64) []byte { return b[at : at+n] }, wait)
	if err == nil {
		err = file.Forget()
	}
	return err
}

// readBack compares the file, as the device has it, with what went in, and adds it to what was
// built.
func (b *builder) readBack(path string, t Table) error {
	f, err := b.set.openFile(path, t, false)
	if err != nil {
		return err
	}
	b.built = append(b.built, f)
	content, err := f.content()
	if err == nil && content != b.content {
		err = f.damage("other entries were read back than went in")
	}
	return err
}

// digest is a sum of entries.
type digest struct{ sum, count uint64 }

func (d *digest) add(key []byte, v y.ValueStruct) {
	sum := xxhash.Sum64(key)*31 + xxhash.Sum64(v.Value)
	d.sum += (sum*31+v.ExpiresAt)*31 + uint64(v.Meta)
	d.count++
}
