package tables

import (
	"bytes"
	"context"
	"iter"
	"runtime/debug"
	"slices"
)

// levels is how many levels there are: Badger has so many.
const levels = 7

// A merge makes one run of level 0 and some levels below it. Level 0 has a run for each window;
// each other level has one. A level is newer than those below it.

// plan says what a merge takes, and where its output goes.
type plan struct {
	above  []Table // what leaves when all output is in force
	base   []Table // the level that the output replaces, table by table; empty if it replaces none
	output int
	bottom bool // no level below the output has tables
}

// plan chooses: level 0, and each level below that has at most as much as is taken already, or all
// of them. It stops at the first one that it does not take: what lies below may hold older
// versions. ok is false where there is nothing to do.
func (l *List) plan(all bool) (p plan, ok bool) {
	all = all || l.Doubled > 0 // a merge was cut off: its inputs and its output must go together
	p.above = l.level(0)
	size := bytesOf(p.above)
	for n := 1; n < levels; n++ {
		tables := l.level(n)
		if len(tables) == 0 {
			continue
		}
		// Level 1 alone would be rewritten each time: it is taken, and the rule goes on with level
		// 2.
		if !all && bytesOf(tables) > size && n > 1 {
			break
		}
		p.above, p.base, p.output = append(p.above, p.base...), tables, n
		size += bytesOf(tables)
	}
	if len(p.above)+len(p.base) == 0 {
		return p, false
	}
	if p.output == 0 { // the deepest free level above the first that has tables
		for p.output = levels - 1; l.anyFrom(1, p.output); p.output-- {
		}
	}
	p.bottom = !l.anyFrom(p.output+1, levels-1)
	return p, true
}

// anyFrom says that one of some levels has tables.
func (l *List) anyFrom(first, last int) bool {
	return slices.ContainsFunc(l.Tables, func(t Table) bool { return first <= t.Level && t.Level <= last })
}

func bytesOf(tables []Table) (n int64) {
	for _, t := range tables {
		n += t.Size
	}
	return n
}

// stepTables is how many tables of output come in force together: a merge needs the room of so
// many, not of all that it makes.
const stepTables = 16

// MergeOptions say how to merge.
type MergeOptions struct {
	All  bool   // all levels, not only those that pay
	Size int64  // of a table of the output, in bytes
	Now  uint64 // Unix seconds: what expired before is left out where nothing older lies below
}

// Merge merges levels, and adopts what it makes as it goes: after each step the tables are whole.
// It ends behind a step when ctx is done, with the error of that. merged is false where there was
// nothing to do.
func (s *Set) Merge(ctx context.Context, o MergeOptions) (merged bool, err error) {
	s.merging.Lock()
	defer s.merging.Unlock()
	list := s.List()
	p, ok := list.plan(o.All)
	if !ok {
		return false, nil
	}
	m := &merge{s: s, o: o, plan: p, doubled: list.Doubled}
	all := m.inputs()
	defer func() {
		for _, r := range all {
			r.close()
		}
	}()
	defer catchDamage(&err, debug.SetPanicOnFault(true))
	if err := m.runs.start(); err != nil {
		return false, err
	}
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

// merge is one merge under way.
type merge struct {
	s       *Set
	o       MergeOptions
	plan    plan
	runs    runs
	base    *run   // the oldest of them; nil if the output replaces no level
	dropped int    // tables of the base that are gone
	doubled uint64 // entries that stand in two tables; see List
	last    []byte // the last key that was read
	version uint64 // and its version
}

// inputs makes the runs.
func (m *merge) inputs() (all []*run) {
	add := func(tables []Table) *run {
		r := &run{s: m.s, tables: tables, age: len(all)}
		all = append(all, r)
		return r
	}
	for rest := m.plan.above; len(rest) > 0; {
		// Of level 0 the tables of one window are a run.
		n := 1
		for n < len(rest) && rest[n].Level == rest[0].Level && (rest[0].Level > 0 || rest[n].Version == rest[0].Version) {
			n++
		}
		add(rest[:n])
		rest = rest[n:]
	}
	if len(m.plan.base) > 0 {
		m.base = add(m.plan.base)
	}
	m.runs = slices.Clone(all)
	return all
}

// step makes some tables and adopts them. over says that it was the last step.
func (m *merge) step() (over bool, err error) {
	built, err := m.s.Build(m.plan.output, m.o.Size, m.entries())
	if err != nil {
		return false, err
	}
	over = len(m.runs) == 0
	a := Adoption{Add: built, Doubled: m.doubled}
	if m.base != nil {
		a.Drop = m.plan.base[m.dropped:m.base.passed]
		m.dropped = m.base.passed
	}
	if over {
		a.Drop, a.Doubled = append(slices.Clone(a.Drop), m.plan.above...), 0
	}
	return over, m.s.Adopt(a)
}

// entries gives what belongs into the tables of one step: of each key the highest version. A step
// ends between two tables of the base, where what it made and what is left do not overlap.
func (m *merge) entries() iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for size := int64(0); len(m.runs) > 0; {
			r := m.runs[0]
			e := r.entry()
			older := m.last != nil && bytes.Equal(e.Key, m.last)
			if !older && size > stepTables*m.o.Size && m.base != nil && m.base.between() {
				return
			}
			if older && e.Version == m.version && r == m.base {
				m.doubled-- // it goes with its table
			}
			gone := m.plan.bottom && (e.Deleted || e.Expires != 0 && e.Expires <= m.o.Now)
			if m.last, m.version = append(m.last[:0], e.Key...), e.Version; !older && !gone {
				if size += int64(len(e.Key) + len(e.Value) + 16); r != m.base {
					m.doubled++
				}
				if !yield(e, nil) {
					return
				}
			}
			if err := m.runs.advance(); err != nil {
				yield(Entry{}, err)
				return
			}
		}
	}
}
