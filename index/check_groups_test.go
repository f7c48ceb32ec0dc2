package index

import (
	"errors"
	"fmt"

	"github.com/holdfast-queue/holdfast/index/tree"
)

// allGroups checks the members of each group against the entries.
func (c *checker) allGroups() error {
	x := c.x
	for id, want := range c.groups {
		g := x.keys.groups.At(id)
		ring, ready := g.head, g.info&0xff
		if ready == largeMark {
			c.largeGroups++
			large := x.largeGroups.At(g.head)
			for _, t := range []*tree.Tree{&large.narrow, &large.wide} {
				err := c.tree(t, func(k tree.Place, p uint32) bool {
					e := x.entry(ID(p))
					return e != nil && e.group == id && e.state == Ready && e.rank() == k && x.readyTree(large, e) == t
				})
				if err != nil {
					return fmt.Errorf("group %d: %w", id, err)
				}
			}
			if n := large.narrow.Count + large.wide.Count; n != want.ready {
				return fmt.Errorf("index: group %d has %d ready members: expected %d", id, n, want.ready)
			}
			ring, ready, want.ready = large.notReady, 0, 0
		}
		if err := c.ring(id, ring, ready, want); err != nil {
			return err
		}
	}
	return c.same("large groups", x.largeGroups.Live, c.largeGroups)
}

// ring checks that a ring holds ready members first, then the others, each linked both ways.
func (c *checker) ring(group, head, ready uint32, want groupTally) error {
	x := c.x
	if ready != want.ready || (head == 0) != (want.ready+want.others == 0) {
		return fmt.Errorf("index: group %d says %d ready members: expected %d", group, ready, want.ready)
	}
	for i, id := uint32(0), head; i < want.ready+want.others; i++ {
		e := x.entry(ID(id))
		if e == nil || e.group != group || (e.state == Ready) != (i < ready) {
			return fmt.Errorf("index: group %d has packet %d at place %d of its ring, where it does not belong", group, id, i)
		}
		if x.entries.At(e.next).prev != id || (e.next == head) != (i+1 == want.ready+want.others) {
			return fmt.Errorf("index: packet %d is not linked into the ring of group %d", id, group)
		}
		id = e.next
	}
	return nil
}

func (c *checker) table() error { return c.keyTable(&c.x.keys, c.groups) }

// allUniques checks the counts of the groups of ids and the tree of packets that hold those.
func (c *checker) allUniques() error {
	x := c.x
	u := &x.uniques
	unfinished := uint32(0)
	for _, want := range c.uniques {
		unfinished += want.ready
	}
	windows := uint32(0)
	err := c.tree(&u.windows, func(k tree.Place, w uint32) bool {
		windows++
		t := x.timers.At(w)
		g := c.uniques[t.entry]
		g.others++
		c.uniques[t.entry] = g
		return t.delivery == windowTimer && t.pos != 0 && uint64(join64(t.until)) == k.Seq &&
			uint32(u.ids.groups.At(t.entry).queue) == k.Priority && u.windowOf.At(t.entry) == w
	})
	if err != nil {
		return fmt.Errorf("windows: %w", err)
	}
	c.timed += windows
	c.due[wall] += windows
	for id, want := range c.uniques {
		if n := u.ids.groups.At(id).head; n != want.ready+want.others {
			return fmt.Errorf("index: %d packets and windows have the id of group %d: expected %d", n, id, want.ready+want.others)
		}
	}
	if u.tree.Count != unfinished {
		return fmt.Errorf("index: %d packets hold ids: expected %d", u.tree.Count, unfinished)
	}
	err = c.tree(&u.tree, func(k tree.Place, p uint32) bool {
		e := x.entry(ID(p))
		return e != nil && e.rare&rareUnique != 0 && u.groups.At(p) == k.Priority && x.identity(p, e) == k.Seq &&
			u.ids.groups.At(k.Priority).queue == x.lanes.At(uint32(e.lane)).queue
	})
	if err != nil {
		return fmt.Errorf("ids: %w", err)
	}
	return c.keyTable(&u.ids, c.uniques)
}

// keyTable checks that every group with members is found under its key, and no other exists.
func (c *checker) keyTable(t *keyTable, groups map[uint32]groupTally) error {
	var key []byte
	blocks, chained := uint32(0), uint32(0)
	for id := range groups {
		key = t.appendKey(key[:0], id)
		if found := t.find(t.groups.At(id).queue, key); found != id {
			return fmt.Errorf("index: the key of group %d finds group %d", id, found)
		}
		if g := t.groups.At(id); g.keyLen() > inlineKey {
			blocks++
			for b := t.blocks.At(g.lastBlock()).next; b != g.lastBlock(); b = t.blocks.At(b).next {
				blocks++
			}
		}
	}
	for i := uint32(0); i < t.buckets.size; i++ {
		for id := *t.buckets.heads.At(i); id != 0; id = t.groups.At(id).next {
			chained++
		}
	}
	if chained != t.groups.Live {
		return fmt.Errorf("index: %d groups are chained: expected %d", chained, t.groups.Live)
	}
	if err := c.same("key blocks", t.blocks.Live, blocks); err != nil {
		return err
	}
	return c.same("groups", t.groups.Live, uint32(len(groups)))
}

// heaps checks the order of the heaps of timers. The check of entries has shown that each packet is
// where it belongs in them.
func (c *checker) heaps() error {
	t := &c.x.timers
	for clock := range t.heaps {
		h := &t.heaps[clock]
		for i := uint32(1); i < h.n; i++ {
			if join64(h.items.At(i).when) < join64(h.items.At((i-1)/4).when) {
				return fmt.Errorf("index: timer at %d of heap %d is earlier than the one above it", i, clock)
			}
		}
		if err := c.same("scheduled timers", h.n, c.due[clock]); err != nil {
			return err
		}
	}
	if err := c.same("deliveries", c.x.deliveries.Live, c.delivered); err != nil {
		return err
	}
	return c.same("timers", t.Live, c.timed)
}

// identities checks that the table of identities, if there is one, finds every packet and no other.
func (c *checker) identities() error {
	x := c.x
	t := &x.identities
	if t.built == 0 {
		return c.same("identities", t.held, 0)
	}
	in := uint32(0)
	for id := uint32(1); id < min(t.built, x.entries.Used); id++ {
		if x.entries.At(id).state != 0 {
			in++
		}
	}
	chained := uint32(0)
	for i := uint32(0); i < t.buckets.size; i++ {
		for id := *t.buckets.heads.At(i); id != 0; id = *t.next.At(id) {
			e := x.entry(ID(id))
			if e == nil || t.bucket(x.identity(id, e)) != t.buckets.heads.At(i) {
				return fmt.Errorf("index: packet %d is in bucket %d of identities, where it does not belong", id, i)
			}
			if chained++; chained > c.seen {
				return errors.New("index: a chain of identities has no end")
			}
		}
	}
	if c.seen == 0 || t.buckets.size < in || t.buckets.size > max(minBuckets, 5*in) {
		return fmt.Errorf("index: %d buckets of identities for %d packets", t.buckets.size, in)
	}
	if err := c.same("identities counted", t.held, in); err != nil {
		return err
	}
	return c.same("identities", in, chained)
}

// same compares how many slots a part holds with how many are reached.
func (c *checker) same(part string, held, reached uint32) error {
	if held != reached {
		return fmt.Errorf("index: %d %s are in use: expected %d", held, part, reached)
	}
	return nil
}
