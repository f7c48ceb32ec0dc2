package tables

import (
	"container/heap"
	"encoding/binary"
	"fmt"
	"math"
	"path/filepath"

	"github.com/dgraph-io/badger/v4/table"
	"github.com/dgraph-io/badger/v4/y"
	"golang.org/x/sys/unix"
)

// run reads tables one after the other: those of one level, or of one window in level 0, by key.
// Each must give as many entries as the list says.
type run struct {
	s      *Set
	tables []Table
	passed int    // tables that are read
	left   uint64 // entries of the table under way that are not read
	age    int    // the highest is that of the base
	data   []byte
	it     *table.Iterator
	key    []byte // with its version, as Badger has it
}

// next goes to the next entry; ok is false at the end.
func (r *run) next() (ok bool, err error) {
	if r.it != nil {
		r.it.Next()
		r.left--
	}
	for r.it == nil || !r.it.Valid() {
		if r.it != nil {
			if r.left != 0 {
				return false, fmt.Errorf("%w: %s ended %d entries early", ErrDamaged, tableName(r.tables[r.passed].ID), r.left)
			}
			r.close()
			r.passed++
		}
		if r.passed == len(r.tables) {
			return false, nil
		}
		if err := r.open(r.tables[r.passed]); err != nil {
			return false, err
		}
	}
	r.key = r.it.Key()
	return true, nil
}

func (r *run) open(t Table) (err error) {
	if r.data, err = mapTable(filepath.Join(r.s.dir, tableName(t.ID)), t); err != nil {
		return err
	}
	o := r.s.tableOptions(0)
	read, err := table.OpenInMemoryTable(r.data, t.ID, &o)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrDamaged, tableName(t.ID), err)
	}
	r.it, r.left = read.NewIterator(table.NOCACHE), t.Entries
	r.it.Rewind()
	return nil
}

func (r *run) close() {
	if r.data != nil {
		_ = unix.Munmap(r.data)
	}
	r.data, r.it = nil, nil
}

// between says that the run has read none of its next table.
func (r *run) between() bool {
	return r.it == nil || r.left == r.tables[r.passed].Entries
}

// entry is the entry that the run stands at. Its value is valid until the next one.
func (r *run) entry() Entry {
	v := r.it.Value()
	return Entry{
		Key: y.ParseKey(r.key), Value: v.Value, Version: y.ParseTs(r.key),
		Expires: v.ExpiresAt, Deleted: v.Meta&deletedMeta != 0,
	}
}

// runs are those that have an entry, as a heap: the first key first, of one key the highest
// version. An entry may stand in two runs, then the base comes last.
type runs []*run

func (r runs) Len() int      { return len(r) }
func (r runs) Swap(i, j int) { r[i], r[j] = r[j], r[i] }
func (r *runs) Push(x any)   { *r = append(*r, x.(*run)) }

func (r *runs) Pop() any {
	last := (*r)[len(*r)-1]
	*r = (*r)[:len(*r)-1]
	return last
}

func (r runs) Less(i, j int) bool {
	if c := y.CompareKeys(r[i].key, r[j].key); c != 0 {
		return c < 0
	}
	return r[i].age < r[j].age
}

// start brings each run to its first entry.
func (r *runs) start() error {
	all := *r
	*r = nil
	for _, one := range all {
		ok, err := one.next()
		if err != nil {
			return err
		}
		if ok {
			heap.Push(r, one)
		}
	}
	return nil
}

// advance goes to the next entry of the first run.
func (r *runs) advance() error {
	ok, err := (*r)[0].next()
	switch {
	case err != nil:
		return err
	case ok:
		heap.Fix(r, 0)
	default:
		heap.Pop(r)
	}
	return nil
}

// versioned is a key with a version, as Badger has it.
func versioned(dst, key []byte, version uint64) []byte {
	return binary.BigEndian.AppendUint64(append(dst[:0], key...), math.MaxUint64-version)
}
