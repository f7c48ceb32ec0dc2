package index

import (
	"iter"

	"github.com/holdfast-queue/holdfast/index/tree"
)

// worst is the order of what a queue can best do without. Priority 0, which no lane has, comes
// before all in it.
const worst = tree.Worst

// Worst gives the ready and delayed packets of a queue, the most dispensable first: priority 0,
// then the highest priority number, and of equal ones the newest. It is valid until the index
// changes. Each costs O(log n). From the first call on the index keeps the lanes of the queue in
// this order, as long as it has several.
func (x *Index) Worst(q QueueID) iter.Seq[Packet] {
	return func(yield func(Packet) bool) {
		if !x.hasQueue(q) {
			return
		}
		u := x.queues.At(uint32(q))
		zero, rest := openWalks{x: x, end: worst, perStep: passedStep}, openWalks{x: x, end: worst, perStep: passedStep}
		if u.byState != 0 {
			a := x.byStates.At(u.byState)
			zero.add(x.forest.WalkPriority(a.tree(Ready), 0, worst))
			zero.add(x.forest.WalkPriority(a.tree(Delayed), 0, worst))
			rest.open(a.tree(Delayed))
		}
		if u.set != nil || u.shares != nil {
			x.keepWorst(u)
		}
		if u.shares != nil {
			rest.openLane(u.shares.worst, 0)
		} else {
			rest.openLanes(&u.lanes)
		}
		for len(zero.heap) > 0 || len(rest.heap) > 0 && rest.heap[0].at.Priority > 0 {
			o := &zero
			if len(zero.heap) == 0 {
				o = &rest
			}
			id := o.take()
			if !yield(x.packet(id, x.entries.At(id))) {
				return
			}
		}
	}
}

// KeepWorst makes the index keep the lanes of a queue that is shared out as Worst does.
func (x *Index) KeepWorst(q QueueID) {
	if x.hasQueue(q) && x.queues.At(uint32(q)).shares != nil {
		x.keepWorst(x.queues.At(uint32(q)))
	}
}

// keepWorst makes the index keep the lanes of a queue in the order of the worst.
func (x *Index) keepWorst(u *queue) {
	if sh := u.shares; sh != nil {
		if sh.keepsWorst {
			return
		}
		sh.keepsWorst = true
		for l := range x.filled(u) {
			x.updateHead(&sh.worst, worst, l)
		}
		return
	}
	if len(u.set.ends) == len(laneOrders) {
		return
	}
	u.set.ends = laneOrders[:]
	x.updateHeads(x.lanes.At(uint32(u.home)))
	for _, id := range u.set.byKey {
		x.updateHeads(x.lanes.At(uint32(id)))
	}
}
