package tree

import "fmt"

// check says what is wrong with the shape of a tree, or with a packet that is not ok. It returns
// how many nodes the tree has.
func check(f *Forest, t *Tree, ok func(Place, uint32) bool) (nodes uint32, err error) {
	if t.Count == 0 {
		if *t != (Tree{}) {
			return 0, fmt.Errorf("an empty tree is %+v", *t)
		}
		return 0, nil
	}
	if t.depth == 0 {
		if want := (Tree{root: t.root, Count: 1, Priorities: 1, first: t.first, last: t.last, lone: t.lone}); *t != want || !ok(t.lonePlace(), t.root) {
			return 0, fmt.Errorf("a tree without nodes is %+v", *t)
		}
		return 0, nil
	}
	c := shape{f: f, t: t, ok: ok}
	if err := c.visit(t.root, int(t.depth), Place{}, Place{^uint32(0), ^uint64(0)}); err != nil {
		return c.nodes, err
	}
	switch {
	case c.total != t.Count || t.last != c.leaf || f.At(c.leaf).next != 0:
		return c.nodes, fmt.Errorf("a tree of %d packets up to leaf %d says %d up to %d", c.total, c.leaf, t.Count, t.last)
	case c.priorities != t.Priorities:
		return c.nodes, fmt.Errorf("a tree of %d priorities says %d", c.priorities, t.Priorities)
	}
	return c.nodes, nil
}

// shape is what a check has seen of a tree, from its left end on.
type shape struct {
	f    *Forest
	t    *Tree
	ok   func(Place, uint32) bool
	leaf uint32 // the last one

	nodes, total, priorities, latest uint32
}

// visit checks a node, so many levels from the leaves, and all below it. Its keys are from low on,
// and not above high.
func (c *shape) visit(id uint32, depth int, low, high Place) error {
	c.nodes++
	f, n := c.f, c.f.At(id)
	if n.n == 0 || n.n > fan || n.leaf != (depth == 1) {
		return fmt.Errorf("node %d has %d keys %d levels above the leaves", id, n.n, depth-1)
	}
	for i := 0; i < int(n.n); i++ {
		k := n.key(i)
		if i > 0 && !n.key(i-1).Before(k) || k.Before(low) || high.Before(k) {
			return fmt.Errorf("node %d has %v at %d: out of order", id, k, i)
		}
		if n.leaf {
			if !c.ok(k, n.ids[i]) {
				return fmt.Errorf("node %d has packet %d at %v, where it does not belong", id, n.ids[i], k)
			}
			if c.priorities == 0 || k.Priority != c.latest {
				c.priorities, c.latest = c.priorities+1, k.Priority
			}
			continue
		}
		if i > 0 && f.At(n.ids[i-1]).n <= small && f.At(n.ids[i]).n <= small {
			return fmt.Errorf("node %d has small neighbours at %d", id, i)
		}
		to := high
		if i+1 < int(n.n) {
			to = n.key(i + 1).minusOne()
		}
		if err := c.visit(n.ids[i], depth-1, k, to); err != nil {
			return err
		}
	}
	if n.leaf {
		if n.prev != c.leaf || c.leaf == 0 && c.t.first != id || c.leaf != 0 && f.At(c.leaf).next != id {
			return fmt.Errorf("leaf %d is not linked behind leaf %d", id, c.leaf)
		}
		c.leaf = id
		c.total += uint32(n.n)
	}
	return nil
}

// minusOne is the place just before.
func (a Place) minusOne() Place {
	if a.Seq == 0 {
		a.Priority--
	}
	a.Seq--
	return a
}
