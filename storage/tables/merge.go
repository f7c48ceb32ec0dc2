package tables

import (
	"bytes"
	"context"
	"iter"
	"runtime/debug"
	"sort"

	"github.com/dgraph-io/badger/v4/y"
)

// stepTables is how many tables of output come in force together: a merge needs the room of so
// many, not of all that it makes.
const stepTables = 16

// MergeOptions say how to merge.
type MergeOptions struct {
	All  bool   // all levels, not only those that pay
	Size int64  // of a table of the output, in bytes
	Now  uint64 // Unix seconds: what expired before is left out where nothing older lies below
}

// output chooses what to merge: all down to the level that it returns, which takes the output. That
// is level 0, each level below it that has at most as much as is taken already, or all of them. It
// stops at the first one that it does not take: what lies below may hold older versions.
func (l *List) output(all bool) (level int) {
	var size [levels]int64
	for _, t := range l.Tables {
		size[t.Level] += t.Size
	}
	free, taken := levels-1, size[0]
	for n := 1; n < levels; n++ {
		if size[n] == 0 {
			continue
		}
		free = min(free, n-1)
		// Level 1 alone would be rewritten each time: it is taken, and the rule goes on with level
		// 2.
		if !all && size[n] > taken && n > 1 {
			break
		}
		level, taken = n, taken+size[n]
	}
	if level == 0 { // the deepest free level above the first that has tables
		return free
	}
	return level
}

// merge is one merge under way.
type merge struct {
	s       *Set
	o       MergeOptions
	output  int
	bottom  bool    // no level below the output has tables
	upper   []Table // of the levels above the output: they leave when all of it is in force
	base    []Table // of the output's level, which are replaced one by one: those in force
	newer   y.Iterator
	older   *run
	doubled int64  // entries that stand in two tables; see List
	last    []byte // the last key that was read
	err     error  // the first of a run
}

// Merge makes one run of level 0 and some levels below it, and adopts what it makes as it goes:
// after each step the tables are whole. It ends behind a step when ctx is done, with the error of
// that. merged is false where there was nothing to do.
func (s *Set) Merge(ctx context.Context, o MergeOptions) (merged bool, err error) {
	defer catchDamage(&err, debug.SetPanicOnFault(true))
	s.merging.Lock()
	defer s.merging.Unlock()
	v := s.View()
	list, tables := v.List, v.byKey()
	v.Close()
	// Of a merge that was cut off the inputs and the output must go together.
	output := list.output(o.All || list.Doubled > 0)
	level := func(n int) int {
		return sort.Search(len(tables), func(i int) bool { return tables[i].Level >= n })
	}
	m := &merge{s: s, o: o, output: output, bottom: level(output+1) == len(tables), doubled: int64(list.Doubled)}
	m.upper, m.base = tables[:level(output)], tables[level(output):level(output+1)]
	if len(m.upper)+len(m.base) == 0 {
		return false, nil
	}
	m.newer, m.older = s.merged(m.upper, &m.err), &run{s: s, err: &m.err, tables: m.base}
	defer m.newer.Close()
	defer m.older.Close()
	m.older.Rewind()
	for over := false; !over; {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		if over, err = m.step(); err != nil {
			return false, err
		}
	}
	return true, nil
}

// step makes some tables and adopts them. over says that it was the last step.
func (m *merge) step() (over bool, err error) {
	built, err := m.s.Build(m.output, m.o.Size, m.entries())
	if err != nil {
		return false, err
	}
	passed := len(m.base) - len(m.older.tables)
	drop := m.base[:passed:passed]
	m.base = m.older.tables
	if over = !m.newer.Valid() && !m.older.Valid(); over {
		drop, m.doubled = append(drop, m.upper...), 0
	}
	return over, m.s.Adopt(Adoption{Add: built, Drop: drop, Doubled: m.doubled - int64(m.s.List().Doubled)})
}

// entries gives what belongs into the tables of one step: of each key the highest version. A step
// ends between two tables of the base, where what it made and what is left do not overlap.
func (m *merge) entries() iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for size := int64(0); m.err == nil && (m.newer.Valid() || m.older.Valid()); {
			e, newer, older := m.entry()
			superseded := bytes.Equal(e.Key, m.last)
			if !superseded && size > stepTables*m.o.Size && m.older.between() {
				return
			}
			if newer && older {
				m.doubled-- // the older one goes with its table
			}
			gone := m.bottom && (e.Deleted || e.Expires != 0 && e.Expires <= m.o.Now)
			if !superseded && !gone {
				size += int64(len(e.Key) + len(e.Value) + 16)
				if newer {
					m.doubled++
				}
				if !yield(e, nil) {
					return
				}
			}
			m.last = append(m.last[:0], e.Key...)
			if newer {
				m.newer.Next()
			}
			if older {
				m.older.Next()
			}
		}
		if m.err != nil {
			yield(Entry{}, m.err)
		}
	}
}

// entry returns the first entry that is left, and where it stands. It is valid until Next.
func (m *merge) entry() (e Entry, newer, older bool) {
	newer, older = m.newer.Valid(), m.older.Valid()
	if newer && older {
		c := y.CompareKeys(m.newer.Key(), m.older.Key())
		newer, older = c <= 0, c >= 0
	}
	from := y.Iterator(m.older)
	if newer {
		from = m.newer
	}
	return entryOf(from.Key(), from.Value()), newer, older
}
