package index

import "github.com/holdfast-queue/holdfast/index/tree"

// In a queue with strict order one packet of a key can be taken at a time: the first, which has the
// lowest place of those that can be selected. While one of the key is claimed, or delayed after a
// claim, or dead where that holds its key, none can. Packets without a key wait for nobody.
//
// All packets stay in their lanes, by which lists, counts and positions go. What can be taken is
// besides in the twin of its lane, and takes look at the twins alone. So an event costs O(log n),
// however many packets a key has. Which keys are held is counted by what holds them: it says so in
// its entry.

// strict is what a queue with strict order has beside its lanes.
type strict struct {
	deadHolds bool
	held      map[uint32]uint32 // by group: how many packets hold it
	twins     lanes             // of the empty share
	firsts    int               // packets that are in twins
}

// strict is the strict order of a queue; nil if it has none.
func (u *queue) strict() *strict {
	if u.rules == nil {
		return nil
	}
	return u.rules.strict
}

// inOrder says that takes from a queue look at twins.
func (u *queue) inOrder() bool { return u.strict() != nil }

// giving returns the lanes from which a share, nil for the empty one, gives what is taken.
func (u *queue) giving(s *share) *lanes {
	if !u.inOrder() {
		return u.lanesOf(s)
	}
	return u.twinsOf(s)
}

// twinsOf returns the twins of the lanes of a share.
func (u *queue) twinsOf(s *share) *lanes {
	if s == nil || s.num == 0 {
		return &u.rules.strict.twins
	}
	if s.twins == nil {
		s.twins = new(lanes)
	}
	return s.twins
}

// SetStrict says whether a queue has strict order, and whether dead packets hold their keys in it.
// All its packets follow.
func (x *Index) SetStrict(q QueueID, on, deadHolds bool) {
	if !x.hasQueue(q) {
		return
	}
	u := x.queues.At(uint32(q))
	st := u.strict()
	deadHolds = on && deadHolds
	switch {
	case !on && st == nil, on && st != nil && st.deadHolds == deadHolds:
		return
	case st == nil:
		st = &strict{held: make(map[uint32]uint32)}
		u.setRules(func(r *rules) { r.strict = st })
	}
	st.deadHolds = deadHolds
	ids := x.members(u)
	x.move(ids, func(id uint32, e *entry) {
		if x.leaveOrder(u, e); on {
			x.joinOrder(u, id, e)
		} else {
			x.dropTwin(e.lane)
		}
	})
	if on {
		x.move(ids, func(_ uint32, e *entry) { x.followKey(e) }) // what holds their keys is known
	} else {
		x.dropTwin(u.home)
		u.setRules(func(r *rules) { r.strict = nil })
	}
	x.placeShares(u)
	x.reopen(u)
}

// joinOrder notes what a packet that is linked means for its key.
func (x *Index) joinOrder(u *queue, id uint32, e *entry) {
	switch st := u.strict(); {
	case e.group == 0 && e.selectable():
		x.give(u, id, e)
	case e.group != 0 && (e.state == Claimed || e.state == Delayed && x.Delivery(ID(id)).Token != 0 || e.state == Dead && st.deadHolds):
		e.rare |= rareHolds
		st.held[e.group]++
	}
}

// leaveOrder is the reverse of joinOrder and of follow.
func (x *Index) leaveOrder(u *queue, e *entry) {
	if e.rare&rareGives != 0 {
		x.withhold(u, e)
	}
	if e.rare&rareHolds == 0 {
		return
	}
	e.rare &^= rareHolds
	held := u.strict().held
	if held[e.group]--; held[e.group] == 0 {
		delete(held, e.group)
	}
}

// followKey follows what has changed with a packet of a group.
func (x *Index) followKey(e *entry) {
	if e.group != 0 {
		x.follow(x.queueOf(e), e.group)
	}
}

// follow lets the first packet of a group be the one that can be taken; none if it is held.
func (x *Index) follow(u *queue, group uint32) {
	st := u.strict()
	if st == nil {
		return
	}
	was, first := x.firstOf(group)
	if st.held[group] > 0 {
		first = 0
	}
	if was == first {
		return
	}
	if was != 0 {
		x.withhold(u, x.entries.At(was))
	}
	if first != 0 {
		x.give(u, first, x.entries.At(first))
	}
}

// firstOf returns which packet of a group is in a twin, and which has the lowest place; 0 if there
// is none. One change has come since the last call: what is in a twin is at most the second.
func (x *Index) firstOf(group uint32) (was, first uint32) {
	look := func(id uint32) {
		e := x.entries.At(id)
		if e.rare&rareGives != 0 {
			was = id
		}
		if e.selectable() && (first == 0 || e.place().Before(x.entries.At(first).place())) {
			first = id
		}
	}
	g := x.keys.groups.At(group)
	if g.readyInRing() == largeMark {
		l := x.largeGroups.At(g.head)
		for _, t := range [...]*tree.Tree{&l.narrow, &l.wide} {
			w := x.forest.Walk(t, Oldest)
			for n := 0; n < 2 && !w.Done(); n++ {
				_, id := w.At()
				look(id)
				w.Next()
			}
		}
		return was, first
	}
	for id, n := g.head, g.readyInRing(); n > 0; n-- {
		look(id)
		id = x.entries.At(id).next
	}
	return was, first
}

// give puts a packet into the twin of its lane.
func (x *Index) give(u *queue, id uint32, e *entry) {
	l := x.lanes.At(uint32(e.lane))
	if l.twin == 0 {
		l.twin = x.addLane(u.twinsOf(l.share), lane{queue: l.queue, share: l.share, tags: l.tags, wide: l.wide, gives: true})
	}
	e.rare |= rareGives
	u.strict().firsts++
	x.mustInsert(&x.lanes.At(uint32(l.twin)).tree, e.place(), id)
	if x.twinChanged(u, l.twin); u.fresh != nil {
		x.came(u, l.twin)
	}
}

// withhold is the reverse of give.
func (x *Index) withhold(u *queue, e *entry) {
	twin := x.lanes.At(uint32(e.lane)).twin
	e.rare &^= rareGives
	u.strict().firsts--
	x.forest.Remove(&x.lanes.At(uint32(twin)).tree, e.place())
	x.twinChanged(u, twin)
}

func (x *Index) twinChanged(u *queue, twin LaneID) {
	if x.updateHeads(x.lanes.At(uint32(twin))); u.shares != nil {
		x.followLimits(u, u.shares.of(x.lanes.At(uint32(twin))))
	}
}

// dropTwin ends the twin of a lane, if it has one and that is empty.
func (x *Index) dropTwin(id LaneID) {
	if l := x.lanes.At(uint32(id)); l.twin != 0 && x.lanes.At(uint32(l.twin)).tree.Count == 0 {
		x.dropLane(x.lanesOf(x.lanes.At(uint32(l.twin))), l.twin)
		l.twin = 0
	}
}

// waitsFor says whether a packet waits for another of its key, and for which, by its identity; 0
// where that would take long to find.
func (x *Index) waitsFor(u *queue, e *entry) (identity uint64, waits bool) {
	if !u.inOrder() || e.group == 0 || e.rare&rareGives != 0 {
		return 0, false
	}
	_, of := x.firstOf(e.group)
	if u.strict().held[e.group] > 0 {
		g := x.keys.groups.At(e.group)
		of = g.head
		if g.readyInRing() == largeMark {
			of = x.largeGroups.At(g.head).notReady
		}
		for n := 0; n < onlyLook && x.entries.At(of).rare&rareHolds == 0; n++ {
			of = x.entries.At(of).prev
		}
		if x.entries.At(of).rare&rareHolds == 0 {
			return 0, true
		}
	}
	return x.identity(of, x.entries.At(of)), true
}
