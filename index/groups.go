package index

// The members of a group form a ring through their entries: the ready ones first, then the others, so that a pop never
// looks at a delayed or claimed packet. A ring holds at most ringMax ready members, which a pop sorts; a group that
// gets more becomes large: its ready members stand in a tree of their own, and stays one until none is ready.

const (
	ringMax   = 32
	largeMark = 255 // in the low byte of group.info: head is a largeGroup, not an entry
)

// largeGroup is the members of a large group.
type largeGroup struct {
	tree   tree   // ready members by rank
	others uint32 // ring of the others; free link of a free slot
}

func (c *largeGroup) freeLink() *uint32 { return &c.others }

// join makes a packet a member of its group, by its state.
func (x *Index) addToGroup(id uint32, e *entry) {
	g := x.keys.groups.at(e.group)
	if e.state == Ready && g.info&0xff == ringMax {
		x.makeLarge(g)
	}
	if g.info&0xff == largeMark {
		c := x.largeGroups.at(g.head)
		if e.state == Ready {
			x.mustInsert(&c.tree, e.rank(), id)
			return
		}
		x.ringPush(&c.others, id, e)
		return
	}
	x.ringPush(&g.head, id, e)
	if e.state == Ready {
		g.head = id
		g.info++
	}
}

// quit ends the membership of a packet; the group stays even if it was the last.
func (x *Index) removeFromGroup(id uint32, e *entry) {
	g := x.keys.groups.at(e.group)
	if g.info&0xff != largeMark {
		x.ringRemove(&g.head, id, e)
		if e.state == Ready {
			g.info--
		}
		return
	}
	c := x.largeGroups.at(g.head)
	if e.state != Ready {
		x.ringRemove(&c.others, id, e)
		return
	}
	x.forest.remove(&c.tree, e.rank())
	if c.tree.count == 0 {
		head := g.head
		g.head = c.others
		g.info &^= 0xff
		x.largeGroups.free(head)
	}
}

// makeLarge turns the ring of a group into a large group.
func (x *Index) makeLarge(g *group) {
	id := x.largeGroups.alloc()
	c := x.largeGroups.at(id)
	for g.info&0xff > 0 {
		m := g.head
		e := x.entries.at(m)
		x.ringRemove(&g.head, m, e)
		x.mustInsert(&c.tree, e.rank(), m)
		g.info--
	}
	c.others = g.head
	g.head = id
	g.info |= largeMark
}

// anyMember returns a member of a group, a ready one if there is one.
func (x *Index) anyMember(g *group) uint32 {
	if g.info&0xff != largeMark {
		return g.head
	}
	_, id := x.forest.lowest(&x.largeGroups.at(g.head).tree)
	return id
}

// onlyMember returns the member of a group that has just one, otherwise 0.
func (x *Index) onlyMember(g *group) uint32 {
	if g.info&0xff != largeMark {
		if x.entries.at(g.head).next == g.head {
			return g.head
		}
		return 0
	}
	c := x.largeGroups.at(g.head)
	if c.tree.count != 1 || c.others != 0 {
		return 0
	}
	_, id := x.forest.lowest(&c.tree)
	return id
}

// mates appends the ready members of a group but for one, in the order a pop takes them, until limit says stop.
func (x *Index) others(g *group, but uint32, limit func(e *entry) bool, dst []uint32) []uint32 {
	if g.info&0xff == largeMark {
		for w := x.forest.walk(&x.largeGroups.at(g.head).tree, Newest); !w.done(); w.next() {
			_, id := w.at()
			if id == but {
				continue
			}
			if !limit(x.entries.at(id)) {
				break
			}
			dst = append(dst, id)
		}
		return dst
	}
	start := len(dst)
	for id, n := g.head, g.info&0xff; n > 0; n-- {
		e := x.entries.at(id)
		if id != but {
			dst = append(dst, id)
			// Insertion: a ring holds few, and the newest, which come first, stand first.
			r := e.rank()
			i := len(dst) - 1
			for ; i > start && Newest.earlier(r, x.entries.at(dst[i-1]).rank()); i-- {
				dst[i] = dst[i-1]
			}
			dst[i] = id
		}
		id = e.next
	}
	for i := start; i < len(dst); i++ {
		if !limit(x.entries.at(dst[i])) {
			return dst[:i]
		}
	}
	return dst
}

// ringPush adds an entry at the end of a ring.
func (x *Index) ringPush(head *uint32, id uint32, e *entry) {
	if *head == 0 {
		e.next, e.prev, *head = id, id, id
		return
	}
	first := x.entries.at(*head)
	e.next, e.prev = *head, first.prev
	x.entries.at(first.prev).next = id
	first.prev = id
}

// ringRemove takes an entry out of its ring.
func (x *Index) ringRemove(head *uint32, id uint32, e *entry) {
	if e.next == id {
		*head = 0
	} else {
		x.entries.at(e.prev).next = e.next
		x.entries.at(e.next).prev = e.prev
		if *head == id {
			*head = e.next
		}
	}
	e.next, e.prev = 0, 0
}
