package tree

// Tree is one ordered set of (place, packet). Its zero value is empty.
//
// The first packet of an empty tree needs no node: the tree itself holds it until a second one
// comes. Most queues of a server with many queues hold one packet or none.
type Tree struct {
	root        uint32 // the packet itself when depth is 0
	first, last uint32 // leaves; when depth is 0, low and high half of the packet's sequence
	Count       uint32 // of packets
	Priorities  uint32 // distinct ones
	depth       uint8  // levels, 1 when the root is a leaf
	lone        uint32 // priority of the packet when depth is 0
}

// lonePlace is the place of the only packet of a tree without nodes.
func (t *Tree) lonePlace() Place {
	return Place{t.lone, uint64(t.last)<<32 | uint64(t.first)}
}

// Forest is the nodes of all trees.
type Forest struct {
	Slab[node, *node]
	Passed int // grows with each packet or leaf that a walk or a count passes; its owner adds more
}

// path is the way from the root to a leaf: each level's node and the position taken in it.
type path struct {
	node [maxDepth]uint32
	pos  [maxDepth]int
}

// descend fills the path to the leaf that covers k and returns that leaf.
func (f *Forest) descend(t *Tree, k Place, p *path) uint32 {
	id := t.root
	for level := 0; level < int(t.depth)-1; level++ {
		n := f.At(id)
		i := n.child(k)
		p.node[level], p.pos[level] = id, i
		id = n.ids[i]
	}
	p.node[t.depth-1] = id
	return id
}

// Insert adds a packet at its place; false when the place is taken.
func (f *Forest) Insert(t *Tree, k Place, id uint32) bool {
	if t.Count == 0 {
		*t = Tree{root: id, Count: 1, Priorities: 1, lone: k.Priority, first: uint32(k.Seq), last: uint32(k.Seq >> 32)}
		return true
	}
	if t.depth == 0 {
		f.plant(t)
	}
	if n := f.At(t.last); n.n < fan && n.key(int(n.n)-1).Before(k) {
		if n.priorities[n.n-1] != k.Priority {
			t.Priorities++
		}
		n.insert(int(n.n), k, id)
		t.Count++
		return true
	}
	var p path
	n := f.At(f.descend(t, k, &p))
	i := n.search(k)
	if i < int(n.n) && n.key(i) == k {
		return false
	}
	t.Count++
	if !f.neighbourHas(n, i, i, k.Priority) {
		t.Priorities++
	}
	if i == 0 {
		f.lowerBounds(t, k, &p)
	}
	for level := int(t.depth) - 1; ; level-- {
		n := f.At(p.node[level])
		if n.n < fan {
			n.insert(i, k, id)
			return true
		}
		var right uint32
		k, right = f.split(t, p.node[level], i, k, id)
		if level == 0 {
			f.growRoot(t, k, right)
			return true
		}
		if f.absorb(t, f.At(p.node[level-1]), p.pos[level-1], k, right) {
			return true
		}
		i, id = p.pos[level-1]+1, right
	}
}

// plant moves the only packet of a tree without nodes into a leaf.
func (f *Forest) plant(t *Tree) {
	root := f.Alloc()
	n := f.At(root)
	n.leaf = true
	n.insert(0, t.lonePlace(), t.root)
	*t = Tree{root: root, first: root, last: root, Count: 1, Priorities: 1, depth: 1}
}

// lowerBounds lowers the bounds along a path to k, where k is below all keys that they cover.
func (f *Forest) lowerBounds(t *Tree, k Place, p *path) {
	for level := int(t.depth) - 2; level >= 0; level-- {
		n, i := f.At(p.node[level]), p.pos[level]
		if !k.Before(n.key(i)) {
			return
		}
		n.set(i, k, n.ids[i])
	}
}

// split inserts a pair at position i of a full node. It moves the upper part of the node to a new
// right sibling, and returns that one's lower bound and number.
//
// A node is split in half, unless the inserts are an ascending or descending run. Then it is split
// where the run inserts, so that the run goes on in a node of its own and leaves full nodes behind.
func (f *Forest) split(t *Tree, left uint32, i int, k Place, id uint32) (Place, uint32) {
	right := f.Alloc()
	l, r := f.At(left), f.At(right)
	r.leaf = l.leaf
	at, toLeft, descending := fan/2, i <= fan/2, false
	switch {
	case i == fan:
		at, toLeft = fan, false
	case i == 0 || i == int(l.last)+1:
		at, toLeft = i, true
	case i == int(l.last):
		at, toLeft, descending = i, false, true
		if !l.leaf && i > 1 {
			at-- // the child that the run splits goes along
		}
	}
	r.append(l, at)
	l.n = uint8(at)
	if toLeft {
		l.insert(i, k, id)
	} else {
		r.insert(i-at, k, id)
	}
	if !l.leaf {
		return r.key(0), right
	}
	r.prev, r.next = left, l.next
	l.next = right
	if r.next != 0 {
		f.At(r.next).prev = right
	} else {
		t.last = right
	}
	if descending {
		return l.key(int(l.n) - 1).PlusOne(), right // the run goes on at the right
	}
	return r.key(0), right
}

// absorb keeps a split from leaving two small neighbours. The child of parent at i was split, and
// right is its new sibling. If one of the two is small, and so is the neighbour on its other side,
// these become one node, and the parent needs no room for another child. Otherwise it returns
// false, and the new sibling is not in the parent yet.
func (f *Forest) absorb(t *Tree, parent *node, i int, k Place, right uint32) bool {
	left := parent.ids[i]
	l, r := f.At(left), f.At(right)
	if i+1 < int(parent.n) && r.n <= small {
		if next := f.At(parent.ids[i+1]); next.n <= small {
			last := r.last
			f.appendNode(t, r, next)
			r.last = last
			f.freeNode(t, parent.ids[i+1])
			parent.set(i+1, k, right)
			return true
		}
	}
	if i > 0 && l.n <= small {
		if prev := f.At(parent.ids[i-1]); prev.n <= small {
			f.appendNode(t, prev, l)
			f.freeNode(t, left)
			parent.set(i, k, right)
			return true
		}
	}
	return false
}

// growRoot puts a new root above the old one and its new sibling.
func (f *Forest) growRoot(t *Tree, k Place, right uint32) {
	root := f.Alloc()
	n := f.At(root)
	n.insert(0, f.At(t.root).key(0), t.root)
	n.insert(1, k, right)
	t.root = root
	t.depth++
}

// Remove takes out the packet at k; false when there is none.
func (f *Forest) Remove(t *Tree, k Place) bool {
	if t.depth == 0 {
		if t.Count == 0 || t.lonePlace() != k {
			return false
		}
		*t = Tree{}
		return true
	}
	if n := f.At(t.last); n.n > small+1 && !k.Before(n.key(0)) {
		return f.removeFrom(t, n, k)
	}
	if n := f.At(t.first); n.n > small+1 && !n.key(int(n.n)-1).Before(k) {
		return f.removeFrom(t, n, k)
	}
	var p path
	n := f.At(f.descend(t, k, &p))
	if !f.removeFrom(t, n, k) {
		return false
	}
	f.rebalance(t, &p)
	return true
}

// removeFrom takes k out of a leaf and leaves the leaf's size to the caller; false when k is not
// there.
func (f *Forest) removeFrom(t *Tree, n *node, k Place) bool {
	i := n.search(k)
	if i == int(n.n) || n.key(i) != k {
		return false
	}
	if !f.neighbourHas(n, i, i+1, k.Priority) {
		t.Priorities--
	}
	n.remove(i)
	t.Count--
	return true
}

// neighbourHas reports whether the key before position i of a leaf, or the one at position j, has
// this priority. Keys of one priority are next to each other, so these two tell whether any other
// key has it.
func (f *Forest) neighbourHas(n *node, i, j int, priority uint32) bool {
	if i > 0 {
		if n.priorities[i-1] == priority {
			return true
		}
	} else if n.prev != 0 {
		if prev := f.At(n.prev); prev.priorities[prev.n-1] == priority {
			return true
		}
	}
	if j < int(n.n) {
		return n.priorities[j] == priority
	}
	return n.next != 0 && f.At(n.next).priorities[0] == priority
}

// rebalance frees or merges nodes of a path, from the leaf up, where a removal left them empty or
// small.
func (f *Forest) rebalance(t *Tree, p *path) {
	for level := int(t.depth) - 1; level > 0; level-- {
		parent, i := f.At(p.node[level-1]), p.pos[level-1]
		before := parent.n
		if id := p.node[level]; f.At(id).n == 0 {
			f.freeNode(t, id)
			parent.remove(i)
			continue
		}
		for f.At(parent.ids[i]).n <= small {
			if i > 0 && f.canMerge(parent, i) {
				f.merge(t, parent, i)
				i--
			} else if i+1 < int(parent.n) && f.canMerge(parent, i+1) {
				f.merge(t, parent, i+1)
			} else {
				break
			}
		}
		if parent.n == before {
			return
		}
	}
	f.shrinkRoot(t)
}

// canMerge reports whether child i of parent and the one before it fit into one node.
func (f *Forest) canMerge(parent *node, i int) bool {
	return f.At(parent.ids[i-1]).n+f.At(parent.ids[i]).n <= mergeMax
}

// merge moves child i of parent into child i-1.
func (f *Forest) merge(t *Tree, parent *node, i int) {
	id := parent.ids[i]
	f.appendNode(t, f.At(parent.ids[i-1]), f.At(id))
	f.freeNode(t, id)
	parent.remove(i)
}

// appendNode moves the pairs of a node to the end of the one before it. If that makes two small
// children neighbours, they are merged too.
func (f *Forest) appendNode(t *Tree, to, from *node) {
	first := int(to.n)
	to.append(from, 0)
	to.last = fan
	if !to.leaf && f.At(to.ids[first-1]).n <= small && f.At(to.ids[first]).n <= small {
		f.merge(t, to, first)
	}
}

// freeNode frees a node and, if it is a leaf, unlinks it from its neighbours.
func (f *Forest) freeNode(t *Tree, id uint32) {
	n := f.At(id)
	if n.leaf {
		if n.prev != 0 {
			f.At(n.prev).next = n.next
		} else {
			t.first = n.next
		}
		if n.next != 0 {
			f.At(n.next).prev = n.prev
		} else {
			t.last = n.prev
		}
	}
	f.Free(id)
}

// shrinkRoot frees an empty root, and roots with a single child.
func (f *Forest) shrinkRoot(t *Tree) {
	for {
		id := t.root
		n := f.At(id)
		if n.n == 0 {
			f.Free(id)
			*t = Tree{}
			return
		}
		if n.leaf || n.n > 1 {
			return
		}
		t.root = n.ids[0]
		t.depth--
		f.Free(id)
	}
}

// Lowest returns the lowest place and its packet; the tree is not empty.
func (f *Forest) Lowest(t *Tree) (Place, uint32) {
	if t.depth == 0 {
		return t.lonePlace(), t.root
	}
	n := f.At(t.first)
	return n.key(0), n.ids[0]
}

// Highest returns the highest place and its packet; the tree is not empty.
func (f *Forest) Highest(t *Tree) (Place, uint32) {
	if t.depth == 0 {
		return t.lonePlace(), t.root
	}
	n := f.At(t.last)
	return n.key(int(n.n) - 1), n.ids[n.n-1]
}

// Newest returns the highest sequence of the lowest priority; the tree is not empty.
func (f *Forest) Newest(t *Tree) (Place, uint32) {
	if t.depth == 0 {
		return t.lonePlace(), t.root
	}
	leaf, i := f.lastOf(t, f.At(t.first).priorities[0])
	n := f.At(leaf)
	return n.key(i), n.ids[i]
}

// lastOf returns the leaf and position of the last key of a priority, which the tree holds in a
// node.
func (f *Forest) lastOf(t *Tree, priority uint32) (leaf uint32, i int) {
	n := f.At(t.last)
	if n.priorities[n.n-1] == priority {
		return t.last, int(n.n) - 1
	}
	leaf = t.first
	if n = f.At(leaf); n.priorities[n.n-1] <= priority {
		var p path
		leaf = f.descend(t, Place{priority, ^uint64(0)}, &p)
		n = f.At(leaf)
	}
	if i = n.firstAfter(priority); i > 0 {
		return leaf, i - 1
	}
	// Every key under this lower bound may be above it: then the key is in the leaf before.
	leaf = n.prev
	return leaf, int(f.At(leaf).n) - 1
}

// Count returns how many keys are in the range from lo to hi, both included.
func (f *Forest) Count(t *Tree, lo, hi Place) int {
	if t.Count == 0 || hi.Before(lo) {
		return 0
	}
	if t.depth == 0 {
		if k := t.lonePlace(); k.Before(lo) || hi.Before(k) {
			return 0
		}
		return 1
	}
	var p path
	last := f.At(f.descend(t, hi, &p))
	leaf := f.At(f.descend(t, lo, &p))
	n := last.search(hi)
	if n < int(last.n) && last.key(n) == hi {
		n++
	}
	if leaf == f.At(t.first) && last == f.At(t.last) {
		return int(t.Count) - (int(last.n) - n) - leaf.search(lo)
	}
	n -= leaf.search(lo)
	for ; leaf != last; leaf = f.At(leaf.next) {
		n += int(leaf.n)
		f.Passed++
	}
	return n
}

// Clear empties a tree.
func (f *Forest) Clear(t *Tree) {
	if t.depth > 0 {
		f.freeAll(t.root)
	}
	*t = Tree{}
}

// freeAll frees a node and all below it.
func (f *Forest) freeAll(id uint32) {
	n := f.At(id)
	for i := 0; !n.leaf && i < int(n.n); i++ {
		f.freeAll(n.ids[i])
	}
	f.Free(id)
}
