package index

import "github.com/holdfast-queue/holdfast/index/tree"

// End is the end of equal priority that a consumer takes from.
type End = tree.End

const (
	Newest = tree.Newest // the highest sequence first: pinpriq document, section pop
	Oldest = tree.Oldest // the lowest sequence first
)

// Filter says which packets a consumer takes, by their tags. Packets with equal tags share a lane,
// and a call asks a filter at most once a lane, or twice where shares take turns. A filter
// must not call the index. A nil Filter takes all.
type Filter func(tags string) bool

// Limit is the most that one Group has. The selected packet is taken whatever the limit says.
type Limit struct {
	Packets int   // the selected one included; 0 or less: no limit
	Bytes   int64 // sum of sizes, the selected one included; 0 or less: no limit
}

// Selection is what a consumer takes from a queue.
type Selection struct {
	End    End
	Filter Filter
	Share  []byte // of a queue that is shared out only this one; nil: any, by turns
	Claims bool   // what is taken will be claimed
	Limits bool   // leave what limits hold back
	Fits16 bool   // leave the wide packets, also in a group: they cost nothing
	Group  bool   // take with the selected packet every ready packet of its key
	Limit  Limit  // of the group
}

// Best returns the packet that would be selected now; false when there is none.
//
// Best and Next do not look at times. They never see an expired packet if Advance was
// called before with the present moment, until it was done. O(log n); with a filter O(lanes).
func (x *Index) Best(q QueueID, s Selection) (Packet, bool) {
	id := x.best(q, &s)
	if id == 0 {
		return Packet{}, false
	}
	return x.packet(id, x.entries.At(id)), true
}

// Group appends to dst a packet that was selected, and its group: every other ready packet of the
// same key, whatever its tags, priority 0 included, but no wide one if s.Fits16 is set. The
// selected packet comes first, then the group by priority, newest first, priority 0 last. The first
// packet that would exceed the limit is left out, and all behind it. Nothing is appended when the
// number is not in use.
func (x *Index) Group(id ID, s Selection, dst []Packet) []Packet {
	e := x.entry(id)
	if e == nil {
		return dst
	}
	dst = append(dst, x.packet(uint32(id), e))
	if e.group == 0 {
		return dst
	}
	lim := s.Limit
	left, bytes := lim.Packets-1, lim.Bytes-e.weight()
	x.others(x.keys.groups.At(e.group), uint32(id), s.Fits16, func(id uint32) bool {
		m := x.entries.At(id)
		left--
		bytes -= m.weight()
		if lim.Packets > 0 && left < 0 || lim.Bytes > 0 && bytes < 0 {
			return false
		}
		dst = append(dst, x.packet(id, m))
		return true
	})
	return dst
}

// best returns what is selected, or 0.
func (x *Index) best(q QueueID, s *Selection) uint32 {
	if !x.hasQueue(q) || s.End > Oldest {
		return 0
	}
	u := x.queues.At(uint32(q))
	if u.rules != nil && x.allowed(u, s, nil) == 0 {
		return 0
	}
	if u.shares == nil {
		if len(s.Share) > 0 {
			return 0
		}
		return x.bestIn(u.giving(nil), s)
	}
	switch of, all := u.shareNamed(s.Share); {
	case of != nil && x.allowed(u, s, of) > 0:
		return x.bestIn(u.giving(of), s)
	case all && s.Filter == nil:
		if first := x.firstShare(u, s); first != nil {
			return x.bestIn(u.giving(first), s)
		}
	case all:
		return x.bestByTurns(u, s)
	}
	return 0
}

// bestIn is best of some lanes.
func (x *Index) bestIn(of *lanes, s *Selection) uint32 {
	l := x.lanes.At(uint32(of.home))
	if of.set != nil {
		best := s.first(of.set.heaps[s.End], 0, nil)
		if best == nil {
			return 0
		}
		l = best.lane
	} else if l.tree.Count == 0 || !s.takes(l) {
		return 0
	}
	_, id := x.head(l, s.End)
	return id
}

// shareNamed returns a share by its name; nil if there is no such share. With a nil name it returns
// nil and true: all.
func (u *queue) shareNamed(name []byte) (of *share, all bool) {
	if name == nil {
		return nil, true
	}
	return u.shares.byName[string(name)], false
}

// first returns the first lane that is taken from, from place i of a heap down, if it comes before
// the best so far, and else that. What is below a lane comes after it.
func (s *Selection) first(heap laneHeap, i int, best *laneHead) *laneHead {
	switch {
	case i >= len(heap) || best != nil && !heap[i].Before(best):
		return best
	case s.takes(heap[i].lane):
		return &heap[i]
	}
	return s.first(heap, 2*i+2, s.first(heap, 2*i+1, best))
}

// accepts reports whether a filter accepts a lane.
func (f Filter) accepts(l *lane) bool { return f == nil || f(l.tags) }

// takes says that a selection takes packets of a lane. Its width is part of its kind, as its tags
// are.
func (s *Selection) takes(l *lane) bool { return !(s.Fits16 && l.wide) && s.Filter.accepts(l) }

// taking is takes for who keeps it; nil if a selection takes from all lanes.
func (s *Selection) taking() func(*lane) bool {
	if s.Filter == nil && !s.Fits16 {
		return nil
	}
	kept := *s
	return kept.takes
}
