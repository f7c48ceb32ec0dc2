package tree

import "math"

// passedTurn is what a step to the next priority, from the newest end, counts as passed.
const passedTurn = 20

// Walk goes over a tree in order of selection. It is valid until the tree changes.
type Walk struct {
	f    *Forest
	t    *Tree
	End  End    // read only
	leaf uint32 // 0 at the end
	pos  int
	lone bool // at the packet of a tree without nodes
}

// Walk starts at the packet that is first in the order.
func (f *Forest) Walk(t *Tree, end End) Walk {
	w := Walk{f: f, t: t, End: end}
	switch {
	case t.depth == 0:
		w.lone = t.Count > 0
	case end == Oldest:
		w.leaf = t.first
	case end == Newest:
		w.leaf, w.pos = f.lastOf(t, f.At(t.first).priorities[0])
	default:
		w.leaf = t.last
		w.pos = w.last()
	}
	return w
}

// WalkPriority starts at the packet that an end selects of one priority. The walk is done at once
// if there is none. After the last of them it goes on to other priorities.
func (f *Forest) WalkPriority(t *Tree, priority uint32, end End) Walk {
	w := Walk{f: f, t: t, End: end}
	if t.depth == 0 {
		w.lone = t.Count > 0 && t.lone == priority
		return w
	}
	leaf, i := f.seek(t, Place{priority, 0})
	if leaf == 0 || f.At(leaf).priorities[i] != priority {
		return w
	}
	if w.leaf, w.pos = leaf, i; end != Oldest {
		w.leaf, w.pos = f.lastOf(t, priority)
	}
	return w
}

// WalkFrom starts at the first packet that an end does not select before a place.
func (f *Forest) WalkFrom(t *Tree, k Place, end End) Walk {
	w := Walk{f: f, t: t, End: end}
	if t.depth == 0 {
		w.lone = t.Count > 0 && !end.Earlier(t.lonePlace(), k)
		return w
	}
	w.leaf, w.pos = f.seek(t, k)
	if end == Oldest || w.leaf != 0 && w.Place() == k {
		return w
	}
	switch { // it is the one before in the tree, if that has the priority
	case w.pos > 0:
		w.pos--
	case w.leaf != 0:
		w.leaf = f.At(w.leaf).prev
		w.pos = w.last()
	default:
		w.leaf = t.last
		w.pos = w.last()
	}
	if w.leaf != 0 && w.Place().Priority == k.Priority {
		return w
	}
	return f.walkBelow(t, k.Priority)
}

// walkBelow starts at the newest packet of the first priority that is worse than one.
func (f *Forest) walkBelow(t *Tree, priority uint32) Walk {
	w := Walk{f: f, t: t, End: Newest}
	if priority == math.MaxUint32 {
		return w
	}
	if leaf, i := f.seek(t, Place{priority + 1, 0}); leaf != 0 {
		w.leaf, w.pos = f.lastOf(t, f.At(leaf).priorities[i])
	}
	return w
}

// last is the position of the last packet of the leaf.
func (w *Walk) last() int {
	if w.leaf == 0 {
		return 0
	}
	return int(w.f.At(w.leaf).n) - 1
}

// seek returns the leaf and position of the first key of a tree with nodes that is not before k; 0
// when all are.
func (f *Forest) seek(t *Tree, k Place) (leaf uint32, i int) {
	var p path
	leaf = f.descend(t, k, &p)
	n := f.At(leaf)
	if i = n.search(k); i < int(n.n) {
		return leaf, i
	}
	return n.next, 0
}

// Seek goes to the first packet whose place is not before k, whatever the end. If there is none, it
// goes to the last one, and returns false. The walk is not done.
func (w *Walk) Seek(k Place) bool {
	if w.t.depth == 0 {
		return !w.t.lonePlace().Before(k)
	}
	if w.leaf, w.pos = w.f.seek(w.t, k); w.leaf != 0 {
		return true
	}
	w.leaf = w.t.last
	w.pos = w.last()
	return false
}

// Done reports whether the walk is past the last packet.
func (w *Walk) Done() bool { return w.leaf == 0 && !w.lone }

// At returns the packet the walk is at.
func (w *Walk) At() (Place, uint32) {
	if w.lone {
		return w.t.lonePlace(), w.t.root
	}
	n := w.f.At(w.leaf)
	return n.key(w.pos), n.ids[w.pos]
}

// Place returns the place the walk is at.
func (w *Walk) Place() Place {
	k, _ := w.At()
	return k
}

// Next goes to the next packet.
func (w *Walk) Next() { w.Skip(1) }

// Skip goes n packets on, a leaf at a time where it can.
func (w *Walk) Skip(n int) {
	w.lone = w.lone && n <= 0
	for n > 0 && w.leaf != 0 {
		w.f.Passed++
		switch w.End {
		case Newest:
			n = w.backward(n)
		case Oldest:
			n = w.forward(n)
		default:
			n = w.reverse(n)
		}
	}
}

// forward goes at most n packets up, but no further than the start of the next leaf, and returns
// how many of the n are left.
func (w *Walk) forward(n int) int {
	leaf := w.f.At(w.leaf)
	rest := int(leaf.n) - w.pos
	if n < rest {
		w.pos += n
		return 0
	}
	w.leaf, w.pos = leaf.next, 0
	return n - rest
}

// reverse is forward the other way.
func (w *Walk) reverse(n int) int {
	if n <= w.pos {
		w.pos -= n
		return 0
	}
	n -= w.pos + 1
	w.leaf = w.f.At(w.leaf).prev
	w.pos = w.last()
	return n
}

// backward goes at most n packets down within one priority and one leaf, then one more to the leaf
// before or to the newest packet of the next priority. It returns how many of the n are left.
func (w *Walk) backward(n int) int {
	leaf := w.f.At(w.leaf)
	priority := leaf.priorities[w.pos]
	low := 0
	if leaf.priorities[0] != priority {
		low = leaf.search(Place{priority, 0})
	}
	if n <= w.pos-low {
		w.pos -= n
		return 0
	}
	n -= w.pos - low + 1
	if low == 0 && leaf.prev != 0 {
		if prev := w.f.At(leaf.prev); prev.priorities[prev.n-1] == priority {
			w.leaf, w.pos = leaf.prev, int(prev.n)-1
			return n
		}
	}
	w.f.Passed += passedTurn
	end, i := w.f.lastOf(w.t, priority)
	last := w.f.At(end)
	if i++; i == int(last.n) {
		end, i = last.next, 0
	}
	if w.leaf, w.pos = end, i; end != 0 {
		w.leaf, w.pos = w.f.lastOf(w.t, w.f.At(end).priorities[i])
	}
	return n
}
