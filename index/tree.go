package index

// place is a packet's place in the order of its lane.
type place struct {
	priority uint32
	seq      uint64
}

// before is the order of places: priority ascending, then sequence ascending.
func (a place) before(b place) bool {
	return a.priority < b.priority || (a.priority == b.priority && a.seq < b.seq)
}

const (
	fan      = 31 // keys of a node: makes a node 512 bytes
	small    = 14 // a node with so few keys looks for a sibling to merge with
	mergeMax = 28 // keys of a merged node at most, so that the next insert does not split it again
	maxDepth = 16 // two neighbours hold more than fan keys together, so 2^32 keys need fewer levels
)

// node is a leaf (ids are packets) or an inner node (ids are nodes, keys their lower bounds) of a B+tree.
//
// Invariants: 1 ≤ n ≤ fan; keys ascend strictly; every key below ids[i] of an inner node is < key i+1 and, for i > 0,
// ≥ key i (what bounds the first child is the bound of its parent). Leaves of a tree are linked in order; prev and next of inner nodes are 0.
type node struct {
	seqs       [fan]uint64
	priorities [fan]uint32
	ids        [fan]uint32
	prev, next uint32 // next is the free link of a free slot
	n          uint8
	last       uint8 // where the latest insert went: shows an ascending or descending run
	leaf       bool
}

func (n *node) link() *uint32 { return &n.next }

// key is the place at position i.
func (n *node) key(i int) place { return place{n.priorities[i], n.seqs[i]} }

func (n *node) set(i int, k place, id uint32) {
	n.seqs[i], n.priorities[i], n.ids[i] = k.seq, k.priority, id
}

// search returns the first position whose key is not before k.
func (n *node) search(k place) int {
	lo, hi := 0, int(n.n)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if n.key(mid).before(k) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// past returns the first position whose priority is higher than the given one.
func (n *node) past(priority uint32) int {
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
	if i < int(n.n) && n.key(i) == k {
		return i
	}
	return max(i-1, 0)
}

// insert makes room at position i and puts the pair there; the node is not full.
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

// append copies the pairs of o from position i on behind those of n.
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
	depth       uint8 // levels, 1 when the root is a leaf
}

// forest is the nodes of all trees.
type forest struct {
	slab[node, *node]
}

// path is the way from the root to a leaf: the node of each level and the position taken in it.
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
		t.root = f.take()
		n := f.at(t.root)
		n.leaf = true
		n.insert(0, k, id)
		t.first, t.last, t.count, t.depth = t.root, t.root, 1, 1
		return true
	}
	if n := f.at(t.last); n.n < fan && n.key(int(n.n)-1).before(k) {
		n.insert(int(n.n), k, id)
		t.count++
		return true
	}
	var p path
	leaf := f.descend(t, k, &p)
	n := f.at(leaf)
	i := n.search(k)
	if i < int(n.n) && n.key(i) == k {
		return false
	}
	t.count++
	for level := int(t.depth) - 1; ; level-- {
		n := f.at(p.node[level])
		if n.n < fan {
			n.insert(i, k, id)
			return true
		}
		k, id = f.split(t, p.node[level], i, k, id)
		if level == 0 {
			f.grow(t, k, id)
			return true
		}
		i = p.pos[level-1] + 1
		// The bound of a first child is not lowered with the keys it receives; its new sibling's must be above it.
		if parent, low := f.at(p.node[level-1]), f.at(p.node[level]).key(0); i == 1 && low.before(parent.key(0)) {
			parent.set(0, low, parent.ids[0])
		}
	}
}

// split inserts a pair at position i of a full node by moving its upper part to a new right sibling, whose lower
// bound and number it returns. A run of inserts, ascending or descending, is cut where it inserts, so that it leaves
// full nodes behind; others are cut in half.
func (f *forest) split(t *tree, left uint32, i int, k place, id uint32) (place, uint32) {
	right := f.take()
	l, r := f.at(left), f.at(right)
	r.leaf = l.leaf
	cut, toLeft := fan/2, i <= fan/2
	switch {
	case i == fan:
		cut, toLeft = fan, false
	case i == 0 || i == int(l.last)+1:
		cut, toLeft = i, true
	case i == int(l.last):
		cut, toLeft = i, false
	}
	r.append(l, cut)
	l.n = uint8(cut)
	if toLeft {
		l.insert(i, k, id)
	} else {
		r.insert(i-cut, k, id)
	}
	if l.leaf {
		r.prev, r.next = left, l.next
		l.next = right
		if r.next != 0 {
			f.at(r.next).prev = right
		} else {
			t.last = right
		}
	}
	return r.key(0), right
}

// grow puts a new root above the old one and its new sibling.
func (f *forest) grow(t *tree, k place, right uint32) {
	root := f.take()
	n := f.at(root)
	n.insert(0, f.at(t.root).key(0), t.root)
	n.insert(1, k, right)
	t.root = root
	t.depth++
}

// remove takes the packet at k out; false when there is none.
func (f *forest) remove(t *tree, k place) bool {
	if t.count == 0 {
		return false
	}
	if n := f.at(t.last); n.n > small && !k.before(n.key(0)) {
		return f.removeFrom(t, n, k)
	}
	if n := f.at(t.first); n.n > small && !n.key(int(n.n)-1).before(k) {
		return f.removeFrom(t, n, k)
	}
	var p path
	n := f.at(f.descend(t, k, &p))
	if !f.removeFrom(t, n, k) {
		return false
	}
	f.settle(t, &p)
	return true
}

// removeFrom takes k out of a leaf without looking at the leaf's size.
func (f *forest) removeFrom(t *tree, n *node, k place) bool {
	i := n.search(k)
	if i == int(n.n) || n.key(i) != k {
		return false
	}
	n.remove(i)
	t.count--
	return true
}

// settle frees or merges the nodes of a path, from the leaf up, as far as a removal left them small.
func (f *forest) settle(t *tree, p *path) {
	for level := int(t.depth) - 1; level > 0; level-- {
		id, parent, i := p.node[level], f.at(p.node[level-1]), p.pos[level-1]
		n := f.at(id)
		switch {
		case n.n > small:
			return
		case n.n == 0:
			f.unlink(t, id)
			parent.remove(i)
		case i > 0 && f.at(parent.ids[i-1]).n+n.n <= mergeMax:
			f.merge(t, parent, i)
		case i+1 < int(parent.n) && f.at(parent.ids[i+1]).n+n.n <= mergeMax:
			f.merge(t, parent, i+1)
		default:
			return
		}
	}
	f.shrink(t)
}

// merge moves child i of parent into child i-1.
func (f *forest) merge(t *tree, parent *node, i int) {
	left, id := f.at(parent.ids[i-1]), parent.ids[i]
	right := f.at(id)
	// The bound of an inner node's first child is not kept up to date; the parent's is.
	if !right.leaf {
		right.set(0, parent.key(i), right.ids[0])
	}
	left.append(right, 0)
	left.last = fan
	f.unlink(t, id)
	parent.remove(i)
}

// unlink takes a node out of the chain of leaves and frees it.
func (f *forest) unlink(t *tree, id uint32) {
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
	f.drop(id)
}

// shrink takes away an empty root and roots with a single child.
func (f *forest) shrink(t *tree) {
	for {
		id := t.root
		n := f.at(id)
		if n.n == 0 {
			f.drop(id)
			*t = tree{}
			return
		}
		if n.leaf || n.n > 1 {
			return
		}
		t.root = n.ids[0]
		t.depth--
		f.drop(id)
	}
}

// lowest returns the lowest place and its packet; the tree is not empty.
func (f *forest) lowest(t *tree) (place, uint32) {
	n := f.at(t.first)
	return n.key(0), n.ids[0]
}

// newest returns the highest sequence of the lowest priority; the tree is not empty.
func (f *forest) newest(t *tree) (place, uint32) {
	leaf, i := f.endOf(t, f.at(t.first).priorities[0])
	n := f.at(leaf)
	return n.key(i), n.ids[i]
}

// endOf returns where the last place of a priority is; the tree holds one of it.
func (f *forest) endOf(t *tree, priority uint32) (leaf uint32, i int) {
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
	if i = n.past(priority); i > 0 {
		return leaf, i - 1
	}
	// A lower bound may be lower than every key left under it.
	leaf = n.prev
	return leaf, int(f.at(leaf).n) - 1
}
