package tables

import (
	"bytes"
	"cmp"
	"context"
	"iter"
	"maps"
	"runtime/debug"
	"slices"

	"github.com/dgraph-io/badger/v4/y"
)

// MergeOptions say how to merge.
type MergeOptions struct {
	All  bool   // all levels, not only those that pay
	Size int64  // of a table of the output, in bytes
	Now  uint64 // Unix seconds: what expired before is left out where nothing older lies below
	// Step is how many bytes come in force together, about, and one table at least. What these
	// replace is gone then.
	Step int64
	// Upper bounds what is taken of level 0, in bytes: its oldest windows, and one at least. 0 is
	// all of them.
	Upper int64
	// Room is asked once a step has made tables, before they come in force: an error ends the merge
	// before that step. It may be nil.
	Room func() error
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
	s      *Set
	o      MergeOptions
	output int
	bottom bool    // no level below the output has tables
	upper  []*file // of the levels above the output, those in force: the oldest first
	base   []*file // of the output's level, which are replaced one by one: those in force
	newer  y.Iterator
	older  *run
	last   []byte // the last key that was read
	err    error  // the first of a run
}

// Merge makes one run of level 0 and some levels below it, and adopts what it makes as it goes:
// after each step the tables are whole. It ends behind a step when ctx is done, with the error of
// that. merged is false where there was nothing to do.
func (s *Set) Merge(ctx context.Context, o MergeOptions) (merged bool, err error) {
	defer catchDamage(&err, debug.SetPanicOnFault(true))
	s.merging.Lock()
	defer s.merging.Unlock()
	m := s.newMerge(o)
	defer m.close()
	if len(m.upper)+len(m.base) == 0 {
		return false, nil
	}
	m.newer.Rewind()
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

// newMerge takes the tables to merge. It keeps no view, which would hold the room of those that
// were replaced.
func (s *Set) newMerge(o MergeOptions) *merge {
	v := s.View()
	defer v.Close()
	files := oldest(v.files, o.Upper)
	list := &List{}
	for _, f := range files {
		list.Tables = append(list.Tables, f.Table)
	}
	o.Step = max(o.Step, o.Size)
	m := &merge{s: s, o: o, output: list.output(o.All), bottom: true}
	for _, f := range files {
		switch {
		case f.Level < m.output:
			m.upper = append(m.upper, f)
		case f.Level == m.output:
			m.base = append(m.base, f)
		default:
			m.bottom = false
			continue
		}
		f.refs.Add(1)
	}
	m.newer, m.older = merged(m.upper, &m.err), &run{files: m.base, err: &m.err}
	age := ofWindows(files)
	slices.SortFunc(m.upper, func(a, b *file) int {
		c := cmp.Compare(b.Level, a.Level)
		if c == 0 && a.Level == 0 && age {
			c = cmp.Compare(a.Version, b.Version)
		}
		return cmp.Or(c, y.CompareKeys(b.read.Biggest(), a.read.Biggest()))
	})
	return m
}

// ofWindows says that each table of level 0 is of one window. Those that Badger made are not, and
// their versions do not order them.
func ofWindows(files []*file) bool {
	return !slices.ContainsFunc(files, func(f *file) bool {
		return f.Level == 0 && (y.ParseTs(f.read.Smallest()) != f.Version || y.ParseTs(f.read.Biggest()) != f.Version)
	})
}

// oldest leaves out the newest windows of level 0, so that it has so many bytes: what is newer than
// all that is merged stays above.
func oldest(files []*file, most int64) []*file {
	if most == 0 || !ofWindows(files) {
		return files
	}
	size := make(map[uint64]int64)
	for _, f := range files {
		if f.Level == 0 {
			size[f.Version] += f.Size
		}
	}
	last, taken := uint64(0), int64(0)
	for _, version := range slices.Sorted(maps.Keys(size)) {
		if taken += size[version]; last > 0 && taken > most {
			break
		}
		last = version
	}
	return slices.DeleteFunc(slices.Clone(files), func(f *file) bool { return f.Level == 0 && f.Version > last })
}

func (m *merge) close() {
	_, _ = m.newer.Close(), m.older.Close()
	for _, f := range slices.Concat(m.upper, m.base) {
		f.release()
	}
}

// step makes some tables and adopts them. over says that it was the last step.
func (m *merge) step() (over bool, err error) {
	built, err := m.s.Build(m.output, m.o.Size, m.entries())
	if err != nil {
		return false, err
	}
	rest, err := m.s.Build(m.output, m.o.Size, m.rest())
	if err != nil {
		m.s.discard(built)
		return false, err
	}
	built.files = append(built.files, rest.files...)
	if len(built.files) > 0 && m.o.Room != nil {
		if err := m.o.Room(); err != nil {
			m.s.discard(built)
			return false, err
		}
	}
	passed := m.older.at
	drop, upper := m.passed()
	drop = append(drop, m.base[:passed]...)
	if err := m.s.Adopt(Adoption{Add: built, drop: drop}); err != nil {
		return false, err
	}
	for _, f := range drop {
		f.release()
	}
	for _, f := range rest.files {
		f.refs.Add(1)
	}
	_ = m.older.Close()
	m.upper, m.base = upper, slices.Concat(rest.files, m.base[passed:])
	m.older = &run{files: m.base, err: &m.err}
	m.older.Rewind()
	return !m.newer.Valid() && !m.older.Valid(), nil
}

// passed returns which tables above the output's level may go, and which are left: those that are
// not read to their end, and those that may have a key of an older one that is left. For a deletion
// may be gone from the output while what it deletes still stands there.
func (m *merge) passed() (drop, left []*file) {
	var low []byte // the first key of those that are left
	for _, f := range m.upper {
		last := y.ParseKey(f.read.Biggest())
		if bytes.Compare(last, m.last) <= 0 && (low == nil || bytes.Compare(last, low) < 0) {
			drop = append(drop, f)
			continue
		}
		if left = append(left, f); low == nil || bytes.Compare(y.ParseKey(f.read.Smallest()), low) < 0 {
			low = y.ParseKey(f.read.Smallest())
		}
	}
	return drop, left
}

// rest gives what a step leaves of the table of the base in which it ends: tables of one level do
// not overlap, so what it made takes the place of that whole table.
func (m *merge) rest() iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for m.err == nil && m.older.Valid() && !m.older.between() {
			if !yield(entryOf(m.older.Key(), m.older.Value()), nil) {
				return
			}
			m.older.Next()
		}
		if m.err != nil {
			yield(Entry{}, m.err)
		}
	}
}

// entries gives what belongs into the tables of one step: of each key the highest version.
func (m *merge) entries() iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for size := int64(0); m.err == nil && (m.newer.Valid() || m.older.Valid()); {
			e, newer, older := m.entry()
			superseded := bytes.Equal(e.Key, m.last)
			if !superseded && size > m.o.Step {
				return
			}
			if !superseded && !(m.bottom && e.gone(m.o.Now)) {
				size += int64(len(e.Key) + len(e.Value) + 16)
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
