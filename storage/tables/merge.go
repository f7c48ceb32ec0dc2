package tables

import (
	"bytes"
	"context"
	"iter"
	"maps"
	"runtime/debug"
	"slices"

	"github.com/dgraph-io/badger/v4/y"
	"github.com/holdfast-queue/holdfast/storage/disk"
)

// MergeOptions say how to merge.
type MergeOptions struct {
	All bool // all levels, not only those that pay
	// Beside merges level 0 into level 1 beside another merge, which may be deep: what has come since
	// that one began, and what such a merge made before. Where no other is under way, or where that
	// one has level 1, too, there is nothing to do.
	Beside bool
	Size   int64 // of a table of the output, in bytes
	// Now has what expired before, in Unix seconds, left out where nothing older lies below. 0:
	// nothing is.
	Now uint64
	// Step is how many bytes come in force together, about, and one table at least. What these
	// replace is gone then.
	Step int64
	// Upper bounds what is taken of level 0, in bytes: its oldest windows, and one at least. 0 is
	// all of them.
	Upper int64
	// Room is asked once a step has made tables, before they come in force: an error ends the merge
	// before that step. comes is the bytes of these tables, and goes of the tables that they replace.
	// It leaves out tables that somebody else still reads: they give no room. It may be nil.
	Room func(comes, goes int64) error
	// Stepped is called behind each step that came in force, with the bytes of entries that it left
	// out, and returns the Step of the next one. It may be nil.
	Stepped func(dropped int64) (step int64)
}

// Merged says what a merge did.
type Merged struct {
	Any     bool  // there was something to do
	Dropped int64 // bytes of entries that were left out
	// Freed is how many bytes of tables are gone. It is below 0 where a merge ended before what it had
	// merged could go.
	Freed int64
}

// besideLevel takes what merges beside others make, and nothing else.
const besideLevel = 1

// output chooses what to merge: all down to the level that it returns, which takes the output. That
// is levels 0 and 1, each level below that has at most as much as is taken already, or all of them.
// It stops at the first one that it does not take: what lies below may hold older versions.
func output(files []*file, all bool) (level int) {
	var size [levels]int64
	for _, f := range files {
		size[f.Level] += f.Size
	}
	free, taken := levels-1, size[0]+size[besideLevel]
	for n := besideLevel + 1; n < levels; n++ {
		if size[n] == 0 {
			continue
		}
		// Level 2 alone would be rewritten each time: it is taken, and the rule goes on with level 3,
		// unless level 1 has tables: they go first, so that it is free for what merges beside this one.
		if !all && n > besideLevel+1 && (size[n] > taken || size[besideLevel] > 0) {
			free = n - 1
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
	upper  []*file // of the levels above the output, those in force
	base   []*file // of the output's level, which are replaced one by one: those in force
	older  *run    // what is left of base
	runs   []*run  // all that have an entry left, by that entry
	last   []byte  // the last key that was read
	drops  int64   // bytes of entries that the step left out
	read   int64   // bytes since the last wait
	merged Merged
}

// Merge makes one run of level 0 and some levels below it, and adopts what it makes as it goes:
// after each step the tables are whole. It ends behind a step when ctx is done, with the error of
// that.
func (s *Set) Merge(ctx context.Context, o MergeOptions) (_ Merged, err error) {
	defer catchDamage(&err, debug.SetPanicOnFault(true))
	merging := &s.merging
	if o.Beside {
		merging = &s.beside
	}
	merging.Lock()
	defer merging.Unlock()
	m := &merge{s: s, o: o}
	defer m.close()
	if err := m.begin(); err != nil || len(m.upper)+len(m.base) == 0 {
		return Merged{}, err
	}
	m.merged.Any = true
	for over := false; !over && err == nil; {
		if err = ctx.Err(); err == nil {
			over, err = m.step()
		}
	}
	return m.merged, err
}

// begin takes the tables to merge. It keeps no view, which would hold the room of those that were
// replaced.
func (m *merge) begin() error {
	if !m.o.Beside { // one that is beside the merge before has come to its end
		m.s.beside.Lock()
		defer m.s.beside.Unlock()
	}
	v := m.s.View()
	defer v.Close()
	files := v.files
	if m.o.Beside {
		if files = m.s.besideOthers(files); len(files) == 0 {
			return nil
		}
	} else {
		m.s.leaves.Store(v.List.Besides == 0)
	}
	files = oldest(files, m.o.Upper)
	m.o.Step = max(m.o.Step, m.o.Size)
	m.output, m.bottom, m.older = output(files, m.o.All), true, &run{}
	if m.o.Beside {
		m.output, m.bottom = besideLevel, false
	}
	runs := []*run{m.older}
	for i, f := range files {
		switch {
		case f.Level > m.output:
			m.bottom = false
			continue
		case f.Level == m.output:
			m.base = append(m.base, f)
		default:
			m.upper = append(m.upper, f)
			if i == 0 || f.Level == 0 || f.Level != files[i-1].Level {
				runs = append(runs, &run{})
			}
			last := runs[len(runs)-1]
			last.files = append(last.files, f)
		}
		f.refs.Add(1)
		f.merging.Store(true)
	}
	m.older.files = m.base
	for _, r := range runs {
		if err := m.next(r); err != nil {
			return err
		}
	}
	return nil
}

// next has a run, which is not among the others, go to its next entry and stand among them.
func (m *merge) next(r *run) error {
	err := r.next()
	if r.valid() {
		at, _ := slices.BinarySearchFunc(m.runs, r, func(a, b *run) int { return y.CompareKeys(a.it.Key(), b.it.Key()) })
		m.runs = slices.Insert(m.runs, at, r)
	}
	return err
}

// besideOthers returns what a merge beside another one takes, if anything.
func (s *Set) besideOthers(files []*file) (some []*file) {
	if !s.leaves.Load() {
		return nil
	}
	for _, f := range files {
		if f.Level <= besideLevel && !f.merging.Load() {
			some = append(some, f)
		}
	}
	if len(some) == 0 || some[0].Level > 0 {
		return nil
	}
	return some
}

// oldest leaves out the newest windows of level 0, so that about most bytes are left: what is newer
// than all that is merged stays above. Behind merges that were cut off, windows may be older than
// what one beside them made.
func oldest(files []*file, most int64) []*file {
	if most == 0 {
		return files
	}
	size, last := make(map[uint64]int64), uint64(0)
	for _, f := range files {
		switch f.Level {
		case 0:
			size[f.Version] += f.Size
		case besideLevel:
			last = max(last, f.Version)
		}
	}
	taken := int64(0)
	for i, version := range slices.Sorted(maps.Keys(size)) {
		if taken += size[version]; i > 0 && taken > most {
			break
		}
		last = max(last, version)
	}
	return slices.DeleteFunc(slices.Clone(files), func(f *file) bool { return f.Level == 0 && f.Version > last })
}

func (m *merge) close() {
	if !m.o.Beside {
		m.s.leaves.Store(false)
	}
	for _, r := range m.runs {
		r.close()
	}
	for _, f := range slices.Concat(m.upper, m.base) {
		f.merging.Store(false)
		f.release()
	}
}

// step makes some tables and adopts them. over says that it was the last step.
func (m *merge) step() (over bool, err error) {
	built, err := m.s.Build(m.output, m.o.Size, m.entries())
	if err != nil {
		return false, err
	}
	whole := false
	defer func() {
		if !whole {
			built.discard()
		}
	}()
	rest, err := m.s.Build(m.output, m.o.Size, m.rest())
	if err != nil {
		return false, err
	}
	built = append(built, rest...)
	passed := len(m.base) - len(m.older.files)
	drop, upper := m.passed()
	drop = append(drop, m.base[:passed]...)
	if len(built) > 0 && m.o.Room != nil {
		if err := m.o.Room(bytesOf(built), m.s.gives(drop)); err != nil {
			return false, err
		}
	}
	whole = true // an adoption that fails discards it
	if err := m.s.Adopt(Adoption{Add: built, drop: drop}); err != nil {
		return false, err
	}
	for _, f := range drop {
		f.release()
	}
	m.merged.Freed += bytesOf(drop) - bytesOf(built)
	if m.merged.Dropped += m.drops; m.o.Stepped != nil {
		m.o.Step = max(m.o.Stepped(m.drops), m.o.Size)
	}
	m.drops = 0
	for _, f := range rest {
		f.refs.Add(1)
		f.merging.Store(true)
	}
	m.upper, m.base = upper, slices.Concat(rest, m.base[passed:])
	m.older.close()
	m.older.files = m.base // it stands at the same entry again, so it keeps its place among the runs
	return len(m.runs) == 0, m.older.next()
}

func bytesOf(files []*file) (n int64) {
	for _, f := range files {
		n += f.Size
	}
	return n
}

// gives is how much room tables of a merge give when they go: those give none that a view beside
// the one in force has.
func (s *Set) gives(files []*file) (n int64) {
	s.adopting.Lock() // an adoption has two views for a moment
	defer s.adopting.Unlock()
	for _, f := range files {
		if f.refs.Load() == 2 { // by the view in force and the merge
			n += f.Size
		}
	}
	return n
}

// passed returns which tables above the output's level may go, and which are left. A table is left
// if it is not read to its end, or may have a key of an older one that is left. For a deletion may
// be gone from the output while what it deletes still stands there.
func (m *merge) passed() (drop, left []*file) {
	for _, f := range m.upper {
		if bytes.Compare(y.ParseKey(f.read.Biggest()), m.last) <= 0 {
			drop = append(drop, f)
		} else {
			left = append(left, f)
		}
	}
	for before := -1; before != len(left); {
		before = len(left)
		drop = slices.DeleteFunc(drop, func(f *file) bool {
			hides := slices.ContainsFunc(left, f.mayHide)
			if hides {
				left = append(left, f)
			}
			return hides
		})
	}
	return drop, left
}

// mayHide says whether f may have a newer version of a key of o, which is not behind its last key:
// a level has older ones than those above. Where merges were cut off, windows may stay that are
// older than what lies below them.
func (f *file) mayHide(o *file) bool {
	if bytes.Compare(y.ParseKey(o.read.Smallest()), y.ParseKey(f.read.Biggest())) > 0 {
		return false
	}
	return o.Level > f.Level || o.Level == 0 && (o.Version < f.Version || f.Version == 0)
}

// entries gives what belongs into the tables of one step: of each key the highest version.
func (m *merge) entries() iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for size := int64(0); len(m.runs) > 0; {
			r := m.runs[0]
			e := r.entry()
			superseded := bytes.Equal(e.Key, m.last)
			if !superseded && size > m.o.Step {
				return
			}
			m.last = append(m.last[:0], e.Key...)
			bytes := int64(len(e.Key) + len(e.Value) + 16)
			if m.read += bytes; m.read >= disk.Piece {
				m.read = 0
				m.s.wait()
			}
			if superseded || m.bottom && e.gone(m.o.Now) {
				m.drops += bytes
			} else {
				size += bytes
				if !yield(e, nil) {
					return
				}
			}
			m.runs = slices.Delete(m.runs, 0, 1)
			if err := m.next(r); err != nil {
				yield(Entry{}, err)
				return
			}
		}
	}
}

// rest gives what a step leaves of the table of the base in which it ends: tables of one level do
// not overlap, so what it made takes the place of that whole table.
func (m *merge) rest() iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for m.older.valid() && m.older.seen > 1 {
			if !yield(m.older.entry(), nil) {
				return
			}
			if err := m.older.next(); err != nil {
				yield(Entry{}, err)
				return
			}
		}
	}
}
