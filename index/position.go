package index

import (
	"iter"
	"math"

	"github.com/holdfast-queue/holdfast/index/tree"
)

// Passed grows with what searches and walks pass: by 1, some 25 ns, for a packet or a leaf of some
// 30, and by as much as takes that time for lanes and dearer steps. What a call costs besides is
// O(log n).
func (x *Index) Passed() int { return x.forest.Passed }

const (
	passedPaths = 50 // two paths down the tree of a lane, of many
	passedLane  = 13 // a lane that a walk opens in its midst
	passedStep  = 64 // the next packet of several lanes, besides that
	passedSort  = 18 // a packet of a search in several priorities
	passedBuild = 24 // one that comes into a tree of values
)

// Position is how many packets of its share come before a selectable one in the order of Next at
// the newest end; -1 when it is not selectable or the number is not in use. It costs O(log n), and
// in every lane as many leaves as those packets fill.
func (x *Index) Position(id ID) int {
	e := x.entry(id)
	if e == nil || !e.selectable() {
		return -1
	}
	return x.count(x.lanesOf(x.lanes.At(uint32(e.lane))), span{tree.Place{}, tree.Place{Priority: e.priority - 1, Seq: math.MaxUint64}},
		span{e.place().PlusOne(), tree.Place{Priority: e.priority, Seq: math.MaxUint64}})
}

// Before is how many selectable packets of its share the oldest end takes before this one; -1 when
// it is not selectable or the number is not in use. It costs what Position does.
func (x *Index) Before(id ID) int {
	e := x.entry(id)
	if e == nil || !e.selectable() {
		return -1
	}
	return x.count(x.lanesOf(x.lanes.At(uint32(e.lane))), span{tree.Place{}, e.place()}) - 1
}

// Distance is how many selectable packets of a queue are behind a place, up to another that is
// behind it, in the order of Next at the newest end. In every lane it costs as many leaves as they
// fill, so a walk over many packets costs no more than one over all leaves.
func (x *Index) Distance(q QueueID, after, to Place) int {
	a, ok := Newest.Behind(tree.Place{Priority: after.Priority, Seq: after.Seq})
	b := tree.Place{Priority: to.Priority, Seq: to.Seq}
	if !x.hasQueue(q) || !ok {
		return 0
	}
	of := &x.queues.At(uint32(q)).lanes
	if a.Priority == b.Priority {
		return x.count(of, span{b, a})
	}
	return x.count(of, span{tree.Place{Priority: a.Priority, Seq: 0}, a},
		span{tree.Place{Priority: a.Priority + 1, Seq: 0}, tree.Place{Priority: b.Priority - 1, Seq: math.MaxUint64}},
		span{b, tree.Place{Priority: b.Priority, Seq: math.MaxUint64}})
}

// span is all places from one to another, both included.
type span struct{ from, to tree.Place }

// count is how many selectable packets of some lanes are in some spans.
func (x *Index) count(of *lanes, spans ...span) (n int) {
	for l := range x.filledIn(of) {
		x.forest.Passed += passedPaths
		for _, s := range spans {
			n += x.forest.Count(&l.tree, s.from, s.to)
		}
	}
	return n
}

// filled gives the lanes of a queue that are not empty.
func (x *Index) filled(u *queue) iter.Seq[*lane] { return x.filledOf(u, u.lanesOf) }

// takable is filled for takes.
func (x *Index) takable(u *queue) iter.Seq[*lane] { return x.filledOf(u, u.giving) }

func (x *Index) filledOf(u *queue, of func(*share) *lanes) iter.Seq[*lane] {
	if u.shares == nil {
		return x.filledIn(of(nil))
	}
	return func(yield func(*lane) bool) {
		for s := range u.shares.each() {
			if s.num != 0 && s.isEmpty() {
				continue
			}
			for l := range x.filledIn(of(s)) {
				if !yield(l) {
					return
				}
			}
		}
	}
}

// filledIn is filled of some lanes.
func (x *Index) filledIn(of *lanes) iter.Seq[*lane] {
	return func(yield func(*lane) bool) {
		if of.set == nil {
			if l := x.lanes.At(uint32(of.home)); l.tree.Count > 0 {
				yield(l)
			}
			return
		}
		for _, h := range of.set.heaps[Newest] {
			x.forest.Passed++
			if !yield(h.lane) {
				return
			}
		}
	}
}

// onlyPriority returns the priority of all selectable packets of a queue; false if they have
// several, or there are none. With one the order of one end is the reverse of the other's.
func (x *Index) onlyPriority(u *queue) (only uint32, ok bool) {
	for l := range x.filled(u) {
		k, _ := x.forest.Lowest(&l.tree)
		if l.tree.Priorities > 1 || ok && k.Priority != only {
			return 0, false
		}
		only, ok = k.Priority, true
	}
	return only, ok
}

// BandStarts are the first priorities of the bands that Bands counts.
var BandStarts = [...]uint32{1, 10, 100, 1000, 10_000}

// Bands is how many selectable packets of a queue have a priority from each of the BandStarts up to
// the next. It costs a leaf for each 31 of them at most, and nothing in a queue that is shared out.
func (x *Index) Bands(q QueueID) (n [len(BandStarts)]int) {
	if !x.hasQueue(q) {
		return n
	}
	u := x.queues.At(uint32(q))
	if u.shares != nil {
		return u.shares.bands
	}
	return x.bands(u)
}

func (x *Index) bands(u *queue) (n [len(BandStarts)]int) {
	for i, from := range BandStarts {
		to := uint32(math.MaxUint32)
		if i+1 < len(BandStarts) {
			to = BandStarts[i+1] - 1
		}
		n[i] = x.count(&u.lanes, span{tree.Place{Priority: from, Seq: 0}, tree.Place{Priority: to, Seq: math.MaxUint64}})
	}
	return n
}

// band is the place of a priority in BandStarts.
func band(priority uint32) (i int) {
	for i+1 < len(BandStarts) && priority >= BandStarts[i+1] {
		i++
	}
	return i
}
