package index

import (
	"container/heap"
	"iter"
)

// Worst gives the ready and delayed packets of a queue, those first that it can best do without: of
// priority 0, then of the highest priority number, and of equal ones the newest. It is valid until
// the index changes or the next call. The first costs O(lanes + log n), each other O(log lanes).
func (x *Index) Worst(q QueueID) iter.Seq[Packet] {
	return func(yield func(Packet) bool) {
		if !x.hasQueue(q) {
			return
		}
		u, walks := x.queues.at(uint32(q)), x.worst[:0]
		defer func() { x.worst = walks[:0] }()
		for t := range x.trees(u, false) {
			walks = append(walks, x.forest.walkWorst(t))
		}
		if u.aside != 0 {
			for _, s := range [2]State{Ready, Delayed} {
				if t := x.asides.at(u.aside).tree(s); t.count > 0 {
					walks = append(walks, x.forest.walkWorst(t).fromZero()) // lanes have no priority 0
				}
			}
		}
		heap.Init(&walks)
		for len(walks) > 0 {
			w := &walks[0]
			_, id := w.at()
			if !yield(x.packet(id, x.entries.at(id))) {
				return
			}
			if w.left--; w.left == 0 {
				heap.Pop(&walks)
				continue
			}
			*w = w.back()
			heap.Fix(&walks, 0)
		}
	}
}

// worstWalk goes over a tree backwards. It begins at the newest packet of priority 0, if there is
// one, and goes on from the first packet of the tree to the last.
type worstWalk struct {
	walk
	rank place // where it is, but priority 0 comes after all others
	left int   // packets, the one it is at included
}

func (f *forest) walkWorst(t *tree) worstWalk {
	w := worstWalk{walk: walk{f: f, t: t, lone: t.depth == 0}, left: int(t.count)}
	if !w.lone {
		w.leaf, w.pos = t.last, int(f.at(t.last).n)-1
	}
	return w.ranked()
}

// fromZero makes the walk begin at priority 0.
func (w worstWalk) fromZero() worstWalk {
	if !w.lone && w.f.at(w.t.first).priorities[0] == 0 {
		w.leaf, w.pos = w.f.lastOf(w.t, 0)
	}
	return w.ranked()
}

func (w worstWalk) ranked() worstWalk {
	w.rank = w.place()
	w.rank.priority--
	return w
}

// back returns the walk at its next packet.
func (w worstWalk) back() worstWalk {
	if w.pos--; w.pos < 0 {
		if w.leaf = w.f.at(w.leaf).prev; w.leaf == 0 {
			w.leaf = w.t.last
		}
		w.pos = int(w.f.at(w.leaf).n) - 1
	}
	return w.ranked()
}

// worstWalks is a heap of walks: the one that is at the worst packet comes first (container/heap).
type worstWalks []worstWalk

func (h worstWalks) Len() int           { return len(h) }
func (h worstWalks) Less(i, j int) bool { return h[j].rank.before(h[i].rank) }
func (h worstWalks) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push is called by container/heap.
func (h *worstWalks) Push(w any) { *h = append(*h, w.(worstWalk)) }

// Pop is called by container/heap.
func (h *worstWalks) Pop() any {
	last := len(*h) - 1
	w := (*h)[last]
	*h = (*h)[:last]
	return w
}
