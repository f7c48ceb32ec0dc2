package tree

// Place is a packet's place in the order of its lane: the key of the trees.
type Place struct {
	Priority uint32
	Seq      uint64
}

// Before is the order of places: priority ascending, then sequence ascending.
func (a Place) Before(b Place) bool {
	return a.Priority < b.Priority || (a.Priority == b.Priority && a.Seq < b.Seq)
}

// PlusOne is the place just after.
func (a Place) PlusOne() Place {
	if a.Seq++; a.Seq == 0 {
		a.Priority++
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

func (n *node) FreeLink() *uint32 { return &n.next }

// key returns the key at position i.
func (n *node) key(i int) Place { return Place{n.priorities[i], n.seqs[i]} }

func (n *node) set(i int, k Place, id uint32) {
	n.seqs[i], n.priorities[i], n.ids[i] = k.Seq, k.Priority, id
}

// search returns the first position whose key is not before k.
func (n *node) search(k Place) int {
	lo, hi := 0, int(n.n)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		// The sequence is in another cache line, so it is read only where it decides.
		if p := n.priorities[mid]; p < k.Priority || p == k.Priority && n.seqs[mid] < k.Seq {
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
func (n *node) child(k Place) int {
	i := n.search(k)
	if i < int(n.n) && n.priorities[i] == k.Priority && n.seqs[i] == k.Seq {
		return i
	}
	return max(i-1, 0)
}

// insert puts a pair at position i; the node is not full.
func (n *node) insert(i int, k Place, id uint32) {
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
