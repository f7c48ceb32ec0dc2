package index

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/holdfast-queue/holdfast/index/tree"
)

// Check verifies every invariant of the index, at a cost of O(packets), and describes the first
// violation it finds.
func (x *Index) Check() error {
	c := checker{x: x, queues: make(map[QueueID]Counts), hashed: make(map[QueueID]uint32), byState: make(map[QueueID]*[Damaged]uint32), lanes: make(map[LaneID]laneTally), twins: make(map[LaneID]uint32), groups: make(map[uint32]groupTally), uniques: make(map[uint32]groupTally)}
	for _, part := range []func() error{c.entries, c.allLanes, c.allQueues, c.allGroups, c.table, c.allUniques, c.heaps, c.identities} {
		if err := part(); err != nil {
			return err
		}
	}
	return c.same("entries", x.entries.Live, c.seen)
}

// checker compares what the entries say with what every other structure says.
type checker struct {
	x           *Index
	seen        uint32         // entries in use
	timed       uint32         // of them with a timer
	due         [clocks]uint32 // of them scheduled
	delivered   uint32         // with a delivery
	byStates    uint32
	largeGroups uint32
	queues      map[QueueID]Counts
	hashed      map[QueueID]uint32           // selectable packets with a hash
	byState     map[QueueID]*[Damaged]uint32 // packets that cannot be selected, by state
	lanes       map[LaneID]laneTally
	twins       map[LaneID]uint32 // packets in them
	groups      map[uint32]groupTally
	uniques     map[uint32]groupTally // of ids: packets that hold them, and others that have them
}

type laneTally struct{ packets, selectable uint32 }

type groupTally struct{ ready, others uint32 }

// entries adds up what the entries say and checks their timers.
func (c *checker) entries() error {
	x := c.x
	for id := uint32(1); id < x.entries.Used; id++ {
		e := x.entries.At(id)
		if e.state == 0 {
			continue
		}
		c.seen++
		if e.rare&rareIdentity != 0 && x.identity(id, e) == e.seqNumber() {
			return fmt.Errorf("index: packet %d keeps an identity that it does not need", id)
		}
		if e.state > Damaged || !x.hasLane(e.lane) {
			return fmt.Errorf("index: packet %d has state %d and lane %d: expected known ones", id, e.state, e.lane)
		}
		l := x.lanes.At(uint32(e.lane))
		counts := c.queues[l.queue]
		counts.Bytes += int64(e.size)
		if e.state >= Dead {
			counts.Ended += int64(e.size)
		}
		counts.Strays += int(x.stray(e))
		t := c.lanes[e.lane]
		t.packets++
		if e.rare&rareGives != 0 {
			c.twins[l.twin]++
		}
		g := c.groups[e.group]
		g.others++
		switch {
		case e.state == Dead:
			counts.Dead++
		case e.state == Done:
			counts.Done++
		case e.state == Damaged:
			counts.Damaged++
		case e.state == Claimed:
			counts.Claimed++
		case e.state == Delayed:
			counts.Delayed++
		case e.priority == 0:
			counts.Unselectable++
		default:
			counts.Ready++
			t.selectable++
			if e.hash() != 0 {
				c.hashed[l.queue]++
			}
		}
		if e.state == Ready {
			g.others, g.ready = g.others-1, g.ready+1
		}
		if !e.selectable() {
			if c.byState[l.queue] == nil {
				c.byState[l.queue] = new([Damaged]uint32)
			}
			c.byState[l.queue][e.state-Ready]++
		}
		c.queues[l.queue], c.lanes[e.lane] = counts, t
		if e.group != 0 {
			c.groups[e.group] = g
		}
		if e.rare&rareUnique != 0 {
			g := c.uniques[x.uniques.groups.At(id)]
			if !e.state.unfinished() {
				g.others++
			} else {
				g.ready++
			}
			c.uniques[x.uniques.groups.At(id)] = g
		}
		if err := c.timer(id, e); err != nil {
			return err
		}
	}
	return nil
}

// waits checks that a queue is looked at again when the first of what waits there is due.
func (c *checker) waits(u *queue, q QueueID) error {
	x, first := c.x, int64(0)
	if u.rules != nil {
		first = u.rules.told
	}
	if sh := u.shares; sh != nil {
		waiting := 0
		for s := range sh.each() {
			if s.wake != 0 {
				waiting++
			}
		}
		for i := range sh.wakes {
			w := &sh.wakes[i]
			if w.share.wake != uint32(i+1) || sh.all[w.share.num] != w.share || i > 0 && w.at < sh.wakes[(i-1)/2].at {
				return fmt.Errorf("index: share %q is not where it says among those that are looked at again", w.share.name)
			}
			if first == 0 || w.at < first {
				first = w.at
			}
		}
		if waiting != len(sh.wakes) {
			return fmt.Errorf("index: %d shares say that they are looked at again, want %d", waiting, len(sh.wakes))
		}
	}
	if u.wakeup == 0 {
		if first != 0 {
			return fmt.Errorf("index: queue %d has no timer for %d", q, first)
		}
		return nil
	}
	c.timed++
	c.due[steady]++
	t := x.timers.At(u.wakeup)
	if t.delivery != wakeTimer || t.entry != uint32(q) || t.pos == 0 || join64(x.timers.heaps[steady].items.At(t.pos-1).when) != first {
		return fmt.Errorf("index: the timer of queue %d is %+v, want it for %d", q, *t, first)
	}
	return nil
}

func (c *checker) timer(id uint32, e *entry) error {
	if e.timer == 0 {
		return nil
	}
	c.timed++
	t := c.x.timers.At(e.timer)
	if t.empty() || (e.state == Ready || e.state >= Done) && t.until != [2]uint32{} {
		return fmt.Errorf("index: packet %d keeps a timer that it does not need", id)
	}
	if t.delivery != 0 {
		c.delivered++
		if c.x.Delivery(ID(id)) == (Delivery{}) {
			return fmt.Errorf("index: packet %d keeps a delivery that it does not need", id)
		}
	}
	if t.entry != id {
		return fmt.Errorf("index: timer %d of packet %d belongs to packet %d", e.timer, id, t.entry)
	}
	when := t.dueAt(e.state, c.x.queues.At(uint32(c.x.lanes.At(uint32(e.lane)).queue)).keepDead())
	if when == 0 {
		if t.pos != 0 {
			return fmt.Errorf("index: packet %d waits for nothing but is scheduled", id)
		}
		return nil
	}
	h := &c.x.timers.heaps[e.state.clock()]
	c.due[e.state.clock()]++
	if t.pos == 0 || t.pos > h.n {
		return fmt.Errorf("index: packet %d waits for %d but is not scheduled", id, when)
	}
	if s := h.items.At(t.pos - 1); s.timer != e.timer || join64(s.when) != when {
		return fmt.Errorf("index: packet %d waits for %d but its place in the heap says %d", id, when, join64(s.when))
	}
	return nil
}

// allLanes checks each lane's tree against the entries.
func (c *checker) allLanes() error {
	x := c.x
	live := uint32(0)
	for id := uint32(1); id < x.lanes.Used; id++ {
		if !x.hasLane(LaneID(id)) {
			continue
		}
		live++
		l := x.lanes.At(id)
		if l.gives {
			if n := c.twins[LaneID(id)]; l.tree.Count != n || l.packets+uint32(l.twin) != 0 {
				return fmt.Errorf("index: twin %d is %+v: its packets are %d", id, *l, n)
			}
			err := c.tree(&l.tree, func(k tree.Place, p uint32) bool {
				e := x.entry(ID(p))
				return e != nil && e.selectable() && e.rare&rareGives != 0 && x.lanes.At(uint32(e.lane)).twin == LaneID(id) && e.place() == k
			})
			if err != nil {
				return fmt.Errorf("twin %d: %w", id, err)
			}
			continue
		}
		if want := c.lanes[LaneID(id)]; l.packets != want.packets || l.tree.Count != want.selectable {
			return fmt.Errorf("index: lane %d counts %d packets, %d selectable: its packets are %d and %d",
				id, l.packets, l.tree.Count, want.packets, want.selectable)
		}
		err := c.tree(&l.tree, func(k tree.Place, p uint32) bool {
			e := x.entry(ID(p))
			return e != nil && e.selectable() && e.lane == LaneID(id) && e.place() == k
		})
		if err != nil {
			return fmt.Errorf("lane %d: %w", id, err)
		}
		counts := c.queues[l.queue]
		counts.Priorities += int(l.tree.Priorities)
		c.queues[l.queue] = counts
	}
	return c.same("lanes", x.lanes.Live, live)
}

// allQueues checks counts, lanes and the heaps of lanes of each queue.
func (c *checker) allQueues() error {
	x := c.x
	live := uint32(0)
	for id := uint32(1); id < x.queues.Used; id++ {
		q := QueueID(id)
		if !x.hasQueue(q) {
			continue
		}
		live++
		u := x.queues.At(id)
		if u.alarm != 0 {
			if t := x.timers.At(u.alarm); t.delivery != alarmTimer || t.entry != id || t.pos == 0 {
				return fmt.Errorf("index: the alarm of queue %d is timer %d, which is %+v", id, u.alarm, *t)
			}
			c.timed++
			c.due[wall]++
		}
		if x.Counts(q) != c.queues[q] {
			return fmt.Errorf("index: queue %d counts %+v: its packets are %+v", id, x.Counts(q), c.queues[q])
		}
		lanes, err := c.lanesOf(q, &u.lanes, nil)
		if err == nil && u.shares != nil {
			lanes, err = c.shares(u, q, lanes)
		}
		if err == nil {
			err = c.order(u, q, lanes)
		}
		if err != nil {
			return fmt.Errorf("queue %d: %w", id, err)
		}
		if err := c.waits(u, q); err != nil {
			return err
		}
		if err := c.fresh(u, lanes); err != nil {
			return fmt.Errorf("queue %d: %w", id, err)
		}
		if err := c.asideOf(u, q); err != nil {
			return fmt.Errorf("queue %d: %w", id, err)
		}
		if err := c.values(u, q); err != nil {
			return fmt.Errorf("queue %d: %w", id, err)
		}
	}
	if err := c.same("byStates", x.byStates.Live, c.byStates); err != nil {
		return err
	}
	return c.same("queues", x.queues.Live, live)
}

// lanesOf checks the lanes of a queue or of a share, and returns them.
func (c *checker) lanesOf(q QueueID, of *lanes, s *share) (all []LaneID, err error) {
	x := c.x
	if of.home != 0 {
		all = append(all, of.home)
	}
	if of.set != nil {
		if least := 1; len(of.set.byKey) < least || s != nil && (len(of.set.byKey) < 2 || of.home != 0) {
			return nil, fmt.Errorf("index: a set of %d lanes beside %d", len(of.set.byKey), of.home)
		}
		for key, l := range of.set.byKey {
			if !x.hasLane(l) || (laneKey{x.lanes.At(uint32(l)).tags, x.lanes.At(uint32(l)).wide}) != key {
				return nil, fmt.Errorf("index: lane %d is under %+v, which is not its own", l, key)
			}
			all = append(all, l)
		}
	}
	for _, id := range all {
		l := x.lanes.At(uint32(id))
		if l.queue != q || l.share != s || l.id != id {
			return nil, fmt.Errorf("index: lane %d is of another queue or share, or has another number", id)
		}
		if l.packets == 0 && !l.gives && (s != nil || id != of.home) {
			return nil, fmt.Errorf("index: lane %d is kept, and empty", id)
		}
	}
	return all, c.laneHeaps(of, all, x.queues.At(uint32(q)).shares != nil)
}

// order checks the twins of a queue with strict order, and who is in them.
func (c *checker) order(u *queue, q QueueID, lanes []LaneID) error {
	x, st := c.x, u.strict()
	var twins []LaneID
	for _, id := range lanes {
		if t := x.lanes.At(uint32(id)).twin; t != 0 {
			twins = append(twins, t)
		}
	}
	if st == nil {
		if len(twins) > 0 {
			return fmt.Errorf("index: lanes have twins %v without strict order", twins)
		}
		return nil
	}
	all, err := c.lanesOf(q, &st.twins, nil)
	if u.shares != nil {
		for s := range u.shares.each() {
			if s.twins != nil && err == nil {
				var more []LaneID
				more, err = c.lanesOf(q, s.twins, s)
				all = append(all, more...)
			}
		}
	}
	if err != nil {
		return err
	}
	for _, t := range twins {
		if !slices.Contains(all, t) {
			return fmt.Errorf("index: twin %d is not among the twins %v", t, all)
		}
	}
	if len(twins) != len(all) {
		return fmt.Errorf("index: lanes have twins %v, kept are %v", twins, all)
	}
	held, firsts, keys := make(map[uint32]uint32), 0, make(map[uint32]*entry)
	for id := uint32(1); id < x.entries.Used; id++ {
		e := x.entries.At(id)
		if e.state == 0 || x.lanes.At(uint32(e.lane)).queue != q {
			continue
		}
		if e.rare&rareHolds != 0 {
			held[e.group]++
		}
		if e.rare&rareGives != 0 {
			firsts++
		}
		if e.selectable() && (keys[e.group] == nil || e.place().Before(keys[e.group].place())) {
			keys[e.group] = e
		}
		if e.selectable() && e.group == 0 && e.rare&rareGives == 0 {
			return fmt.Errorf("index: packet %d without a key cannot be taken", id)
		}
		holds := e.group != 0 && (e.state == Claimed || e.state == Delayed && x.Delivery(ID(id)).Token != 0 || e.state == Dead && st.deadHolds)
		if (e.rare&rareHolds != 0) != holds {
			return fmt.Errorf("index: packet %d holds its key: want %v", id, holds)
		}
	}
	if !maps.Equal(held, st.held) || firsts != st.firsts {
		return fmt.Errorf("index: held are %v, and %d can be taken: want %v and %d", st.held, st.firsts, held, firsts)
	}
	for g, e := range keys {
		if g != 0 && (e.rare&rareGives != 0) != (held[g] == 0) {
			return fmt.Errorf("index: the first of group %d can be taken: want %v", g, held[g] == 0)
		}
		if g != 0 && e.rare&rareGives != 0 {
			firsts--
		}
	}
	for id := uint32(1); id < x.entries.Used; id++ {
		if e := x.entries.At(id); e.state != 0 && x.lanes.At(uint32(e.lane)).queue == q && e.group == 0 && e.rare&rareGives != 0 {
			firsts--
		}
	}
	if firsts != 0 {
		return fmt.Errorf("index: %d can be taken that are not the first of their key", firsts)
	}
	return nil
}

// shares checks the shares of a queue, and returns their lanes with those of the queue.
func (c *checker) shares(u *queue, q QueueID, all []LaneID) ([]LaneID, error) {
	x, sh := c.x, u.shares
	var inHeap [stops]int
	for s := range sh.each() {
		if s.resting != (s.num != 0 && s.isEmpty()) {
			return nil, fmt.Errorf("index: share %q rests: %v", s.name, s.resting)
		}
		if s.num != 0 {
			lanes, err := c.lanesOf(q, &s.lanes, s)
			if err != nil || len(lanes) == 0 && (s.wake == 0 || !s.isEmpty()) {
				return nil, fmt.Errorf("index: share %q has %d lanes: %w", s.name, len(lanes), err)
			}
			all = append(all, lanes...)
		}
		if sh.byName[s.name] != s || sh.all[s.num] != s {
			return nil, fmt.Errorf("index: share %q is not under its name or number", s.name)
		}
		if narrow, wide := x.widths(u.giving(s)); (narrow || wide) != (s.pos != 0) {
			return nil, fmt.Errorf("index: share %q is in a heap or not against what it has", s.name)
		}
		if want := x.stopOf(u, s); s.stop != want && !(s.stop >= waits && s.wake != 0) {
			return nil, fmt.Errorf("index: share %q with %d claims is stopped by %d, want %d", s.name, s.claimed, s.stop, want)
		}
		if s.pos == 0 {
			continue
		}
		inHeap[s.stop]++
		h := sh.heaps[s.stop]
		head, want := h[s.pos-1], (shareHead{s.claimed / s.weight, s.pass, s.turn, s})
		if head != want || s.pos > 1 && head.Before(&h[s.pos/2-1]) {
			return nil, fmt.Errorf("index: share %q is in its heap as %+v, want %+v behind what is above", s.name, head, want)
		}
	}
	for i, h := range sh.heaps {
		if inHeap[i] != len(h) {
			return nil, fmt.Errorf("index: %d shares in a heap, which has %d", inHeap[i], len(h))
		}
	}
	if len(sh.byName) != len(sh.all)-len(sh.free) {
		return nil, fmt.Errorf("index: %d names of shares, want %d", len(sh.byName), len(sh.all)-len(sh.free))
	}
	return all, c.same("lanes of shares", uint32(sh.lanes), uint32(len(all)-1))
}

// fresh checks that the lanes that say that they are fresh are noted.
func (c *checker) fresh(u *queue, lanes []LaneID) error {
	for _, id := range lanes {
		if c.x.lanes.At(uint32(id)).fresh && (u.fresh == nil || !slices.Contains(u.fresh.lanes, id)) {
			return fmt.Errorf("index: lane %d is fresh and not noted", id)
		}
	}
	return nil
}

// asideOf checks the trees of the packets of a queue that cannot be selected.
func (c *checker) asideOf(u *queue, q QueueID) error {
	x, want := c.x, c.byState[q]
	if (want == nil) != (u.byState == 0) {
		return fmt.Errorf("index: its packets that cannot be selected are in %d: expected %v", u.byState, want)
	}
	if want == nil {
		return nil
	}
	c.byStates++
	for s := Ready; s <= Damaged; s++ {
		t := x.byStates.At(u.byState).tree(s)
		if t.Count != want[s-Ready] {
			return fmt.Errorf("index: the tree of %v packets has %d: expected %d", s, t.Count, want[s-Ready])
		}
		err := c.tree(t, func(k tree.Place, p uint32) bool {
			e := x.entry(ID(p))
			return e != nil && !e.selectable() && e.state == s && e.place() == k && x.lanes.At(uint32(e.lane)).queue == q
		})
		if err != nil {
			return fmt.Errorf("%v packets: %w", s, err)
		}
	}
	t := &x.byStates.At(u.byState).byTime
	if t.Count != want[Delayed-Ready] {
		return fmt.Errorf("index: the tree of moments has %d packets: expected %d", t.Count, want[Delayed-Ready])
	}
	return c.tree(t, func(k tree.Place, p uint32) bool {
		e := x.entry(ID(p))
		return e != nil && e.state == Delayed && x.timePlace(e) == k && x.lanes.At(uint32(e.lane)).queue == q
	})
}

func (c *checker) laneHeaps(of *lanes, lanes []LaneID, shared bool) error {
	x := c.x
	if of.set == nil {
		for _, id := range lanes {
			if l := x.lanes.At(uint32(id)); l.pos[Newest]+l.pos[Oldest] != 0 || l.pos[worst] != 0 && !shared {
				return errors.New("index: a lone lane is in a heap")
			}
		}
		return nil
	}
	for _, end := range of.set.ends {
		want, wide := 0, 0
		for _, id := range lanes {
			l := x.lanes.At(uint32(id))
			if l.tree.Count == 0 {
				if l.pos[end] != 0 {
					return fmt.Errorf("index: lane %d is in a heap and empty", id)
				}
				continue
			}
			if want++; l.wide {
				wide++
			}
			heap, pos := of.set.heaps[end], int(l.pos[end])
			if pos == 0 || pos > len(heap) || heap[pos-1].lane.id != id {
				return fmt.Errorf("index: lane %d is not where it says in its heap", id)
			}
			if head, _ := x.head(l, end); head != heap[pos-1].place() {
				return fmt.Errorf("index: lane %d selects %v but its heap says %v", id, head, heap[pos-1].place())
			}
			if pos > 1 && end.Earlier(heap[pos-1].place(), heap[pos/2-1].place()) {
				return fmt.Errorf("index: lane %d is below a lane that comes after it", id)
			}
		}
		if n := len(of.set.heaps[end]); n != want || of.set.wide != wide {
			return fmt.Errorf("index: the heap of one end has %d lanes, %d are wide: expected %d and %d", n, of.set.wide, want, wide)
		}
	}
	return nil
}

// values checks that the tree of values of a queue, if it has one, holds what it should and all of
// that.
func (c *checker) values(u *queue, q QueueID) error {
	x := c.x
	switch {
	case u.values == nil && u != x.values.queue:
		return nil
	case u.ready == 0:
		return errors.New("index: a queue without selectable packets has a tree of values")
	case u.values == unsearchable:
		return nil
	case u != x.values.queue && u.values.Count != c.hashed[q]:
		return fmt.Errorf("index: a tree of values has %d packets: expected %d", u.values.Count, c.hashed[q])
	}
	return c.tree(u.values, func(k tree.Place, p uint32) bool {
		e := x.entry(ID(p))
		return e != nil && e.selectable() && x.lanes.At(uint32(e.lane)).queue == q && e.hash() != 0 && e.valuePlace() == k
	})
}

// tree checks that a tree has as many packets as it says, in their order and each of them ok.
func (c *checker) tree(t *tree.Tree, ok func(tree.Place, uint32) bool) error {
	var n, priorities uint32
	var last tree.Place
	for w := c.x.forest.Walk(t, Oldest); !w.Done(); w.Next() {
		k, id := w.At()
		if n > 0 && !last.Before(k) || !ok(k, id) {
			return fmt.Errorf("index: a tree has packet %d at %v behind %v, where it does not belong", id, k, last)
		}
		if n == 0 || k.Priority != last.Priority {
			priorities++
		}
		n, last = n+1, k
	}
	if n != t.Count || priorities != t.Priorities {
		return fmt.Errorf("index: a tree of %d packets and %d priorities says %d and %d", n, priorities, t.Count, t.Priorities)
	}
	return nil
}
