package index

import "github.com/holdfast-queue/holdfast/index/tree"

// LaneID is the number of a lane in an [Index].
type LaneID uint32

// lane is the packets of a queue with equal tags and of one share, all wide or all narrow. Every
// queue has a default lane: narrow, without tags. Any other lane exists while it has packets.
//
// pos is kept up to date only while the lane is one of several.
type lane struct {
	tree    tree.Tree // the selectable packets
	twin    LaneID    // 0: none, see strict.go
	tags    string
	id      LaneID // its own
	queue   QueueID
	packets uint32    // in any state
	pos     [3]uint32 // by End: place in its heap plus 1; 0: not in it; [0] links free slots
	wide    bool
	fresh   bool   // in the queue's freshLanes
	gives   bool   // it is a twin
	share   *share // nil: the empty one, or the queue has no shares
}

func (l *lane) FreeLink() *uint32 { return &l.pos[0] }

// lanes are those of a queue, or of one of its shares; those of the empty share are the queue's.
type lanes struct {
	home LaneID   // of a queue its default lane; else the only one, 0 while there are several
	wide uint32   // of a queue: how many lanes of it, and of all its shares, are wide
	set  *laneSet // nil while there is only home
}

// lanesOf returns the lanes of which a lane is one.
func (x *Index) lanesOf(l *lane) *lanes {
	u := x.queues.At(uint32(l.queue))
	if l.gives {
		return u.twinsOf(l.share)
	}
	return u.lanesOf(l.share)
}

// laneSet is several lanes.
type laneSet struct {
	byKey map[laneKey]LaneID // all but home; never empty
	heaps [3]laneHeap        // by End, of the lanes with a selectable packet: what each selects
	wide  int                // how many of these lanes are wide
	ends  []End              // those that have heaps
}

type laneKey struct {
	tags string
	wide bool
}

// laneOrders are the orders of heaps. Lanes are in the heap of the worst only once somebody asks
// for it.
var laneOrders = [3]End{Newest, Oldest, worst}

// laneHead is what an end of a lane selects. It is small, as heaps move it about.
type laneHead struct {
	seq      uint64
	lane     *lane
	priority uint32
	end      End
}

func (a *laneHead) place() tree.Place { return tree.Place{Priority: a.priority, Seq: a.seq} }

// Before is the order in which an end selects.
func (a *laneHead) Before(b *laneHead) bool { return a.end.Earlier(a.place(), b.place()) }

// Moved notes the place of the lane in its heap.
func (a *laneHead) Moved(pos uint32) { a.lane.pos[a.end] = pos }

type laneHeap = tree.Heap[laneHead, *laneHead]

// laneFor returns the lane of a queue for packets of a share with some tags, wide or narrow ones.
// It makes the lane if there is none.
func (x *Index) laneFor(q QueueID, s *share, tags []byte, wide bool) LaneID {
	u := x.queues.At(uint32(q))
	of := u.lanesOf(s)
	if id := x.laneIn(of, tags, wide); id != 0 {
		return id
	}
	first := of.home == 0 && of.set == nil
	id := x.addLane(of, lane{queue: q, share: s, tags: string(tags), wide: wide})
	if first { // it is of a share
		u.shares.setResting(s, false)
	}
	if wide {
		u.wide++
	}
	if u.shares != nil {
		u.shares.countLane(x.lanes.At(uint32(id)), 1)
	}
	return id
}

// addLane makes one of some lanes.
func (x *Index) addLane(of *lanes, l lane) LaneID {
	id := LaneID(x.lanes.Alloc())
	l.id = id
	*x.lanes.At(uint32(id)) = l
	if of.home == 0 && of.set == nil {
		of.home = id
		return id
	}
	if of.set == nil {
		of.set = &laneSet{byKey: make(map[laneKey]LaneID), ends: laneOrders[:worst]}
		x.updateHeads(x.lanes.At(uint32(of.home)))
		if l.share != nil || l.gives {
			home := x.lanes.At(uint32(of.home))
			of.set.byKey[laneKey{home.tags, home.wide}] = of.home
			of.home = 0
		}
	}
	of.set.byKey[laneKey{l.tags, l.wide}] = id
	return id
}

// laneIn returns one of some lanes; 0 if it is not there.
func (x *Index) laneIn(of *lanes, tags []byte, wide bool) LaneID {
	if of.home != 0 {
		if l := x.lanes.At(uint32(of.home)); l.wide == wide && l.tags == string(tags) {
			return of.home
		}
	}
	if of.set != nil {
		return of.set.byKey[laneKey{string(tags), wide}]
	}
	return 0
}

// Tags returns the tags of a lane, empty for a default lane; false when there is no such lane.
func (x *Index) Tags(l LaneID) (string, bool) {
	if !x.hasLane(l) {
		return "", false
	}
	return x.lanes.At(uint32(l)).tags, true
}

// Lanes is how many lanes a queue has besides its default lane.
func (x *Index) Lanes(q QueueID) int {
	switch {
	case !x.hasQueue(q):
		return 0
	case x.queues.At(uint32(q)).shares != nil:
		return x.queues.At(uint32(q)).shares.lanes
	case x.queues.At(uint32(q)).set == nil:
		return 0
	}
	return len(x.queues.At(uint32(q)).set.byKey)
}

// LanesIn is how many lanes a share has, by its name; with a nil one, what Lanes says.
func (x *Index) LanesIn(q QueueID, share []byte) int {
	if share == nil || !x.hasQueue(q) || x.queues.At(uint32(q)).shares == nil {
		return x.Lanes(q)
	}
	u := x.queues.At(uint32(q))
	of, _ := u.shareNamed(share)
	switch {
	case of == nil:
		return 0
	case u.lanesOf(of).set != nil:
		return len(u.lanesOf(of).set.byKey)
	}
	return 1
}

// TagSets is how many sets of tags the packets of a queue have beside none, and whether these are
// one of them. A set counts twice if wide packets and others have it. In a queue that is shared out
// it counts once, and without what says the share.
func (x *Index) TagSets(q QueueID, tags []byte) (n int, has bool) {
	if !x.hasQueue(q) {
		return 0, false
	}
	u := x.queues.At(uint32(q))
	if u.shares != nil {
		return u.shares.tagSets(tags)
	}
	if u.set == nil {
		return 0, false
	}
	_, narrow := u.set.byKey[laneKey{string(tags), false}]
	_, wide := u.set.byKey[laneKey{string(tags), true}]
	return len(u.set.byKey), narrow || wide
}

func (x *Index) hasLane(l LaneID) bool {
	return x.lanes.Has(uint32(l)) && x.lanes.At(uint32(l)).queue != 0
}

// joinLane makes a packet one of a lane, and so of a queue.
func (x *Index) joinLane(e *entry, id LaneID) {
	l := x.lanes.At(uint32(id))
	e.lane = id
	l.packets++
	x.queues.At(uint32(l.queue)).bytes += int64(e.size)
}

// leaveLane is the reverse of joinLane. A lane without packets goes, unless it is a default lane.
func (x *Index) leaveLane(e *entry) {
	l := x.lanes.At(uint32(e.lane))
	u := x.queues.At(uint32(l.queue))
	u.bytes -= int64(e.size)
	if l.packets--; l.packets > 0 || u.home == e.lane {
		return
	}
	if l.wide {
		u.wide--
	}
	if u.shares != nil {
		u.shares.countLane(l, -1)
	}
	of, s := x.lanesOf(l), l.share
	x.dropTwin(e.lane)
	if x.dropLane(of, e.lane); of.home == 0 && of.set == nil { // it was the only one of its share
		x.leaveShare(u, s)
	}
}

// dropLane ends one of some lanes.
func (x *Index) dropLane(of *lanes, id LaneID) {
	l := x.lanes.At(uint32(id))
	u, stays := x.queues.At(uint32(l.queue)), l.share == nil && !l.gives // home does
	if of.set == nil {
		of.home = 0
	} else {
		delete(of.set.byKey, laneKey{l.tags, l.wide})
	}
	x.lanes.Free(uint32(id))
	switch {
	case of.set == nil || len(of.set.byKey) > 1 || stays && len(of.set.byKey) > 0:
		return
	case !stays:
		for _, only := range of.set.byKey {
			of.home = only
		}
	}
	of.set = nil
	home := x.lanes.At(uint32(of.home))
	home.pos[Newest], home.pos[Oldest] = 0, 0
	if u.shares == nil {
		home.pos[worst] = 0
	}
}

// WideLanes is how many lanes of a queue have wide packets, in any state.
func (x *Index) WideLanes(q QueueID) int {
	if !x.hasQueue(q) {
		return 0
	}
	return int(x.queues.At(uint32(q)).wide)
}

// widths says whether some lanes have narrow packets that can be selected, and wide ones. O(1).
func (x *Index) widths(of *lanes) (narrow, wide bool) {
	if of.set != nil {
		return len(of.set.heaps[Newest]) > of.set.wide, of.set.wide > 0
	}
	l := x.lanes.At(uint32(of.home))
	return l.tree.Count > 0 && !l.wide, l.tree.Count > 0 && l.wide
}

// head returns what an end of a lane selects; the lane's tree is not empty.
func (x *Index) head(l *lane, end End) (tree.Place, uint32) {
	switch end {
	case Newest:
		return x.forest.Newest(&l.tree)
	case Oldest:
		return x.forest.Lowest(&l.tree)
	}
	return x.forest.Highest(&l.tree)
}

// updateHeads brings the heaps that a lane is in up to date after its tree changed.
func (x *Index) updateHeads(l *lane) {
	if sh := x.queues.At(uint32(l.queue)).shares; sh != nil && sh.keepsWorst && !l.gives {
		x.updateHead(&sh.worst, worst, l)
	}
	set := x.lanesOf(l).set
	if set == nil {
		return
	}
	if x.held.queue == l.queue {
		x.held = heldWalks{}
	}
	before := len(set.heaps[Newest])
	for _, end := range set.ends {
		x.updateHead(&set.heaps[end], end, l)
	}
	if l.wide {
		set.wide += len(set.heaps[Newest]) - before
	}
}

// updateHead is updateHeads for one heap.
func (x *Index) updateHead(heap *laneHeap, end End, l *lane) {
	i := int(l.pos[end]) - 1
	if l.tree.Count == 0 {
		if i >= 0 {
			heap.Remove(i)
		}
		return
	}
	at, _ := x.head(l, end)
	switch head := (laneHead{at.Seq, l, at.Priority, end}); {
	case i < 0:
		heap.Push(head)
	case (*heap)[i] != head:
		heap.Set(i, head)
	}
}
