package index

import (
	"iter"

	"github.com/holdfast-queue/holdfast/index/tree"
)

// byState is the packets of a queue that cannot be selected, in a tree for each state; those that
// are Ready have priority 0. It exists while there is one.
type byState struct {
	trees  [Damaged]tree.Tree
	byTime tree.Tree // the Delayed ones once more, soonest first: places are those of timePlace
	ended  int64     // bytes of packets that are Dead, Done or Damaged
}

func (a *byState) FreeLink() *uint32 { return &a.trees[0].Count }

func (a *byState) tree(s State) *tree.Tree { return &a.trees[s-Ready] }

// count is how many packets of the queue are in a state and cannot be selected.
func (a *byState) count(s State) int { return int(a.tree(s).Count) }

// linkByState puts a packet that cannot be selected into its tree.
func (x *Index) linkByState(u *queue, id uint32, e *entry) {
	if u.byState == 0 {
		u.byState = x.byStates.Alloc()
	}
	a := x.byStates.At(u.byState)
	x.mustInsert(a.tree(e.state), e.place(), id)
	if e.state == Delayed {
		x.mustInsert(&a.byTime, x.timePlace(e), id)
	}
	if e.state >= Dead {
		a.ended += int64(e.size)
	}
}

// unlinkByState is the reverse of linkByState.
func (x *Index) unlinkByState(u *queue, e *entry) {
	a := x.byStates.At(u.byState)
	x.forest.Remove(a.tree(e.state), e.place())
	if e.state == Delayed {
		x.forest.Remove(&a.byTime, x.timePlace(e))
	}
	if e.state >= Dead {
		a.ended -= int64(e.size)
	}
	if *a == (byState{}) {
		x.byStates.Free(u.byState)
		u.byState = 0
	}
}

// timePlace returns the place of a Delayed packet among the others of its queue: its moment in 42
// bits, and then its sequence.
func (x *Index) timePlace(e *entry) tree.Place {
	if e.timer == 0 {
		return timePlace(0, e.seqNumber())
	}
	return timePlace(join64(x.timers.At(e.timer).until), e.seqNumber())
}

func timePlace(until int64, seq uint64) tree.Place {
	const low, bits = 10, 64 - 10
	return tree.Place{Priority: uint32(min(until>>low, 1<<32-1)), Seq: uint64(until)<<bits | (seq+1<<(bits-1))&(1<<bits-1)}
}

// Place is a packet's place in the order of a queue. Delayed packets have theirs in the order of
// their moments. Selectable ones come by the number of their share first; 0 for the empty one, of
// which are those of priority 0, too.
type Place struct {
	Priority uint32
	Seq      uint64
	Share    uint32
	Shape    uint32 // left to the caller
}

// Place returns where List has the packet.
func (p Packet) Place() Place {
	if p.State == Delayed {
		at := timePlace(p.Until, p.Seq)
		return Place{Priority: at.Priority, Seq: at.Seq}
	}
	if p.State != Ready || p.Priority == 0 {
		p.Share = 0
	}
	return Place{Priority: p.Priority, Seq: p.Seq, Share: p.Share}
}

// List appends to dst the packets of a queue that are in one state, in the order of their places,
// oldest first, but Delayed ones soonest first: at most n, and only those behind a place; the zero
// Place is before all. Ready lists those of priority 0, too. O(n log n), and O(lanes) for the lanes
// that have packets before the place.
func (x *Index) List(q QueueID, s State, after Place, n int, dst []Packet) []Packet {
	if n <= 0 {
		return dst
	}
	for p := range x.Each(q, s, after, nil, nil) {
		dst = append(dst, p)
		if n--; n == 0 {
			break
		}
	}
	return dst
}

// Each gives the packets that List appends, all of them, and with each whether a filter takes it,
// and, unless that is nil, it is of the share with a name. Selectable ones that are not taken are
// left out: they cost nothing. It is valid until the index changes.
func (x *Index) Each(q QueueID, s State, after Place, f Filter, share []byte) iter.Seq2[Packet, bool] {
	return func(yield func(Packet, bool) bool) {
		from := tree.Place{Priority: after.Priority, Seq: after.Seq}
		if from != (tree.Place{}) {
			from = from.PlusOne()
		}
		if !x.hasQueue(q) || s < Ready || s > Damaged || from == (tree.Place{}) && after != (Place{}) {
			return
		}
		u := x.queues.At(uint32(q))
		once := x.oncePerLane(u, f, share)
		o := openWalks{x: x, end: Oldest, from: from, accepts: once, perLane: passedLane}
		if u.byState != 0 && after.Share == 0 {
			if a := x.byStates.At(u.byState); s == Delayed {
				o.open(&a.byTime)
			} else {
				o.open(a.tree(s))
			}
		}
		if s == Ready && after.Share == 0 {
			o.openLanes(&u.lanes)
		}
		if !x.giveAll(&o, once, yield) || s != Ready || u.shares == nil {
			return
		}
		for next := range u.shares.behind(after.Share, share) {
			if o.from = (tree.Place{}); next.num == after.Share {
				o.from = from
			}
			if o.openLanes(&next.lanes); !x.giveAll(&o, once, yield) {
				return
			}
		}
	}
}

// giveAll yields the packets of open walks, and whether accepts takes each; false if the caller
// wants no more.
func (x *Index) giveAll(o *openWalks, accepts func(*lane) bool, yield func(Packet, bool) bool) bool {
	for len(o.heap) > 0 {
		_, id := o.heap[0].At()
		if e := x.entries.At(id); !yield(x.packet(id, e), accepts(x.lanes.At(uint32(e.lane)))) {
			return false
		}
		o.take() // not before: it may open many lanes, and the caller may want no more
	}
	return true
}

// oncePerLane asks a filter once a lane, however often it is called. Lanes of other shares than the
// named one are not accepted; a nil name accepts all.
func (x *Index) oncePerLane(u *queue, f Filter, share []byte) func(*lane) bool {
	if f == nil && share == nil {
		return func(*lane) bool { return true }
	}
	answers := make(map[*lane]bool)
	return func(l *lane) bool {
		takes, asked := answers[l]
		if !asked {
			takes = x.inShare(u, l, share) && f.accepts(l)
			answers[l] = takes
		}
		return takes
	}
}
