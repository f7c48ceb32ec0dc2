package index

import (
	"slices"

	"github.com/holdfast-queue/holdfast/index/tree"
)

// Next appends to dst the packets that the next selections would take, without groups, in that
// order: at most n, after the first skip ones. See Best for times. It costs O((skip+n) log(skip+n))
// at most, and with a filter O(lanes) more. With one lane, skipping goes a leaf at a time at the
// oldest end, and at the newest end where priorities are few.
func (x *Index) Next(q QueueID, s Selection, skip, n int, dst []Packet) []Packet {
	if !x.hasQueue(q) || s.End > Oldest {
		return dst
	}
	if n == 1 && skip <= 0 { // most takes; this allocates nothing
		if id := x.best(q, &s); id != 0 {
			dst = append(dst, x.packet(id, x.entries.At(id)))
		}
		return dst
	}
	u := x.queues.At(uint32(q))
	if u.rules != nil {
		n = min(n, x.allowed(u, &s, nil)-max(0, skip))
	}
	if u.shares != nil {
		switch of, all := u.shareNamed(s.Share); {
		case all:
			return x.byTurns(u, s, skip, n, dst)
		case of != nil:
			return x.next(u.giving(of), s, skip, min(n, x.allowed(u, &s, of)-max(0, skip)), dst)
		}
		return dst
	}
	if len(s.Share) > 0 {
		return dst
	}
	return x.next(u.giving(nil), s, skip, n, dst)
}

// Elements appends to dst the selectable packets of a queue from a place on, in the order of Next
// at the newest end: at most n. It looks at the order alone, whatever keeps takes from a packet.
// Nothing is appended of a queue that is shared out: it has no places. Skipping goes a leaf at a
// time in one lane where priorities are few. With one priority from counts from the nearer side.
func (x *Index) Elements(q QueueID, from, n int, dst []Packet) []Packet {
	if !x.hasQueue(q) || x.queues.At(uint32(q)).shares != nil {
		return dst
	}
	u := x.queues.At(uint32(q))
	left := u.ready - from
	if n = min(n, left); n <= 0 {
		return dst
	}
	if left-n < from { // else nothing is gained
		if _, one := x.onlyPriority(u); one {
			first := len(dst)
			dst = x.next(&u.lanes, Selection{End: Oldest}, left-n, n, dst)
			slices.Reverse(dst[first:])
			return dst
		}
	}
	return x.next(&u.lanes, Selection{}, from, n, dst)
}

// next is Next of some lanes, from the side that s.End says.
func (x *Index) next(of *lanes, s Selection, skip, n int, dst []Packet) []Packet {
	if of.set != nil {
		o := openWalks{x: x, end: s.End, perStep: passedStep, accepts: s.taking()}
		o.openLanes(of)
		for ; n > 0 && len(o.heap) > 0; skip-- {
			if id := o.take(); skip <= 0 {
				dst = append(dst, x.packet(id, x.entries.At(id)))
				n--
			}
		}
		return dst
	}
	home := x.lanes.At(uint32(of.home))
	if !s.takes(home) {
		return dst
	}
	w := x.forest.Walk(&home.tree, s.End)
	w.Skip(skip)
	for ; n > 0 && !w.Done(); n-- {
		_, id := w.At()
		dst = append(dst, x.packet(id, x.entries.At(id)))
		w.Next()
	}
	return dst
}

// Last is the packet that Next at the newest end gives last. The queue has one that can be
// selected. It costs O(log n) for each lane.
func (x *Index) Last(q QueueID) Packet {
	var last tree.Place
	var id uint32
	for l := range x.filled(x.queues.At(uint32(q))) {
		x.forest.Passed += passedPaths
		end, _ := x.forest.Highest(&l.tree)
		w := x.forest.WalkPriority(&l.tree, end.Priority, Oldest)
		if at, packet := w.At(); id == 0 || at.Priority > last.Priority || at.Priority == last.Priority && at.Seq < last.Seq {
			last, id = at, packet
		}
	}
	return x.packet(id, x.entries.At(id))
}

// Ready is how many packets of a queue a selection takes, and most if they are more. O(1); with a
// filter, a share, or for narrow packets alone, O(lanes); with limits of shares O(most).
func (x *Index) Ready(q QueueID, s Selection, most int) (n int) {
	if !x.hasQueue(q) {
		return 0
	}
	u := x.queues.At(uint32(q))
	lanes := x.takable(u)
	most = min(most, x.allowed(u, &s, nil))
	switch {
	case s.Share != nil && u.shares != nil:
		of, _ := u.shareNamed(s.Share)
		if of == nil {
			return 0
		}
		lanes, most = x.filledIn(u.giving(of)), min(most, x.allowed(u, &s, of))
	case len(s.Share) > 0:
		return 0
	case s.Limits && u.limitsShares():
		return x.readyByShares(u, &s, most)
	case s.Filter == nil && !s.Fits16 && !u.inOrder():
		return min(u.ready, most)
	case s.Filter == nil && !s.Fits16:
		return min(u.strict().firsts, most)
	}
	for l := range lanes {
		if n < most && s.takes(l) {
			n += int(l.tree.Count)
		}
	}
	return min(n, most)
}

// NextBehind appends to dst the packets that the next selections at an end would take if those up
// to a place were gone, in that order: at most n. A place of priority 0 is before all. O(n log n),
// and O(lanes) for those that have packets before the place.
func (x *Index) NextBehind(q QueueID, end End, after Place, n int, dst []Packet) []Packet {
	o := x.openBehind(q, end, after)
	for ; n > 0 && len(o.heap) > 0; n-- {
		id := o.take()
		p := x.packet(id, x.entries.At(id))
		dst, after = append(dst, p), p.Place()
	}
	if len(o.heap) > 1 {
		x.held = heldWalks{o, q, after}
	}
	return dst
}

// heldWalks is where the last look at a queue of several lanes stands, until they change: to open
// 10,000 of them in their midst takes some milliseconds.
type heldWalks struct {
	openWalks
	queue QueueID
	after Place
}

// openBehind opens the lanes of a queue from behind a place on.
func (x *Index) openBehind(q QueueID, end End, after Place) openWalks {
	if h := x.held; h.queue == q && h.end == end && h.after == after {
		x.held = heldWalks{}
		return h.openWalks
	}
	from, ok := end.Behind(tree.Place{Priority: after.Priority, Seq: after.Seq})
	o := openWalks{x: x, end: end, from: from, perLane: passedLane, perStep: passedStep}
	if x.hasQueue(q) && ok {
		o.openLanes(&x.queues.At(uint32(q)).lanes)
	}
	o.perLane = 0 // a step that opens lanes counts as one
	return o
}

// laneWalk is a walk over one lane.
type laneWalk struct {
	tree.Walk
	at tree.Place
	// heap is the lane's heap, and pos its place in that plus 1, until the walk is first taken
	// from. Only then can the lanes below it be next, so the cost does not depend on the number of
	// lanes.
	heap laneHeap
	pos  int
}

// Before is the order in which the end of the walks selects.
func (a *laneWalk) Before(b *laneWalk) bool { return a.End.Earlier(a.at, b.at) }

// Moved notes nothing: nobody asks for the place.
func (a *laneWalk) Moved(uint32) {}

// openWalks merges walks over trees: it is a heap of them, the one at the earliest place first. It
// opens the lanes of a queue as they can be next.
type openWalks struct {
	x       *Index
	end     End
	from    tree.Place       // at which the walks begin; the zero place is before all
	accepts func(*lane) bool // which lanes are opened; nil: all
	heap    tree.Heap[laneWalk, *laneWalk]

	perLane, perStep int // what to open a lane, and a step among several walks, count as passed
}

// openLanes opens some lanes.
func (o *openWalks) openLanes(of *lanes) {
	home := o.x.lanes.At(uint32(of.home))
	switch {
	case of.set != nil:
		o.openLane(of.set.heaps[o.end], 0)
	case o.accepts == nil || o.accepts(home):
		o.open(&home.tree)
	}
}

// openLane opens the lane at a place of a heap. If the filter does not accept that, or its first
// packets are left out, the lanes below it may be next.
func (o *openWalks) openLane(h laneHeap, i int) {
	if i >= len(h) {
		return
	}
	o.x.forest.Passed += o.perLane
	if o.accepts == nil || o.accepts(h[i].lane) {
		t := &h[i].lane.tree
		if o.from == (tree.Place{}) || !o.end.Earlier(h[i].place(), o.from) {
			o.heap.Push(laneWalk{Walk: o.x.forest.Walk(t, o.end), at: h[i].place(), heap: h, pos: i + 1})
			return
		}
		o.open(t)
	}
	o.openLane(h, 2*i+1)
	o.openLane(h, 2*i+2)
}

// open adds a walk over a tree that is no lane in a heap.
func (o *openWalks) open(t *tree.Tree) {
	if o.from == (tree.Place{}) {
		o.add(o.x.forest.Walk(t, o.end))
	} else {
		o.add(o.x.forest.WalkFrom(t, o.from, o.end))
	}
}

// add adds a walk, unless it is at its end.
func (o *openWalks) add(w tree.Walk) {
	if !w.Done() {
		o.heap.Push(laneWalk{Walk: w, at: w.Place()})
	}
}

// take returns the packet that comes next, and goes on. It opens the lanes that can be next then.
func (o *openWalks) take() uint32 {
	top := &o.heap[0]
	_, id := top.At()
	heap, pos := top.heap, top.pos
	top.pos = 0
	if len(o.heap) > 1 {
		o.x.forest.Passed += o.perStep
	}
	o.next()
	if pos != 0 {
		o.openLane(heap, 2*pos-1)
		o.openLane(heap, 2*pos)
	}
	return id
}

// next goes to the next packet of the first walk, which leaves the heap at its end.
func (o *openWalks) next() {
	top := &o.heap[0]
	if top.Next(); top.Done() {
		o.heap.Remove(0)
		return
	}
	top.at = top.Place()
	o.heap.Fix(0)
}
