package index

import "slices"

// Next appends to dst the packets that the next selections would take, without groups, in that
// order: at most n, after the first skip ones. See Best for times. It costs O((skip+n) log(skip+n))
// at most, and with a filter O(lanes) more. With one lane, skipping goes a leaf at a time at the
// oldest end, and at the newest end where priorities are few. With one priority and no filter,
// whatever the lanes, skip counts from the nearer side.
func (x *Index) Next(q QueueID, s Selection, skip, n int, dst []Packet) []Packet {
	if !x.hasQueue(q) || s.End > Oldest {
		return dst
	}
	if n == 1 && skip <= 0 { // most takes; this allocates nothing
		if id := x.best(q, &s); id != 0 {
			dst = append(dst, x.packet(id, x.entries.at(id)))
		}
		return dst
	}
	u := x.queues.at(uint32(q))
	if skip <= 0 || s.Filter != nil { // the other side is not nearer, or it is not known how far that is
		return x.next(u, s, skip, n, dst)
	}
	left := -skip
	for t := range x.trees(u, s.Fits16) {
		left += int(t.count)
	}
	n = min(n, left)
	if n <= 0 {
		return dst
	}
	if left-n < skip { // else nothing is gained
		if _, one := x.onlyPriority(u); one {
			first := len(dst)
			dst = x.next(u, Selection{End: Oldest - s.End, Fits16: s.Fits16}, left-n, n, dst)
			slices.Reverse(dst[first:])
			return dst
		}
	}
	return x.next(u, s, skip, n, dst)
}

// next is Next from the side that s.End says.
func (x *Index) next(u *queue, s Selection, skip, n int, dst []Packet) []Packet {
	if u.lanes != nil {
		return x.nextOfLanes(u.lanes, s, skip, n, dst)
	}
	if !x.accepts(u.defaultLane, &s) {
		return dst
	}
	w := x.forest.walk(&x.lanes.at(uint32(u.defaultLane)).tree, s.End)
	w.skip(skip)
	for ; n > 0 && !w.done(); n-- {
		_, id := w.at()
		dst = append(dst, x.packet(id, x.entries.at(id)))
		w.next()
	}
	return dst
}

// Last is the packet that Next at the newest end gives last. The queue has one that can be
// selected. It costs O(log n) for each lane.
func (x *Index) Last(q QueueID) Packet {
	var last place
	var id uint32
	for t := range x.trees(x.queues.at(uint32(q)), false) {
		x.forest.passed += passedPaths
		end, _ := x.forest.highest(t)
		w := x.forest.walkPriority(t, end.priority, Oldest)
		if at, packet := w.at(); id == 0 || at.priority > last.priority || at.priority == last.priority && at.seq < last.seq {
			last, id = at, packet
		}
	}
	return x.packet(id, x.entries.at(id))
}

// NextBehind appends to dst the packets that the next selections at an end would take if those up
// to a place were gone, in that order: at most n. A place of priority 0 is before all. O(n log n),
// and O(lanes) for those that have packets before the place.
func (x *Index) NextBehind(q QueueID, end End, after Place, n int, dst []Packet) []Packet {
	open, s := x.openAllBehind(q, end, after), Selection{End: end}
	for ; n > 0 && len(open.heap) > 0; n-- {
		p := x.nextOpen(&open, &s)
		dst, after = append(dst, p), p.Place()
	}
	x.hold(q, after, open)
	return dst
}

// heldWalks is where the last look at a queue of several lanes stands, until they change: to open
// 10,000 of them in their midst takes some milliseconds.
type heldWalks struct {
	openWalks
	queue QueueID
	after Place
}

func (x *Index) hold(q QueueID, after Place, o openWalks) {
	if len(o.heap) > 1 {
		x.held = heldWalks{o, q, after}
	}
}

// openAllBehind opens the lanes of a queue from behind a place on.
func (x *Index) openAllBehind(q QueueID, end End, after Place) openWalks {
	if h := x.held; h.queue == q && h.end == end && h.after == after {
		x.held = heldWalks{}
		return h.openWalks
	}
	open := openWalks{end: end}
	from, ok := end.behind(place{after.Priority, after.Seq})
	if !x.hasQueue(q) || !ok {
		return open
	}
	u := x.queues.at(uint32(q))
	if u.lanes == nil {
		open.open(x.forest.walkFrom(&x.lanes.at(uint32(u.defaultLane)).tree, from, end))
	} else {
		all := func(LaneID) bool { return true }
		x.openLanesBehind(&open, u.lanes.narrow[end], 0, from, all)
		x.openLanesBehind(&open, u.lanes.wide[end], 0, from, all)
	}
	return open
}

// laneWalk is a walk over one lane.
type laneWalk struct {
	walk
	at place
	// heap is the lane's heap, and pos its place in that plus 1, until the walk is first taken
	// from. Only then can the lanes below it be next, so the cost does not depend on the number of
	// lanes.
	heap []laneHead
	pos  int
}

// nextOfLanes merges the lanes of a queue.
func (x *Index) nextOfLanes(set *laneSet, s Selection, skip, n int, dst []Packet) []Packet {
	open := openWalks{end: s.End}
	x.openLane(&open, set.narrow[s.End], 0, &s)
	if !s.Fits16 {
		x.openLane(&open, set.wide[s.End], 0, &s)
	}
	for ; n > 0 && len(open.heap) > 0; skip-- {
		if skip > 0 {
			x.step(&open, &s)
			continue
		}
		dst = append(dst, x.nextOpen(&open, &s))
		n--
	}
	return dst
}

// nextOpen returns the packet that open lanes are at, and goes to the next.
func (x *Index) nextOpen(o *openWalks, s *Selection) Packet {
	_, id := o.heap[0].walk.at()
	x.step(o, s)
	return x.packet(id, x.entries.at(id))
}

// step goes to the next packet of open lanes. It opens those that can be next now.
func (x *Index) step(o *openWalks, s *Selection) {
	top := &o.heap[0]
	heap, pos := top.heap, top.pos
	top.pos = 0
	if len(o.heap) > 1 {
		x.forest.passed += passedStep
	}
	o.next()
	if pos != 0 {
		x.openLane(o, heap, 2*pos-1, s)
		x.openLane(o, heap, 2*pos, s)
	}
}

// openLane opens a walk over the lane at a place of a heap. If the filter does not accept that, the
// lanes below it may be next.
func (x *Index) openLane(o *openWalks, h []laneHead, i int, s *Selection) {
	switch {
	case i >= len(h):
	case x.accepts(h[i].lane, s):
		w := x.forest.walk(&x.lanes.at(uint32(h[i].lane)).tree, s.End)
		o.add(laneWalk{walk: w, at: h[i].place, heap: h, pos: i + 1})
	default:
		x.openLane(o, h, 2*i+1, s)
		x.openLane(o, h, 2*i+2, s)
	}
}

// openWalks is a heap of walks: the one that is at the earliest place comes first.
type openWalks struct {
	end  End
	heap []laneWalk
}

func (o *openWalks) add(w laneWalk) {
	o.heap = append(o.heap, w)
	h := o.heap
	for c := len(h) - 1; c > 0 && o.end.earlier(h[c].at, h[(c-1)/2].at); c = (c - 1) / 2 {
		h[c], h[(c-1)/2] = h[(c-1)/2], h[c]
	}
}

// open adds a walk over a tree that is no lane in a heap.
func (o *openWalks) open(w walk) {
	if !w.done() {
		o.add(laneWalk{walk: w, at: w.place()})
	}
}

// next goes to the next packet of the first walk, which leaves the heap at its end.
func (o *openWalks) next() {
	top := &o.heap[0]
	if top.next(); top.done() {
		last := len(o.heap) - 1
		o.heap[0] = o.heap[last]
		o.heap = o.heap[:last]
	} else {
		top.at = top.place()
	}
	for i, h := 0, o.heap; ; {
		c := 2*i + 1
		if c >= len(h) {
			return
		}
		if c+1 < len(h) && o.end.earlier(h[c+1].at, h[c].at) {
			c++
		}
		if !o.end.earlier(h[c].at, h[i].at) {
			return
		}
		h[c], h[i] = h[i], h[c]
		i = c
	}
}
