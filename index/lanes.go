package index

// LaneID is the number of a lane in an [Index]; 0 stands for the default lane of a queue.
type LaneID uint32

// lane is the packets of a queue with the same tags.
//
// heads and pos are kept up to date only while the queue has more than one lane.
type lane struct {
	tree    tree // the selectable packets
	tags    []byte
	queue   QueueID
	packets uint32    // in any state
	heads   [2]place  // by End: the place of what it selects, while the tree is not empty
	pos     [2]uint32 // by End: place in the queue's heap plus 1; 0: not in it; [0] links free slots
}

func (l *lane) freeLink() *uint32 { return &l.pos[0] }

// Lane returns the lane of a queue for packets with these tags; 0 when the queue is unknown. The
// encoding of the tags must be canonical: equal sets, equal bytes.
//
// The number is good for a Push that follows. A lane is freed when its last packet goes; one that
// never had a packet is freed by the next call of Lane for the queue.
func (x *Index) Lane(q QueueID, tags []byte) LaneID {
	if !x.hasQueue(q) {
		return 0
	}
	u := x.queues.at(uint32(q))
	if len(tags) == 0 {
		return u.defaultLane
	}
	if id, ok := u.byTags[string(tags)]; ok {
		return id
	}
	if u.unused != 0 {
		x.freeLane(u.unused)
	}
	id := x.newLane(q)
	if id == 0 {
		return 0
	}
	x.lanes.at(uint32(id)).tags = append([]byte(nil), tags...)
	if u.byTags == nil {
		u.byTags = make(map[string]LaneID)
		x.updateHeads(u.defaultLane)
	}
	u.byTags[string(tags)] = id
	u.unused = id
	return id
}

// Tags returns the tags of a lane, empty for a default lane; false when there is no such lane. The
// bytes are the index's own.
func (x *Index) Tags(l LaneID) ([]byte, bool) {
	if !x.hasLane(l) {
		return nil, false
	}
	return x.lanes.at(uint32(l)).tags, true
}

func (x *Index) hasLane(l LaneID) bool {
	return x.lanes.has(uint32(l)) && x.lanes.at(uint32(l)).queue != 0
}

func (x *Index) newLane(q QueueID) LaneID {
	id := x.lanes.alloc()
	if id != 0 {
		x.lanes.at(id).queue = q
	}
	return LaneID(id)
}

// freeLane frees a lane without packets that is not a default lane. With the last one go the
// queue's heaps.
func (x *Index) freeLane(id LaneID) {
	l := x.lanes.at(uint32(id))
	u := x.queues.at(uint32(l.queue))
	delete(u.byTags, string(l.tags))
	if u.unused == id {
		u.unused = 0
	}
	x.lanes.free(uint32(id))
	if len(u.byTags) == 0 {
		u.byTags, u.heaps = nil, [2][]LaneID{}
		x.lanes.at(uint32(u.defaultLane)).pos = [2]uint32{}
	}
}

// head returns what an end of a lane selects; the lane's tree is not empty.
func (x *Index) head(l *lane, end End) (place, uint32) {
	if end == Oldest {
		return x.forest.lowest(&l.tree)
	}
	return x.forest.newest(&l.tree)
}

// updateHeads brings the heaps of a queue with several lanes up to date after the tree of a lane
// changed.
func (x *Index) updateHeads(id LaneID) {
	l := x.lanes.at(uint32(id))
	u := x.queues.at(uint32(l.queue))
	if u.byTags == nil {
		return
	}
	for _, end := range [2]End{Newest, Oldest} {
		if l.tree.count == 0 {
			if l.pos[end] != 0 {
				x.heapRemove(u, end, int(l.pos[end]-1))
				l.pos[end] = 0
			}
			continue
		}
		head, _ := x.head(l, end)
		if l.pos[end] != 0 && head == l.heads[end] {
			continue
		}
		l.heads[end] = head
		if l.pos[end] == 0 {
			u.heaps[end] = append(u.heaps[end], id)
			l.pos[end] = uint32(len(u.heaps[end]))
		}
		x.heapFix(u, end, int(l.pos[end]-1))
	}
}

// heapRemove takes place i out of one of a queue's heaps. The caller clears the lane's own pos.
func (x *Index) heapRemove(u *queue, end End, i int) {
	h := u.heaps[end]
	last := len(h) - 1
	h[i] = h[last]
	u.heaps[end] = h[:last]
	if i < last {
		x.lanes.at(uint32(h[i])).pos[end] = uint32(i + 1)
		x.heapFix(u, end, i)
	}
}

// heapFix moves the lane at i to where its head belongs.
func (x *Index) heapFix(u *queue, end End, i int) {
	h := u.heaps[end]
	for i > 0 && x.laneBefore(end, h[i], h[(i-1)/2]) {
		x.heapSwap(h, end, i, (i-1)/2)
		i = (i - 1) / 2
	}
	for {
		c := 2*i + 1
		if c >= len(h) {
			return
		}
		if c+1 < len(h) && x.laneBefore(end, h[c+1], h[c]) {
			c++
		}
		if !x.laneBefore(end, h[c], h[i]) {
			return
		}
		x.heapSwap(h, end, i, c)
		i = c
	}
}

func (x *Index) laneBefore(end End, a, b LaneID) bool {
	return end.earlier(x.lanes.at(uint32(a)).heads[end], x.lanes.at(uint32(b)).heads[end])
}

func (x *Index) heapSwap(h []LaneID, end End, i, j int) {
	h[i], h[j] = h[j], h[i]
	x.lanes.at(uint32(h[i])).pos[end] = uint32(i + 1)
	x.lanes.at(uint32(h[j])).pos[end] = uint32(j + 1)
}
