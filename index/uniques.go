package index

import "github.com/holdfast-queue/holdfast/index/tree"

// uniques finds packets by the ids that their clients gave them: a unique push asks for its id. The
// packets of a queue with one id, in any state, share a group, as packets with one key do; it only
// counts them. A tree holds the unfinished packets of all groups, by group and identity. A window
// has an id until its time is over, whatever becomes of the packet; its record is a timer. The
// youngest of a group holds the id.
type uniques struct {
	ids      keyTable            // head of a group is how many packets and windows have the id
	groups   tree.Sparse[uint32] // by number of the packet
	tree     tree.Tree           // places are a group and an identity
	windows  tree.Tree           // timers; places are a queue and an identity
	windowOf tree.Sparse[uint32] // the timer of the window of a group, 0 if it has none
}

// windowTimer marks a timer that is a window, in place of a delivery: its expiry is the end, its
// until the identity, its entry the group.
const windowTimer = ^uint32(0)

// unfinished reports whether a packet in this state holds its id.
func (s State) unfinished() bool { return s <= Claimed || s == Damaged }

// Holder returns the identity of the packet of a queue that holds an id: the highest of those that
// have it and are ready, delayed, claimed or damaged, and of that whose window it is. False if
// there is none. O(log n).
func (x *Index) Holder(q QueueID, unique []byte) (identity uint64, ok bool) {
	u := &x.uniques
	g := u.ids.find(q, unique)
	if g == 0 {
		return 0, false
	}
	if w := u.window(g); w != 0 {
		identity, ok = uint64(join64(x.timers.At(w).until)), true
	}
	if w := x.forest.WalkPriority(&u.tree, g, Newest); !w.Done() {
		at, _ := w.At()
		identity, ok = max(identity, at.Seq), true
	}
	return identity, ok
}

// window returns the timer of the window of a group, 0 if it has none.
func (u *uniques) window(group uint32) uint32 {
	if page := int(group >> tree.PageBits); page < len(u.windowOf.Pages) && u.windowOf.Pages[page] != nil {
		return u.windowOf.At(group)
	}
	return 0
}

// AddWindow lets the packet with an identity have an id until a moment in Unix milliseconds. False
// if the id has a window already, or the packet has another one.
func (x *Index) AddWindow(q QueueID, unique []byte, identity uint64, until int64) bool {
	u := &x.uniques
	g := u.ids.findOrAdd(q, unique)
	if u.window(g) != 0 {
		return false
	}
	w := x.timers.Alloc()
	if !x.forest.Insert(&u.windows, tree.Place{Priority: uint32(q), Seq: identity}, w) {
		x.timers.Free(w)
		x.dropID(g)
		return false
	}
	t := x.timers.At(w)
	t.expiry, t.until, t.entry, t.delivery = split64(until), split64(int64(identity)), g, windowTimer
	x.timers.schedule(w, wall, until)
	u.ids.groups.At(g).head++
	u.windowOf.Set(g, w)
	return true
}

// HasWindow reports whether a queue has a window that is not over.
func (x *Index) HasWindow(q QueueID) bool {
	w := x.forest.WalkPriority(&x.uniques.windows, uint32(q), Newest)
	return !w.Done()
}

// EndWindow ends a window of a queue, whichever, and returns its identity; false if it has none.
func (x *Index) EndWindow(q QueueID) (identity uint64, ok bool) {
	w := x.forest.WalkPriority(&x.uniques.windows, uint32(q), Newest)
	if w.Done() {
		return 0, false
	}
	at, timer := w.At()
	x.endWindow(timer)
	return at.Seq, true
}

// endWindow frees a window, and returns its queue and identity.
func (x *Index) endWindow(timer uint32) (q QueueID, identity uint64) {
	u, t := &x.uniques, x.timers.At(timer)
	g := t.entry
	q, identity = u.ids.groups.At(g).queue, uint64(join64(t.until))
	x.forest.Remove(&u.windows, tree.Place{Priority: uint32(q), Seq: identity})
	x.timers.schedule(timer, wall, 0)
	x.timers.Free(timer)
	u.windowOf.Set(g, 0)
	u.ids.groups.At(g).head--
	x.dropID(g)
	return q, identity
}

// dropID frees an id that nothing has any more.
func (x *Index) dropID(g uint32) {
	u := &x.uniques
	if u.ids.groups.At(g).head > 0 {
		return
	}
	if u.ids.remove(g); u.ids.groups.Live == 0 {
		u.groups.Clear()
		u.windowOf.Clear()
	}
}

// Unique appends the id of a packet to dst; false when it has none or the number is not in use.
func (x *Index) Unique(id ID, dst []byte) ([]byte, bool) {
	e := x.entry(id)
	if e == nil || e.rare&rareUnique == 0 {
		return dst, false
	}
	return x.uniques.ids.appendKey(dst, x.uniques.groups.At(uint32(id))), true
}

// GiveUnique gives a packet of a queue, named by its identity, an id and so many bytes more of
// TagBytes. False if there is none without an id, or the id is longer than MaxKey. The first call
// completes the table of Find: it is for a start.
func (x *Index) GiveUnique(q QueueID, identity uint64, unique []byte, untilClaim bool, tagBytes uint32) bool {
	if x.entries.Live == 0 || len(unique) > MaxKey {
		return false
	}
	x.BuildIdentities(allBuilt)
	for id := *x.identities.bucket(identity); id != 0; id = *x.identities.next.At(id) {
		e := x.entries.At(id)
		if x.identity(id, e) != identity || x.lanes.At(uint32(e.lane)).queue != q || e.rare&rareUnique != 0 {
			continue
		}
		x.setUnique(id, e, q, unique)
		if untilClaim {
			e.rare |= rareUntilClaim
		}
		e.tagBytes = packTagBytes(unpackTagBytes(e.tagBytes) + tagBytes)
		x.linkUnique(id, e)
		return true
	}
	return false
}

// FreeUnique takes the id from a packet.
func (x *Index) FreeUnique(id ID) {
	if e := x.entry(id); e != nil {
		x.unlinkUnique(uint32(id), e)
		x.freeUnique(uint32(id), e)
	}
}

// setUnique gives a packet its id, which is new in its queue.
func (x *Index) setUnique(id uint32, e *entry, q QueueID, unique []byte) {
	u := &x.uniques
	g := u.ids.findOrAdd(q, unique)
	e.rare |= rareUnique
	u.groups.Set(id, g)
	u.ids.groups.At(g).head++
}

// linkUnique lets a packet that has an id, and is not finished, be a holder of it. In a damaged
// folder two packets may have one identity: then only one of them has the id.
func (x *Index) linkUnique(id uint32, e *entry) {
	if e.rare&rareUnique == 0 || !e.state.unfinished() {
		return
	}
	u := &x.uniques
	g := u.groups.At(id)
	if !x.forest.Insert(&u.tree, tree.Place{Priority: g, Seq: x.identity(id, e)}, id) {
		x.freeUnique(id, e)
	}
}

// unlinkUnique is the reverse of linkUnique.
func (x *Index) unlinkUnique(id uint32, e *entry) {
	if e.rare&rareUnique != 0 && e.state.unfinished() {
		u := &x.uniques
		x.forest.Remove(&u.tree, tree.Place{Priority: u.groups.At(id), Seq: x.identity(id, e)})
	}
}

// freeUnique takes the id from a packet that holds it no more.
func (x *Index) freeUnique(id uint32, e *entry) {
	if e.rare&rareUnique == 0 {
		return
	}
	u := &x.uniques
	e.rare &^= rareUnique | rareUntilClaim
	g := u.groups.At(id)
	u.ids.groups.At(g).head--
	x.dropID(g)
}
