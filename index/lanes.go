package index

// LaneID is the number of a lane in an [Index].
type LaneID uint32

// lane is the packets of a queue with equal tags, all wide or all narrow. Every queue has a default
// lane: narrow, without tags. Any other lane exists while it has packets.
//
// pos is kept up to date only while the queue has more than its default lane.
type lane struct {
	tree    tree // the selectable packets
	tags    string
	queue   QueueID
	packets uint32    // in any state
	pos     [3]uint32 // by End: place in its heap plus 1; 0: not in it; [0] links free slots
	wide    bool
	fresh   bool // in the queue's freshLanes
}

func (l *lane) freeLink() *uint32 { return &l.pos[0] }

// laneSet is the lanes of a queue with more than one.
type laneSet struct {
	byKey        map[laneKey]LaneID // all but the default lane; never empty
	narrow, wide laneHeaps
	ends         []End // those that have heaps
}

type laneKey struct {
	tags string
	wide bool
}

// laneHeaps holds the lanes with a selectable packet, by End: a heap of what each of them selects.
type laneHeaps [3][]laneHead

// laneOrders are the orders of heaps. Lanes are in the heap of the worst only once somebody asks
// for it.
var laneOrders = [3]End{Newest, Oldest, worst}

type laneHead struct {
	place place
	lane  LaneID
}

func (s *laneSet) heapsOf(l *lane) *laneHeaps {
	if l.wide {
		return &s.wide
	}
	return &s.narrow
}

// laneFor returns the lane of a queue for packets with some tags, wide or narrow ones. It makes the
// lane if there is none.
func (x *Index) laneFor(q QueueID, tags []byte, wide bool) LaneID {
	u := x.queues.at(uint32(q))
	if len(tags) == 0 && !wide {
		return u.defaultLane
	}
	if u.lanes != nil {
		if id, ok := u.lanes.byKey[laneKey{string(tags), wide}]; ok {
			return id
		}
	}
	id := LaneID(x.lanes.alloc())
	l := x.lanes.at(uint32(id))
	l.queue, l.tags, l.wide = q, string(tags), wide
	if u.lanes == nil {
		u.lanes = &laneSet{byKey: make(map[laneKey]LaneID), ends: laneOrders[:worst]}
		x.updateHeads(u.defaultLane)
	}
	u.lanes.byKey[laneKey{l.tags, wide}] = id
	return id
}

// Tags returns the tags of a lane, empty for a default lane; false when there is no such lane.
func (x *Index) Tags(l LaneID) (string, bool) {
	if !x.hasLane(l) {
		return "", false
	}
	return x.lanes.at(uint32(l)).tags, true
}

// Lanes is how many lanes a queue has besides its default lane, and whether one of them has these
// tags.
func (x *Index) Lanes(q QueueID, tags []byte) (n int, has bool) {
	if !x.hasQueue(q) || x.queues.at(uint32(q)).lanes == nil {
		return 0, false
	}
	all := x.queues.at(uint32(q)).lanes.byKey
	_, narrow := all[laneKey{string(tags), false}]
	_, wide := all[laneKey{string(tags), true}]
	return len(all), narrow || wide
}

func (x *Index) hasLane(l LaneID) bool {
	return x.lanes.has(uint32(l)) && x.lanes.at(uint32(l)).queue != 0
}

// joinLane makes a packet one of a lane, and so of a queue.
func (x *Index) joinLane(e *entry, id LaneID) {
	l := x.lanes.at(uint32(id))
	e.lane = id
	l.packets++
	x.queues.at(uint32(l.queue)).bytes += int64(e.size)
}

// leaveLane is the reverse of joinLane. A lane without packets goes, unless it is a default lane.
func (x *Index) leaveLane(e *entry) {
	l := x.lanes.at(uint32(e.lane))
	u := x.queues.at(uint32(l.queue))
	u.bytes -= int64(e.size)
	if l.packets--; l.packets > 0 || u.defaultLane == e.lane {
		return
	}
	delete(u.lanes.byKey, laneKey{l.tags, l.wide})
	x.lanes.free(uint32(e.lane))
	if len(u.lanes.byKey) == 0 {
		u.lanes = nil
		x.lanes.at(uint32(u.defaultLane)).pos = [3]uint32{}
	}
}

// Widths reports whether a queue has selectable packets that are narrow, and such that are wide.
// O(1).
func (x *Index) Widths(q QueueID) (narrow, wide bool) {
	if !x.hasQueue(q) {
		return false, false
	}
	u := x.queues.at(uint32(q))
	if u.lanes == nil {
		return u.ready > 0, false
	}
	return len(u.lanes.narrow[Newest]) > 0, len(u.lanes.wide[Newest]) > 0
}

// head returns what an end of a lane selects; the lane's tree is not empty.
func (x *Index) head(l *lane, end End) (place, uint32) {
	switch end {
	case Newest:
		return x.forest.newest(&l.tree)
	case Oldest:
		return x.forest.lowest(&l.tree)
	}
	return x.forest.highest(&l.tree)
}

// updateHeads brings the heaps of a queue with several lanes up to date after the tree of a lane
// changed.
func (x *Index) updateHeads(id LaneID) {
	l := x.lanes.at(uint32(id))
	set := x.queues.at(uint32(l.queue)).lanes
	if set == nil {
		return
	}
	if x.held.queue == l.queue {
		x.held = heldWalks{}
	}
	heaps := set.heapsOf(l)
	for _, end := range set.ends {
		if l.tree.count == 0 {
			if l.pos[end] != 0 {
				x.heapRemove(heaps, end, int(l.pos[end]-1))
				l.pos[end] = 0
			}
			continue
		}
		head, _ := x.head(l, end)
		if l.pos[end] == 0 {
			heaps[end] = append(heaps[end], laneHead{lane: id})
			l.pos[end] = uint32(len(heaps[end]))
		}
		if h := &heaps[end][l.pos[end]-1]; h.place != head {
			h.place = head
			x.heapFix(heaps[end], end, int(l.pos[end]-1))
		}
	}
}

// heapRemove takes place i out of a heap of lanes. The caller clears the lane's own pos.
func (x *Index) heapRemove(heaps *laneHeaps, end End, i int) {
	h := heaps[end]
	last := len(h) - 1
	h[i] = h[last]
	heaps[end] = h[:last]
	if i < last {
		x.lanes.at(uint32(h[i].lane)).pos[end] = uint32(i + 1)
		x.heapFix(heaps[end], end, i)
	}
}

// heapFix moves the lane at i to where its head belongs.
func (x *Index) heapFix(h []laneHead, end End, i int) {
	before := func(a, b int) bool { return end.earlier(h[a].place, h[b].place) }
	for i > 0 && before(i, (i-1)/2) {
		x.heapSwap(h, end, i, (i-1)/2)
		i = (i - 1) / 2
	}
	for {
		c := 2*i + 1
		if c >= len(h) {
			return
		}
		if c+1 < len(h) && before(c+1, c) {
			c++
		}
		if !before(c, i) {
			return
		}
		x.heapSwap(h, end, i, c)
		i = c
	}
}

func (x *Index) heapSwap(h []laneHead, end End, i, j int) {
	h[i], h[j] = h[j], h[i]
	x.lanes.at(uint32(h[i].lane)).pos[end] = uint32(i + 1)
	x.lanes.at(uint32(h[j].lane)).pos[end] = uint32(j + 1)
}
