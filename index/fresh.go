package index

// freshLanes is the lanes of a queue that got selectable packets, in that order, until
// ClearChanged. Each has a number, and numbers rise. So whoever has looked at some of them goes on
// behind those.
//
// At a limit of the queue they are kept: who is refused there goes on from its number once there is
// room. Who has just come may have found nothing as the queue was at its limit. So it is asked by a
// selection, and so is whoever stands before the number reopened, where limits changed.
type freshLanes struct {
	lanes    []LaneID
	first    uint64 // the number of the first, 1 at least
	reopened uint64
	told     uint64 // TellFresh has told of those with lower numbers
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
	u := x.queues.At(uint32(q))
	if x.clearFresh(u); !on {
		u.fresh = nil
	} else if u.fresh == nil {
		u.fresh = &freshLanes{first: 1}
	}
}

// FreshAsks is how many lanes Fresh asks about, at most, and whether it makes a whole selection.
func (x *Index) FreshAsks(q QueueID, s Selection, from uint64) (lanes int, whole bool) {
	if !x.hasQueue(q) || x.queues.At(uint32(q)).fresh == nil {
		return 0, false
	}
	u := x.queues.At(uint32(q))
	if x.allowed(u, &s, nil) == 0 {
		return 0, false
	}
	lanes = int(u.fresh.end() - max(from, u.fresh.first))
	if whole = u.asksWhole(from); whole {
		lanes += x.LanesIn(q, s.Share) + 1
	}
	return lanes, whole
}

// end is the number of the lane that is noted next.
func (f *freshLanes) end() uint64 { return f.first + uint64(len(f.lanes)) }

// asksWhole says that who has looked up to a number may have missed what a limit kept back.
func (u *queue) asksWhole(from uint64) bool {
	r := u.rules
	return max(from, u.fresh.first) < u.fresh.reopened || from == 0 && r != nil && (r.Claimed > 0 || r.Gap > 0)
}

// Fresh looks for a fresh lane of a queue with a packet that a selection takes, from a number on.
// It returns the number of the lane; without one, false and a number to go on from. A lane that
// gets packets when it has none is fresh once more, with a new number.
func (x *Index) Fresh(q QueueID, s Selection, from uint64) (at uint64, ok bool) {
	if !x.hasQueue(q) || x.queues.At(uint32(q)).fresh == nil {
		return from, false
	}
	u := x.queues.At(uint32(q))
	f := u.fresh
	if x.allowed(u, &s, nil) == 0 {
		return from, false
	}
	if u.asksWhole(from) && x.best(q, &s) != 0 {
		return from, true
	}
	for at = max(from, f.first, f.reopened); at < f.end(); at++ {
		id := f.lanes[at-f.first]
		l := x.lanes.At(uint32(id))
		if l.queue != q || !l.fresh { // another one has its number now
			continue
		}
		if l.tree.Count == 0 {
			l.fresh = false
		} else if x.gives(u, l, &s) && s.takes(l) {
			return at, true
		}
	}
	return at, false
}

// TellFresh tells of the lanes of a queue that are fresh since the last call, with their numbers.
// It stops where tell returns false, and done is false if it may have more to tell. With anew these
// lanes are not all: whoever waits may find something.
func (x *Index) TellFresh(q QueueID, tell func(at uint64, share, tags string) bool) (anew, done bool) {
	if !x.hasQueue(q) || x.queues.At(uint32(q)).fresh == nil {
		return false, true
	}
	u := x.queues.At(uint32(q))
	f := u.fresh
	anew = f.told < f.reopened
	for f.told = max(f.told, f.first, f.reopened); f.told < f.end(); f.told++ {
		l, share := x.lanes.At(uint32(f.lanes[f.told-f.first])), ""
		if l.queue != q || !l.fresh { // another one has its number now
			continue
		}
		if u.shares != nil {
			share = u.shares.of(l).name
		}
		if !tell(f.told, share, l.tags) {
			f.told++
			return anew, false
		}
	}
	return anew, true
}

// Refresh makes every lane of a queue with selectable packets fresh, with a new number.
func (x *Index) Refresh(q QueueID) {
	if !x.hasQueue(q) || x.queues.At(uint32(q)).fresh == nil {
		return
	}
	u := x.queues.At(uint32(q))
	x.clearFresh(u)
	for l := range x.takable(u) {
		x.freshen(u, l)
	}
}

// ClearChanged makes no lane of a queue fresh, as all who look have looked at them. At a limit of
// the queue they have not.
func (x *Index) ClearChanged(q QueueID) {
	if !x.hasQueue(q) || x.queues.At(uint32(q)).fresh == nil {
		return
	}
	u := x.queues.At(uint32(q))
	if x.allowed(u, &Selection{Claims: true, Limits: true}, nil) > 0 {
		x.clearFresh(u)
	} else if len(u.fresh.lanes) > manyFresh {
		x.reopen(u)
	}
}

func (x *Index) clearFresh(u *queue) {
	f := u.fresh
	if f == nil || len(f.lanes) == 0 {
		return
	}
	q := x.lanes.At(uint32(u.home)).queue
	for _, id := range f.lanes {
		if l := x.lanes.At(uint32(id)); l.queue == q {
			l.fresh = false
		}
	}
	f.first += uint64(len(f.lanes))
	if f.lanes = f.lanes[:0]; cap(f.lanes) > 1<<10 {
		f.lanes = nil
	}
}

// came makes a lane fresh that a packet has come to. If it was empty, who passed it over at a limit
// is told again.
func (x *Index) came(u *queue, id LaneID) {
	l := x.lanes.At(uint32(id))
	if l.tree.Count == 1 && u.limitsShares() {
		if l.fresh = false; len(u.fresh.lanes) > manyFresh {
			x.reopen(u)
		}
	}
	x.freshen(u, l)
}

// freshen notes that a lane of a queue gets packets.
func (x *Index) freshen(u *queue, l *lane) {
	if !l.fresh {
		l.fresh = true
		u.fresh.lanes = append(u.fresh.lanes, l.id)
	}
}
