package index

// uniques finds packets by the ids that their clients gave them: a unique push asks for those. The
// packets of a queue with one id, in any state, share a group, as those with one key do; it only
// counts them. A tree holds those of all groups that are not finished, by group and identity. The
// youngest of a group holds the id.
type uniques struct {
	ids    keyTable       // head of a group is how many packets have the id
	groups sparse[uint32] // by number of the packet
	tree   tree           // places are a group and an identity
}

// unfinished reports whether a packet in this state holds its id.
func (s State) unfinished() bool { return s <= Claimed }

// Holder returns the packet of a queue that holds an id: of those that have it and are ready,
// delayed or claimed the one with the highest identity. False if there is none. O(log n).
func (x *Index) Holder(q QueueID, unique []byte) (Packet, bool) {
	u := &x.uniques
	if u.tree.count == 0 {
		return Packet{}, false
	}
	g := u.ids.find(q, unique)
	if g == 0 {
		return Packet{}, false
	}
	w := x.forest.walkPriority(&u.tree, g, Newest)
	if w.done() {
		return Packet{}, false
	}
	_, id := w.at()
	return x.packet(id, x.entries.at(id)), true
}

// Unique appends the id of a packet to dst; false when it has none or the number is not in use.
func (x *Index) Unique(id ID, dst []byte) ([]byte, bool) {
	e := x.entry(id)
	if e == nil || e.rare&rareUnique == 0 {
		return dst, false
	}
	return x.uniques.ids.appendKey(dst, x.uniques.groups.at(uint32(id))), true
}

// setUnique gives a new packet its id; false when all numbers are in use.
func (x *Index) setUnique(id uint32, e *entry, q QueueID, unique []byte) bool {
	u := &x.uniques
	g := u.ids.findOrAdd(q, unique)
	if g == 0 {
		return false
	}
	e.rare |= rareUnique
	u.groups.set(id, g)
	u.ids.groups.at(g).head++
	return true
}

// linkUnique lets a packet that has an id, and is not finished, be a holder of it. In a damaged
// folder two packets may have one identity: then only one of them has the id.
func (x *Index) linkUnique(id uint32, e *entry) {
	if e.rare&rareUnique == 0 || !e.state.unfinished() {
		return
	}
	u := &x.uniques
	g := u.groups.at(id)
	if !x.forest.insert(&u.tree, place{g, x.identity(id, e)}, id) {
		x.freeUnique(id, e)
	}
}

// unlinkUnique is the reverse of linkUnique.
func (x *Index) unlinkUnique(id uint32, e *entry) {
	if e.rare&rareUnique != 0 && e.state.unfinished() {
		u := &x.uniques
		x.forest.remove(&u.tree, place{u.groups.at(id), x.identity(id, e)})
	}
}

// freeUnique takes the id from a packet that holds it no more.
func (x *Index) freeUnique(id uint32, e *entry) {
	if e.rare&rareUnique == 0 {
		return
	}
	u := &x.uniques
	e.rare &^= rareUnique
	g := u.groups.at(id)
	owners := &u.ids.groups.at(g).head
	if *owners--; *owners > 0 {
		return
	}
	if u.ids.remove(g); u.ids.groups.live == 0 {
		u.groups.clear()
	}
}
