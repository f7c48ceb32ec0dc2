package index

import (
	"slices"

	"github.com/holdfast-queue/holdfast/index/tree"
)

// The shape of a queue is its shares, its strict order, and the order of its worst packets. A
// change of it is in force when the call returns, as each packet follows at once. That takes 1 to
// 2 µs a packet: the caller says how many may follow in one turn.

// progressStep is how many packets follow a change between two calls of what OnProgress has set.
const progressStep = 4096

// OnProgress has fn called while packets follow a change of shape, after each 4,096 of them. It
// must not call the index.
func (x *Index) OnProgress(fn func()) { x.progress = fn }

// members are all packets of a queue, in any state, in about the order in which they came.
func (x *Index) members(u *queue) []uint32 {
	ids := make([]uint32, 0, x.Counts(x.lanes.At(uint32(u.home)).queue).Len())
	add := func(t *tree.Tree) {
		for w := x.forest.Walk(t, Oldest); !w.Done(); w.Next() {
			_, id := w.At()
			ids = append(ids, id)
		}
	}
	if u.byState != 0 {
		for i := range x.byStates.At(u.byState).trees {
			add(&x.byStates.At(u.byState).trees[i])
		}
	}
	for l := range x.filled(u) {
		add(&l.tree)
	}
	slices.Sort(ids)
	return ids
}

// move has packets follow a change, each by fn.
func (x *Index) move(ids []uint32, fn func(id uint32, e *entry)) {
	for i, id := range ids {
		if x.progress != nil && (i+1)%progressStep == 0 {
			x.progress()
		}
		fn(id, x.entries.At(id))
	}
}

// Shape changes when packets of a queue may have come to other shares: places from before are not
// to be compared with those that are then.
func (x *Index) Shape(q QueueID) uint32 {
	if !x.hasQueue(q) {
		return 0
	}
	return x.queues.At(uint32(q)).shape
}

// ShareBy says how a queue is shared out from now on; nil: it is not. All its packets follow, and
// its sets of tags are counted anew where their rests are others then.
func (x *Index) ShareBy(q QueueID, rule *ShareRule) {
	if !x.hasQueue(q) {
		return
	}
	u := x.queues.At(uint32(q))
	sh := u.shares
	switch {
	case sh == nil && rule == nil, sh != nil && rule != nil && sh.rule.By == rule.By:
		return
	case sh == nil:
		x.beginShares(u)
		sh = u.shares
	}
	anew := sh.sets == nil || sh.rule.cuts() || rule.cuts()
	if sh.rule = rule; anew {
		x.countSets(u)
	}
	if x.Counts(q).Len() > 0 {
		u.shape++
	}
	x.move(x.members(u), func(id uint32, e *entry) { x.changeShare(q, id, e) })
	if rule == nil {
		x.endShares(u)
	} else {
		x.followLimits(u, sh.all[0])
	}
	x.reopen(u)
}

// cuts says that the rule has rests of tag sets which are shorter than these.
func (r *ShareRule) cuts() bool { return r != nil && r.Rest != nil }

// countSets counts the lanes of a queue by the rests of their tags.
func (x *Index) countSets(u *queue) {
	sh := u.shares
	sh.sets = make(map[string]int)
	for s := range sh.each() {
		of := u.lanesOf(s)
		if s.num != 0 && of.home != 0 {
			sh.sets[string(sh.rest([]byte(x.lanes.At(uint32(of.home)).tags)))]++
		} else if of.set != nil {
			for k := range of.set.byKey {
				sh.sets[string(sh.rest([]byte(k.tags)))]++
			}
		}
	}
}

// beginShares lets all packets of a queue be of its empty share.
func (x *Index) beginShares(u *queue) {
	sh := &sharing{byName: make(map[string]*share), most: MaxShareLanes}
	u.shares = sh
	x.obey(u, &sh.begins, ShareOwn{})
	empty := x.addShare(u, "")
	if u.set != nil {
		sh.lanes = len(u.set.byKey)
		u.set.ends, u.set.heaps[worst] = laneOrders[:worst], nil
		x.lanes.At(uint32(u.home)).pos[worst] = 0
		for _, id := range u.set.byKey {
			x.lanes.At(uint32(id)).pos[worst] = 0
		}
	}
	empty.claimed = uint32(x.claimed(u))
	unfinished, _ := x.Counts(x.lanes.At(uint32(u.home)).queue).Unfinished()
	empty.unfinished = uint32(unfinished)
	sh.bands = x.bands(u)
	x.placeShare(u, empty)
}

// endShares ends the shares of a queue, all of whose packets are of the empty one.
func (x *Index) endShares(u *queue) {
	for _, h := range u.shares.worst {
		h.lane.pos[worst] = 0
	}
	u.shares = nil
	x.scheduleWakes(u)
	x.reopen(u) // who waits for a share waits in vain
}

// changeShare brings a packet to the share that it belongs to.
func (x *Index) changeShare(q QueueID, id uint32, e *entry) {
	l, sh := x.lanes.At(uint32(e.lane)), x.queues.At(uint32(q)).shares
	if sh.key = sh.key[:0]; e.group != 0 && sh.rule != nil && sh.rule.Name == nil {
		sh.key = x.keys.appendKey(sh.key, e.group)
	}
	sh.tags = append(sh.tags[:0], l.tags...)
	s := x.shareFor(q, sh.key, sh.tags, l.wide)
	if s == l.share {
		return
	}
	x.unlink(id, e)
	x.changeLane(e, q, s, sh.tags)
	x.link(id, e)
	x.followKey(e)
}
