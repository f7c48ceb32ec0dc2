package index

import "github.com/holdfast-queue/holdfast/index/tree"

// The members of a group form a ring through their entries: the ready ones first, then the
// delayed and claimed ones, so that a pop never looks at those. A ring holds at most ringMax ready
// members, which a pop sorts. A group with more becomes large: its ready members move into trees of
// their own, the wide ones apart, so that a pop that leaves them never looks at them. It stays
// large until none is ready.

const (
	ringMax   = 32
	largeMark = 255 // in the low byte of group.info: head is a largeGroup, not an entry
)

// largeGroup is the members of a group that is large.
type largeGroup struct {
	narrow, wide tree.Tree // the ready members by rank
	notReady     uint32    // ring of the delayed and claimed members; links free slots
}

func (l *largeGroup) FreeLink() *uint32 { return &l.notReady }

// readyTree returns the tree of a large group that a ready member belongs in.
func (x *Index) readyTree(l *largeGroup, e *entry) *tree.Tree {
	if x.lanes.At(uint32(e.lane)).wide {
		return &l.wide
	}
	return &l.narrow
}

// readyInRing is the number of ready members in the ring, or largeMark.
func (g *group) readyInRing() uint32 { return g.info & 0xff }

// addToGroup makes a packet a member of its group, by its state.
func (x *Index) addToGroup(id uint32, e *entry) {
	g := x.keys.groups.At(e.group)
	if e.state == Ready && g.readyInRing() == ringMax {
		x.makeLarge(g)
	}
	if g.readyInRing() == largeMark {
		l := x.largeGroups.At(g.head)
		if e.state == Ready {
			x.mustInsert(x.readyTree(l, e), e.rank(), id)
			return
		}
		x.ringPush(&l.notReady, id, e)
		return
	}
	x.ringPush(&g.head, id, e)
	if e.state == Ready {
		g.head = id
		g.info++
	}
}

// removeFromGroup ends the membership of a packet. The group stays, even without members.
func (x *Index) removeFromGroup(id uint32, e *entry) {
	g := x.keys.groups.At(e.group)
	if g.readyInRing() != largeMark {
		x.ringRemove(&g.head, id, e)
		if e.state == Ready {
			g.info--
		}
		return
	}
	l := x.largeGroups.At(g.head)
	if e.state != Ready {
		x.ringRemove(&l.notReady, id, e)
		return
	}
	x.forest.Remove(x.readyTree(l, e), e.rank())
	if l.narrow.Count+l.wide.Count == 0 {
		old := g.head
		g.head = l.notReady
		g.info &^= 0xff
		x.largeGroups.Free(old)
	}
}

// makeLarge moves the ready members of a ring into trees.
func (x *Index) makeLarge(g *group) {
	id := x.largeGroups.Alloc()
	l := x.largeGroups.At(id)
	for g.readyInRing() > 0 {
		m := g.head
		e := x.entries.At(m)
		x.ringRemove(&g.head, m, e)
		x.mustInsert(x.readyTree(l, e), e.rank(), m)
		g.info--
	}
	l.notReady = g.head
	g.head = id
	g.info |= largeMark
}

// onlyLook is how many members onlyMember looks at.
const onlyLook = 1024

// onlyMember returns the member of a group that is not done when there is just one. n is how many
// there are: 2 for two or more, or when too many are done to find out.
func (x *Index) onlyMember(g *group) (only uint32, n int) {
	head := g.head
	if g.readyInRing() == largeMark {
		l := x.largeGroups.At(g.head)
		if l.narrow.Count+l.wide.Count > 1 {
			return 0, 2
		}
		w := x.walkLarge(l, false)
		only, n, head = w.take(), 1, l.notReady
	}
	if head == 0 {
		return only, n
	}
	id := head
	for range onlyLook {
		e := x.entries.At(id)
		if e.state != Done {
			if only, n = id, n+1; n == 2 {
				return 0, 2
			}
		}
		if id = e.next; id == head {
			return only, n
		}
	}
	return 0, 2
}

// others gives the ready members of a group except one, in the order a pop takes them, up to the
// first that take refuses. With narrow it leaves out the wide ones.
func (x *Index) others(g *group, except uint32, narrow bool, take func(id uint32) bool) {
	if g.readyInRing() == largeMark {
		w := x.walkLarge(x.largeGroups.At(g.head), narrow)
		for id := w.take(); id != 0; id = w.take() {
			if id != except && !take(id) {
				return
			}
		}
		return
	}
	var ring [ringMax]uint32
	members := ring[:0]
	for id, n := g.head, g.readyInRing(); n > 0; n-- {
		e := x.entries.At(id)
		if id != except && !(narrow && x.lanes.At(uint32(e.lane)).wide) {
			members = append(members, id)
			// Insertion sort: a ring is short, and its newest members, which mostly come first in
			// the order, stand first in it.
			r := e.rank()
			i := len(members) - 1
			for ; i > 0 && Newest.Earlier(r, x.entries.At(members[i-1]).rank()); i-- {
				members[i] = members[i-1]
			}
			members[i] = id
		}
		id = e.next
	}
	for _, id := range members {
		if !take(id) {
			return
		}
	}
}

// largeWalk goes over the ready members of a large group in the order a pop takes them.
type largeWalk struct{ narrow, wide tree.Walk }

// walkLarge starts at the first of the ready members, without the wide ones if narrow is set.
func (x *Index) walkLarge(l *largeGroup, narrow bool) largeWalk {
	w := largeWalk{narrow: x.forest.Walk(&l.narrow, Newest)}
	if !narrow {
		w.wide = x.forest.Walk(&l.wide, Newest)
	}
	return w
}

// take returns the next member; 0 at the end.
func (w *largeWalk) take() uint32 {
	next := &w.narrow
	if next.Done() || !w.wide.Done() && Newest.Earlier(w.wide.Place(), next.Place()) {
		next = &w.wide
	}
	if next.Done() {
		return 0
	}
	_, id := next.At()
	next.Next()
	return id
}

// ringPush adds an entry at the end of a ring.
func (x *Index) ringPush(head *uint32, id uint32, e *entry) {
	if *head == 0 {
		e.next, e.prev, *head = id, id, id
		return
	}
	first := x.entries.At(*head)
	e.next, e.prev = *head, first.prev
	x.entries.At(first.prev).next = id
	first.prev = id
}

// ringRemove takes an entry out of its ring.
func (x *Index) ringRemove(head *uint32, id uint32, e *entry) {
	if e.next == id {
		*head = 0
	} else {
		x.entries.At(e.prev).next = e.next
		x.entries.At(e.next).prev = e.prev
		if *head == id {
			*head = e.next
		}
	}
	e.next, e.prev = 0, 0
}
