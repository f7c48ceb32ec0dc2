package index

// freshLanes is the lanes of a queue that got selectable packets, in that order, until
// ClearChanged. Each has a number, and numbers rise. So whoever has looked at some of them goes on
// behind those.
//
// Where a queue comes back from its limit, all of it is fresh. That would be many lanes after each
// claim. So whoever stands before the number reopened is asked by a selection.
type freshLanes struct {
	lanes    []LaneID
	first    uint64 // the number of the first
	reopened uint64
}

// manyFresh is how many lanes are noted at most, about: shares that come back note theirs again.
const manyFresh = 1 << 16

// reopen makes all of a queue fresh.
func (x *Index) reopen(u *queue) {
	if f := u.fresh; f != nil {
		x.clearFresh(u)
		f.lanes = append(f.lanes, u.home) // so that there is a number behind all others
		f.reopened = f.first + uint64(len(f.lanes))
	}
}

// NoteFresh says whether the index notes which lanes of a queue get selectable packets. None is
// fresh at first.
func (x *Index) NoteFresh(q QueueID, on bool) {
	if !x.hasQueue(q) {
		return
	}
	x.ClearChanged(q)
	if u := x.queues.at(uint32(q)); !on {
		u.fresh = nil
	} else if u.fresh == nil {
		u.fresh = new(freshLanes)
	}
}

// Reopened says that Fresh asks a whole selection of a queue, as limits let it give again since it
// was asked last.
func (x *Index) Reopened(q QueueID, from uint64) bool {
	return x.hasQueue(q) && x.queues.at(uint32(q)).fresh != nil && from < x.queues.at(uint32(q)).fresh.reopened
}

// Fresh looks for a fresh lane of a queue with a packet that a selection takes, from a number on.
// It returns the number of the lane; without one, false and a number to go on from. A lane that
// gets packets when it has none is fresh once more, with a new number.
func (x *Index) Fresh(q QueueID, s Selection, from uint64) (at uint64, ok bool) {
	if !x.hasQueue(q) || x.queues.at(uint32(q)).fresh == nil {
		return from, false
	}
	u := x.queues.at(uint32(q))
	f := u.fresh
	if at = max(from, f.first); x.allowed(u, &s, nil) == 0 {
		return at, false
	}
	if at < f.reopened {
		if x.best(q, &s) != 0 {
			return at, true
		}
		at = f.reopened
	}
	for ; at < f.first+uint64(len(f.lanes)); at++ {
		id := f.lanes[at-f.first]
		l := x.lanes.at(uint32(id))
		if l.queue != q || !l.fresh { // another one has its number now
			continue
		}
		if l.tree.count == 0 {
			l.fresh = false
		} else if !(s.Fits16 && l.wide) && x.gives(u, l, &s) && x.accepts(id, s.Filter) {
			return at, true
		}
	}
	return at, false
}

// Refresh makes every lane of a queue with selectable packets fresh, with a new number.
func (x *Index) Refresh(q QueueID) {
	x.ClearChanged(q)
	if !x.hasQueue(q) || x.queues.at(uint32(q)).fresh == nil {
		return
	}
	u := x.queues.at(uint32(q))
	for lane := range x.trees(u, false) {
		x.freshen(u, lane)
	}
}

// ClearChanged makes no lane of a queue fresh.
func (x *Index) ClearChanged(q QueueID) {
	if !x.hasQueue(q) {
		return
	}
	x.clearFresh(x.queues.at(uint32(q)))
}

func (x *Index) clearFresh(u *queue) {
	f := u.fresh
	if f == nil || len(f.lanes) == 0 {
		return
	}
	q := x.lanes.at(uint32(u.home)).queue
	for _, id := range f.lanes {
		if l := x.lanes.at(uint32(id)); l.queue == q {
			l.fresh = false
		}
	}
	f.first += uint64(len(f.lanes))
	if f.lanes = f.lanes[:0]; cap(f.lanes) > 1<<10 {
		f.lanes = nil
	}
}

// freshen notes that a lane of a queue gets packets.
func (x *Index) freshen(u *queue, id LaneID) {
	if l := x.lanes.at(uint32(id)); !l.fresh {
		l.fresh = true
		u.fresh.lanes = append(u.fresh.lanes, id)
	}
}
