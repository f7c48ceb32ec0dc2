package index

import "iter"

// worst is the order of what a queue can best do without: the reverse of Oldest. Priority 0, which
// no lane has, comes before all in it.
const worst = Oldest + 1

// Worst gives the ready and delayed packets of a queue, those first that it can best do without: of
// priority 0, then of the highest priority number, and of equal ones the newest. It is valid until
// the index changes. Each costs O(log n). From the first call on the index keeps the lanes of the
// queue in this order, as long as it has several.
func (x *Index) Worst(q QueueID) iter.Seq[Packet] {
	return func(yield func(Packet) bool) {
		if !x.hasQueue(q) {
			return
		}
		u := x.queues.at(uint32(q))
		zero, rest := openWalks{end: worst}, openWalks{end: worst}
		if u.byState != 0 {
			a := x.byStates.at(u.byState)
			zero.open(x.forest.walkPriority(a.tree(Ready), 0, worst))
			zero.open(x.forest.walkPriority(a.tree(Delayed), 0, worst))
			rest.open(x.forest.walk(a.tree(Delayed), worst))
		}
		s := Selection{End: worst}
		if u.lanes == nil {
			rest.open(x.forest.walk(&x.lanes.at(uint32(u.defaultLane)).tree, worst))
		} else {
			x.keepWorst(u)
			x.openLane(&rest, u.lanes.narrow[worst], 0, &s)
			x.openLane(&rest, u.lanes.wide[worst], 0, &s)
		}
		for len(zero.heap) > 0 {
			if !yield(x.nextOpen(&zero, &s)) {
				return
			}
		}
		for len(rest.heap) > 0 && rest.heap[0].at.priority > 0 {
			if !yield(x.nextOpen(&rest, &s)) {
				return
			}
		}
	}
}

// keepWorst makes the index keep the lanes of a queue in the order of the worst.
func (x *Index) keepWorst(u *queue) {
	if len(u.lanes.ends) == len(laneOrders) {
		return
	}
	u.lanes.ends = laneOrders[:]
	x.updateHeads(u.defaultLane)
	for _, id := range u.lanes.byKey {
		x.updateHeads(id)
	}
}
