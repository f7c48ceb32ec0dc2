package index

// place is a packet's place in the order of its lane: the key of the trees.
type place struct {
	priority uint32
	seq      uint64
}

// before is the order of places: priority ascending, then sequence ascending.
func (a place) before(b place) bool {
	return a.priority < b.priority || (a.priority == b.priority && a.seq < b.seq)
}

// plusOne is the place just after.
func (a place) plusOne() place {
	if a.seq++; a.seq == 0 {
		a.priority++
	}
	return a
}

const (
	fan      = 31        // keys of a node: makes a node 512 bytes
	small    = 14        // keys of a node that looks for a sibling to merge with
	mergeMax = 2 * small // most keys of a merged node: the next insert does not split it again
	maxDepth = 16        // of two neighbours one is not small, so 2^32 keys need fewer levels
)

// node is a leaf (ids are packets) or an inner node (ids are nodes, keys their lower bounds) of a
// B+tree.
//
// Invariants: 1 ≤ n ≤ fan. Keys ascend strictly. Every key below ids[i] of an inner node is ≥ key i
// and < key i+1. Of two neighbours with one parent at most one is small; that bounds space and
// depth whatever is inserted and removed. The leaves of a tree are linked in order; prev and next
// of inner nodes are 0.
type node struct {
	seqs       [fan]uint64
	priorities [fan]uint32
	ids        [fan]uint32
	prev, next uint32 // next links free slots
	n          uint8
	last       uint8 // where the last insert went: shows an ascending or descending run
	leaf       bool
}

func (n *node) freeLink() *uint32 { return &n.next }

// key returns the key at position i.
func (n *node) key(i int) place { return place{n.priorities[i], n.seqs[i]} }

func (n *node) set(i int, k place, id uint32) {
	n.seqs[i], n.priorities[i], n.ids[i] = k.seq, k.priority, id
}

// search returns the first position whose key is not before k.
func (n *node) search(k place) int {
	lo, hi := 0, int(n.n)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		// The sequence is in another cache line, so it is read only where it decides.
		if p := n.priorities[mid]; p < k.priority || p == k.priority && n.seqs[mid] < k.seq {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// firstAfter returns the first position whose priority is higher than the given one.
func (n *node) firstAfter(priority uint32) int {
	lo, hi := 0, int(n.n)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if n.priorities[mid] <= priority {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// child returns the position of the child that covers k.
func (n *node) child(k place) int {
	i := n.search(k)
	if i < int(n.n) && n.priorities[i] == k.priority && n.seqs[i] == k.seq {
		return i
	}
	return max(i-1, 0)
}

// insert puts a pair at position i; the node is not full.
func (n *node) insert(i int, k place, id uint32) {
	m := int(n.n)
	copy(n.seqs[i+1:m+1], n.seqs[i:m])
	copy(n.priorities[i+1:m+1], n.priorities[i:m])
	copy(n.ids[i+1:m+1], n.ids[i:m])
	n.set(i, k, id)
	n.n++
	n.last = uint8(i)
}

// remove takes position i out.
func (n *node) remove(i int) {
	m := int(n.n)
	copy(n.seqs[i:m-1], n.seqs[i+1:m])
	copy(n.priorities[i:m-1], n.priorities[i+1:m])
	copy(n.ids[i:m-1], n.ids[i+1:m])
	n.n--
}

// append copies the pairs of o, from position i on, to the end of n.
func (n *node) append(o *node, i int) {
	m, c := int(n.n), int(o.n)-i
	copy(n.seqs[m:], o.seqs[i:o.n])
	copy(n.priorities[m:], o.priorities[i:o.n])
	copy(n.ids[m:], o.ids[i:o.n])
	n.n += uint8(c)
}

// tree is one ordered set of (place, packet). Its zero value is empty.
type tree struct {
	root        uint32 // 0 when empty
	first, last uint32 // leaves
	count       uint32
	priorities  uint32 // distinct ones
	depth       uint8  // levels, 1 when the root is a leaf
}

// forest is the nodes of all trees.
type forest struct {
	slab[node, *node]
}

// path is the way from the root to a leaf: each level's node and the position taken in it.
type path struct {
	node [maxDepth]uint32
	pos  [maxDepth]int
}

// descend fills the path to the leaf that covers k and returns that leaf.
func (f *forest) descend(t *tree, k place, p *path) uint32 {
	id := t.root
	for level := 0; level < int(t.depth)-1; level++ {
		n := f.at(id)
		i := n.child(k)
		p.node[level], p.pos[level] = id, i
		id = n.ids[i]
	}
	p.node[t.depth-1] = id
	return id
}

// insert adds a packet at its place; false when the place is taken.
func (f *forest) insert(t *tree, k place, id uint32) bool {
	if t.count == 0 {
		t.root = f.alloc()
		n := f.at(t.root)
		n.leaf = true
		n.insert(0, k, id)
		t.first, t.last, t.count, t.priorities, t.depth = t.root, t.root, 1, 1, 1
		return true
	}
	if n := f.at(t.last); n.n < fan && n.key(int(n.n)-1).before(k) {
		if n.priorities[n.n-1] != k.priority {
			t.priorities++
		}
		n.insert(int(n.n), k, id)
		t.count++
		return true
	}
	var p path
	n := f.at(f.descend(t, k, &p))
	i := n.search(k)
	if i < int(n.n) && n.key(i) == k {
		return false
	}
	t.count++
	if !f.neighbourHas(n, i, i, k.priority) {
		t.priorities++
	}
	if i == 0 {
		f.lowerBounds(t, k, &p)
	}
	for level := int(t.depth) - 1; ; level-- {
		n := f.at(p.node[level])
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
		if f.absorb(t, f.at(p.node[level-1]), p.pos[level-1], k, right) {
			return true
		}
		i, id = p.pos[level-1]+1, right
	}
}

// lowerBounds lowers the bounds along a path to k, where k is below all keys that they cover.
func (f *forest) lowerBounds(t *tree, k place, p *path) {
	for level := int(t.depth) - 2; level >= 0; level-- {
		n, i := f.at(p.node[level]), p.pos[level]
		if !k.before(n.key(i)) {
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
func (f *forest) split(t *tree, left uint32, i int, k place, id uint32) (place, uint32) {
	right := f.alloc()
	l, r := f.at(left), f.at(right)
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
		f.at(r.next).prev = right
	} else {
		t.last = right
	}
	if descending {
		return l.key(int(l.n) - 1).plusOne(), right // the run goes on at the right
	}
	return r.key(0), right
}

// absorb keeps a split from leaving two small neighbours. The child of parent at i was split, and
// right is its new sibling. If one of the two is small, and so is the neighbour on its other side,
// these become one node, and the parent needs no room for another child. Otherwise it returns
// false, and the new sibling is not in the parent yet.
func (f *forest) absorb(t *tree, parent *node, i int, k place, right uint32) bool {
	left := parent.ids[i]
	l, r := f.at(left), f.at(right)
	if i+1 < int(parent.n) && r.n <= small {
		if next := f.at(parent.ids[i+1]); next.n <= small {
			last := r.last
			f.appendNode(t, r, next)
			r.last = last
			f.freeNode(t, parent.ids[i+1])
			parent.set(i+1, k, right)
			return true
		}
	}
	if i > 0 && l.n <= small {
		if prev := f.at(parent.ids[i-1]); prev.n <= small {
			f.appendNode(t, prev, l)
			f.freeNode(t, left)
			parent.set(i, k, right)
			return true
		}
	}
	return false
}

// growRoot puts a new root above the old one and its new sibling.
func (f *forest) growRoot(t *tree, k place, right uint32) {
	root := f.alloc()
	n := f.at(root)
	n.insert(0, f.at(t.root).key(0), t.root)
	n.insert(1, k, right)
	t.root = root
	t.depth++
}

// remove takes out the packet at k; false when there is none.
func (f *forest) remove(t *tree, k place) bool {
	if t.count == 0 {
		return false
	}
	if n := f.at(t.last); n.n > small+1 && !k.before(n.key(0)) {
		return f.removeFrom(t, n, k)
	}
	if n := f.at(t.first); n.n > small+1 && !n.key(int(n.n)-1).before(k) {
		return f.removeFrom(t, n, k)
	}
	var p path
	n := f.at(f.descend(t, k, &p))
	if !f.removeFrom(t, n, k) {
		return false
	}
	f.rebalance(t, &p)
	return true
}

// removeFrom takes k out of a leaf and leaves the leaf's size to the caller; false when k is not
// there.
func (f *forest) removeFrom(t *tree, n *node, k place) bool {
	i := n.search(k)
	if i == int(n.n) || n.key(i) != k {
		return false
	}
	if !f.neighbourHas(n, i, i+1, k.priority) {
		t.priorities--
	}
	n.remove(i)
	t.count--
	return true
}

// neighbourHas reports whether the key before position i of a leaf, or the one at position j, has
// this priority. Keys of one priority are next to each other, so these two tell whether any other
// key has it.
func (f *forest) neighbourHas(n *node, i, j int, priority uint32) bool {
	if i > 0 {
		if n.priorities[i-1] == priority {
			return true
		}
	} else if n.prev != 0 {
		if prev := f.at(n.prev); prev.priorities[prev.n-1] == priority {
			return true
		}
	}
	if j < int(n.n) {
		return n.priorities[j] == priority
	}
	return n.next != 0 && f.at(n.next).priorities[0] == priority
}

// rebalance frees or merges nodes of a path, from the leaf up, where a removal left them empty or
// small.
func (f *forest) rebalance(t *tree, p *path) {
	for level := int(t.depth) - 1; level > 0; level-- {
		parent, i := f.at(p.node[level-1]), p.pos[level-1]
		before := parent.n
		if id := p.node[level]; f.at(id).n == 0 {
			f.freeNode(t, id)
			parent.remove(i)
			continue
		}
		for f.at(parent.ids[i]).n <= small {
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
func (f *forest) canMerge(parent *node, i int) bool {
	return f.at(parent.ids[i-1]).n+f.at(parent.ids[i]).n <= mergeMax
}

// merge moves child i of parent into child i-1.
func (f *forest) merge(t *tree, parent *node, i int) {
	id := parent.ids[i]
	f.appendNode(t, f.at(parent.ids[i-1]), f.at(id))
	f.freeNode(t, id)
	parent.remove(i)
}

// appendNode moves the pairs of a node to the end of the one before it. If that makes two small
// children neighbours, they are merged too.
func (f *forest) appendNode(t *tree, to, from *node) {
	first := int(to.n)
	to.append(from, 0)
	to.last = fan
	if !to.leaf && f.at(to.ids[first-1]).n <= small && f.at(to.ids[first]).n <= small {
		f.merge(t, to, first)
	}
}

// freeNode frees a node and, if it is a leaf, unlinks it from its neighbours.
func (f *forest) freeNode(t *tree, id uint32) {
	n := f.at(id)
	if n.leaf {
		if n.prev != 0 {
			f.at(n.prev).next = n.next
		} else {
			t.first = n.next
		}
		if n.next != 0 {
			f.at(n.next).prev = n.prev
		} else {
			t.last = n.prev
		}
	}
	f.free(id)
}

// shrinkRoot frees an empty root, and roots with a single child.
func (f *forest) shrinkRoot(t *tree) {
	for {
		id := t.root
		n := f.at(id)
		if n.n == 0 {
			f.free(id)
			*t = tree{}
			return
		}
		if n.leaf || n.n > 1 {
			return
		}
		t.root = n.ids[0]
		t.depth--
		f.free(id)
	}
}

// lowest returns the lowest place and its packet; the tree is not empty.
func (f *forest) lowest(t *tree) (place, uint32) {
	n := f.at(t.first)
	return n.key(0), n.ids[0]
}

// newest returns the highest sequence of the lowest priority; the tree is not empty.
func (f *forest) newest(t *tree) (place, uint32) {
	leaf, i := f.lastOf(t, f.at(t.first).priorities[0])
	n := f.at(leaf)
	return n.key(i), n.ids[i]
}

// lastOf returns the leaf and position of the last key of a priority, which the tree holds.
func (f *forest) lastOf(t *tree, priority uint32) (leaf uint32, i int) {
	n := f.at(t.last)
	if n.priorities[n.n-1] == priority {
		return t.last, int(n.n) - 1
	}
	leaf = t.first
	if n = f.at(leaf); n.priorities[n.n-1] <= priority {
		var p path
		leaf = f.descend(t, place{priority, ^uint64(0)}, &p)
		n = f.at(leaf)
	}
	if i = n.firstAfter(priority); i > 0 {
		return leaf, i - 1
	}
	// Every key under this lower bound may be above it: then the key is in the leaf before.
	leaf = n.prev
	return leaf, int(f.at(leaf).n) - 1
}
