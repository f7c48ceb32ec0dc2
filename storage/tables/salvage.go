package tables

import (
	"bytes"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"runtime/debug"

	"github.com/dgraph-io/badger/v4/table"
	"github.com/dgraph-io/badger/v4/y"
	"github.com/holdfast-queue/holdfast/storage/disk"
)

// Salvage puts a table in force that has what can be read of a damaged one, block by block. lost is
// called with the first key of each block that cannot be read, and the first key of the next block;
// nil is the end of the table. The error wraps ErrDamaged if the table has no index to read it by:
// then nothing of it is in force.
func (s *Set) Salvage(t Table, lost func(from, to []byte)) (err error) {
	defer catchDamage(&err, debug.SetPanicOnFault(true))
	data, err := readFile(filepath.Join(s.dir, t.Name()), t.Size)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	o := &table.Options{} // blocks are checked when they are read, and not before
	read, err := table.OpenInMemoryTable(data, t.ID, o)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	*o = *readOptions()
	built, err := s.Build(t.Level, max(t.Size, minSalvaged), salvaged(read, lost))
	if err != nil {
		return err
	}
	return s.Adopt(Adoption{Add: built})
}

const minSalvaged = 1 << 20

// readFile reads the first bytes of a file, no more than most: a damaged one may have any length.
func readFile(path string, most int64) ([]byte, error) {
	file, err := disk.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, most))
}

// salvaged gives the entries of the blocks that are whole.
func salvaged(t *table.Table, lost func(from, to []byte)) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		firsts := append(t.KeySplits(1<<30, nil), "")
		for i, first := range firsts[:len(firsts)-1] {
			next := []byte(firsts[i+1])
			entries, err := readBlock(t, []byte(first), next)
			if err != nil {
				lost(y.ParseKey([]byte(first)), y.ParseKey(next))
			}
			for _, e := range entries {
				if !yield(e, nil) {
					return
				}
			}
		}
	}
}

// readBlock returns the entries from one key on, up to another one; an empty one is the end.
func readBlock(t *table.Table, from, to []byte) (entries []Entry, err error) {
	defer catchDamage(&err, debug.SetPanicOnFault(true))
	it := t.NewIterator(table.NOCACHE)
	defer it.Close()
	for it.Seek(from); it.Valid() && (len(to) == 0 || y.CompareKeys(it.Key(), to) < 0); it.Next() {
		entries = append(entries, entryOf(bytes.Clone(it.Key()), it.ValueCopy()))
	}
	if len(entries) == 0 {
		return nil, fmt.Errorf("%w: a block cannot be read", ErrDamaged)
	}
	return entries, nil
}
