package index

import "math"

// walk goes over a tree in order of selection. It is valid until the tree changes.
type walk struct {
	f    *forest
	t    *tree
	end  End
	leaf uint32 // 0 at the end
	pos  int
	lone bool // at the packet of a tree without nodes
}

// walk starts at the packet that is first in the order.
func (f *forest) walk(t *tree, end End) walk {
	w := walk{f: f, t: t, end: end, leaf: t.first, lone: t.depth == 0 && t.count > 0}
	switch {
	case t.depth == 0 || end == Oldest:
	case end == Newest:
		w.leaf, w.pos = f.lastOf(t, f.at(t.first).priorities[0])
	default:
		w.leaf = t.last
		w.pos = w.last()
	}
	return w
}

// walkPriority starts at the packet that an end selects of one priority. The walk is done at once
// if there is none. After the last of them it goes on to other priorities.
func (f *forest) walkPriority(t *tree, priority uint32, end End) walk {
	w := walk{f: f, t: t, end: end}
	if t.depth == 0 {
		w.lone = t.count > 0 && t.lone[0] == priority
		return w
	}
	leaf, i := f.seek(t, place{priority, 0})
	if leaf == 0 || f.at(leaf).priorities[i] != priority {
		return w
	}
	if w.leaf, w.pos = leaf, i; end != Oldest {
		w.leaf, w.pos = f.lastOf(t, priority)
	}
	return w
}

// walkFrom starts at the first packet that an end does not select before a place.
func (f *forest) walkFrom(t *tree, k place, end End) walk {
	w := walk{f: f, t: t, end: end}
	if t.depth == 0 {
		w.lone = t.count > 0 && !end.earlier(t.lonePlace(), k)
		return w
	}
	w.leaf, w.pos = f.seek(t, k)
	if end == Oldest || w.leaf != 0 && w.place() == k {
		return w
	}
	switch { // it is the one before in the tree, if that has the priority
	case w.pos > 0:
		w.pos--
	case w.leaf != 0:
		w.leaf = f.at(w.leaf).prev
		w.pos = w.last()
	default:
		w.leaf = t.last
		w.pos = w.last()
	}
	if w.leaf != 0 && w.place().priority == k.priority {
		return w
	}
	return f.walkBelow(t, k.priority)
}

// walkBelow starts at the newest packet of the first priority that is worse than one.
func (f *forest) walkBelow(t *tree, priority uint32) walk {
	w := walk{f: f, t: t, end: Newest}
	if priority == math.MaxUint32 {
		return w
	}
	if leaf, i := f.seek(t, place{priority + 1, 0}); leaf != 0 {
		w.leaf, w.pos = f.lastOf(t, f.at(leaf).priorities[i])
	}
	return w
}

// last is the position of the last packet of the leaf.
func (w *walk) last() int {
	if w.leaf == 0 {
		return 0
	}
	return int(w.f.at(w.leaf).n) - 1
}

// seek returns the leaf and position of the first key of a tree with nodes that is not before k; 0
// when all are.
func (f *forest) seek(t *tree, k place) (leaf uint32, i int) {
	var p path
	leaf = f.descend(t, k, &p)
	n := f.at(leaf)
	if i = n.search(k); i < int(n.n) {
		return leaf, i
	}
	return n.next, 0
}

// done reports whether the walk is past the last packet.
func (w *walk) done() bool { return w.leaf == 0 && !w.lone }

// at returns the packet the walk is at.
func (w *walk) at() (place, uint32) {
	if w.lone {
		return w.t.lonePlace(), w.t.root
	}
	n := w.f.at(w.leaf)
	return n.key(w.pos), n.ids[w.pos]
}

// place returns the place the walk is at.
func (w *walk) place() place {
	k, _ := w.at()
	return k
}

// next goes to the next packet.
func (w *walk) next() { w.skip(1) }

// skip goes n packets on, a leaf at a time where it can.
func (w *walk) skip(n int) {
	w.lone = w.lone && n <= 0
	for n > 0 && w.leaf != 0 {
		w.f.passed++
		switch w.end {
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
func (w *walk) forward(n int) int {
	leaf := w.f.at(w.leaf)
	rest := int(leaf.n) - w.pos
	if n < rest {
		w.pos += n
		return 0
	}
	w.leaf, w.pos = leaf.next, 0
	return n - rest
}

// reverse is forward the other way.
func (w *walk) reverse(n int) int {
	if n <= w.pos {
		w.pos -= n
		return 0
	}
	n -= w.pos + 1
	w.leaf = w.f.at(w.leaf).prev
	w.pos = w.last()
	return n
}

// backward goes at most n packets down within one priority and one leaf, then one more to the leaf
// before or to the newest packet of the next priority. It returns how many of the n are left.
func (w *walk) backward(n int) int {
	leaf := w.f.at(w.leaf)
	priority := leaf.priorities[w.pos]
	low := 0
	if leaf.priorities[0] != priority {
		low = leaf.search(place{priority, 0})
	}
	if n <= w.pos-low {
		w.pos -= n
		return 0
	}
	n -= w.pos - low + 1
	if low == 0 && leaf.prev != 0 {
		if prev := w.f.at(leaf.prev); prev.priorities[prev.n-1] == priority {
			w.leaf, w.pos = leaf.prev, int(prev.n)-1
			return n
		}
	}
	w.f.passed += passedTurn
	end, i := w.f.lastOf(w.t, priority)
	last := w.f.at(end)
	if i++; i == int(last.n) {
		end, i = last.next, 0
	}
	if w.leaf, w.pos = end, i; end != 0 {
		w.leaf, w.pos = w.f.lastOf(w.t, w.f.at(end).priorities[i])
	}
	return n
}
