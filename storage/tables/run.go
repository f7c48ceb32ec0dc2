package tables

import (
	"fmt"
	"path/filepath"

	"github.com/dgraph-io/badger/v4/table"
	"github.com/dgraph-io/badger/v4/y"
	"golang.org/x/sys/unix"
)

// run reads the tables of a level one after the other, by key, or one of level 0. Each is summed
// first, and must give as many entries as the list says.
type run struct {
	y.Iterator // of the first of the tables
	s          *Set
	tables     []Table // that are not over
	left       uint64  // entries of the first of them that are not read
	data       []byte  // its mapping; nil behind the last table, and after an error
	err        *error  // of this run and others
}

// Rewind goes to the first entry of the tables that are left.
func (r *run) Rewind() {
	_ = r.Close()
	if len(r.tables) == 0 {
		return
	}
	t := r.tables[0]
	data, err := mapTable(filepath.Join(r.s.dir, t.Name()), t)
	if err != nil {
		*r.err = err
		return
	}
	r.data = data
	read, err := table.OpenInMemoryTable(data, t.ID, r.s.tableOptions(0))
	if err != nil {
		r.fail(err)
		return
	}
	r.Iterator, r.left = read.NewIterator(table.NOCACHE), t.Entries
	r.Iterator.Rewind()
	r.settle()
}

// Next goes to the next entry.
func (r *run) Next() {
	r.Iterator.Next()
	r.left--
	r.settle()
}

// settle goes on to the next table if one is over.
func (r *run) settle() {
	if r.Iterator.Valid() {
		return
	}
	if r.left != 0 {
		r.fail(fmt.Errorf("it ended %d entries early", r.left))
		return
	}
	r.tables = r.tables[1:]
	r.Rewind()
}

func (r *run) fail(err error) {
	*r.err = fmt.Errorf("%w: %s: %w", ErrDamaged, r.tables[0].Name(), err)
	_ = r.Close()
}

// Valid says whether the run stands at an entry.
func (r *run) Valid() bool { return r.data != nil }

// between says that the run has read none of the table at which it stands.
func (r *run) between() bool { return r.Valid() && r.left == r.tables[0].Entries }

// Close gives the table under way up.
func (r *run) Close() error {
	data := r.data
	if r.data = nil; data == nil {
		return nil
	}
	return unix.Munmap(data)
}

// merged reads tables, which come by level and by key, as one: by key, the highest version first,
// and an entry that stands in two tables once.
func (s *Set) merged(tables []Table, err *error) y.Iterator {
	runs := []y.Iterator{&run{}} // an empty one: Badger wants some
	for i, t := range tables {
		if i == 0 || t.Level == 0 || t.Level != tables[i-1].Level {
			runs = append(runs, &run{s: s, err: err})
		}
		last := runs[len(runs)-1].(*run)
		last.tables = append(last.tables, t)
	}
	it := table.NewMergeIterator(runs, false)
	it.Rewind()
	return it
}
