package index

// A rule that changes brings the packets that are there to their shares in slices, the claimed ones
// first. Until all are, those of the empty share obey no rule of shares.

// ShareBy says how a queue is shared out from now on; nil: it is not. Packets that it has follow
// with SortShares. If the rests of its tag sets are others then, they are counted anew: that takes
// some 100 ns a lane.
func (x *Index) ShareBy(q QueueID, rule *ShareRule) {
	if !x.hasQueue(q) {
		return
	}
	u := x.queues.At(uint32(q))
	sh := u.shares
	switch {
	case sh == nil && rule == nil, sh != nil && (sh.rule == nil) == (rule == nil) && (rule == nil || sh.rule.By == rule.By):
		return
	case sh == nil:
		x.beginShares(u)
		sh = u.shares
	}
	anew := sh.sets == nil || sh.rule.cuts() || rule.cuts()
	if sh.rule = rule; anew {
		x.countSets(u)
	}
	sh.unsorted, sh.claims, sh.past, sh.sorted = x.Counts(q).Len(), Place{}, false, 1
	if sh.unsorted == 0 {
		sh.sorted = x.entries.Used
	}
	sh.sorting = sh.unsorted > 0
	x.followLimits(u, sh.all[0])
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
	empty := sh.add("")
	if u.set != nil {
		sh.lanes = len(u.set.byKey)
		u.set.ends, u.set.narrow[worst], u.set.wide[worst] = laneOrders[:worst], nil, nil
		x.lanes.At(uint32(u.home)).pos[worst] = 0
		for _, id := range u.set.byKey {
			x.lanes.At(uint32(id)).pos[worst] = 0
		}
	}
	empty.claimed = uint32(x.claimed(u))
	unfinished, _ := x.Counts(x.lanes.At(uint32(u.home)).queue).Unfinished()
	empty.unfinished = uint32(unfinished)
	sh.bands = x.bands(u)
	u.shares = sh
	x.placeShare(u, empty)
}

// endShares ends the shares of a queue, all of whose packets are of the empty one.
func (x *Index) endShares(u *queue) {
	for _, h := range u.shares.worst {
		h.lane.pos[worst] = 0
	}
	u.shares = nil
	x.scheduleWakes(u)
}

// SortShares does a part of what SetStrict, SetLimits, KeepWorst and ShareBy have left: it looks at
// some n shares or packets of a queue. The claimed ones come first, since shares go by their
// claims. It returns false when all is done.
func (x *Index) SortShares(q QueueID, n int) (more bool) {
	if !x.hasQueue(q) {
		return false
	}
	u := x.queues.At(uint32(q))
	sh := u.shares
	switch {
	case sh != nil && x.placeShares(u, n): // first, since some are in no heap though they give
		return true
	case u.strict() != nil && u.strict().sorting:
		x.sortOrder(u, q, n)
		return true
	case sh == nil:
		return false
	}
	if x.rankShares(u, n) {
		return true
	}
	if !sh.sorting && sh.rule != nil { // all are where they belong, or had to stay
		return false
	}
	if !sh.past {
		claims := x.List(q, Claimed, sh.claims, n, nil)
		for _, p := range claims {
			sh.claims = p.Place()
			x.sortPacket(q, uint32(p.ID))
		}
		if sh.past = len(claims) < n; !sh.past {
			return true
		}
	}
	for left := n * sortOthers; left > 0 && sh.sorted < x.entries.Used; sh.sorted++ {
		left--
		if e := x.entries.At(sh.sorted); e.state != 0 && x.lanes.At(uint32(e.lane)).queue == q {
			x.sortPacket(q, sh.sorted)
			sh.unsorted = max(1, sh.unsorted-1)
			left -= sortOthers - 1
		}
	}
	if sh.sorted < x.entries.Used {
		return true
	}
	if sh.unsorted, sh.sorting = 0, false; sh.rule == nil {
		x.endShares(u)
	} else {
		x.followLimits(u, sh.all[0])
	}
	return false
}

// sortOthers is how many packets of other queues cost what a sorted one does.
const sortOthers = 16

// sortPacket brings a packet to the share that it belongs to.
func (x *Index) sortPacket(q QueueID, id uint32) {
	e := x.entries.At(id)
	l, sh := x.lanes.At(uint32(e.lane)), x.queues.At(uint32(q)).shares
	if sh.key = sh.key[:0]; e.group != 0 && sh.rule != nil && sh.rule.Name == nil {
		sh.key = x.keys.appendKey(sh.key, e.group)
	}
	sh.tags = append(sh.tags[:0], l.tags...)
	s := x.shareFor(q, sh.key, sh.tags, l.wide)
	if s == l.share {
		return
	}
	x.queues.At(uint32(q)).sorts++
	x.unlink(id, e)
	x.changeLane(e, q, s, sh.tags)
	x.link(id, e)
	x.followKey(e)
}
