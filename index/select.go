package index

// End is which end of equal priority is taken.
type End uint8

const (
	Newest End = iota // the highest sequence first: pinpriq document, section pop
	Oldest            // the lowest sequence first
)

// earlier is the order of selection: best priority, then the chosen end of the sequences.
func (end End) earlier(a, b place) bool {
	if a.priority != b.priority || end == Oldest {
		return a.before(b)
	}
	return a.seq > b.seq
}

// Filter says which lanes a consumer takes from, by the tags given to [Index.Lane] (empty for the default lane).
// It is asked at most once a lane and call, must not keep or change the tags, and must not call the index. A nil
// Filter takes from all.
type Filter func(tags []byte) bool

// Limit is the most that one Pop takes. The selected packet is taken whatever the limit says.
type Limit struct {
	Packets int   // the selected one included; 0 or less: no limit
	Bytes   int64 // sum of sizes, the selected one included; 0 or less: no limit
}

// Best returns the packet that would be selected now; false when there is none.
//
// Best, Pop, Next and Claim do not look at times: call Advance with the present moment until it is done, then these
// never see an expired packet. O(log n); with a filter O(lanes).
func (x *Index) Best(q QueueID, end End, f Filter) (Packet, bool) {
	id := x.best(q, end, f)
	if id == 0 {
		return Packet{}, false
	}
	return x.packet(id, x.entries.at(id)), true
}

// Pop takes the selected packet and, if group is set, with it every ready packet of its key (priority 0 and other
// lanes included), and appends them to dst: the selected one first, then by priority, newest first, priority 0 last.
// From the first one on that would exceed the limit they stay. Delayed and claimed packets of the key stay. Nothing is
// appended when nothing can be selected. See Best for times.
func (x *Index) Pop(q QueueID, end End, f Filter, group bool, lim Limit, dst []Packet) []Packet {
	id := x.best(q, end, f)
	if id == 0 {
		return dst
	}
	e := x.entries.at(id)
	if group && e.group != 0 {
		for _, id := range x.pick(id, e, lim) {
			e := x.entries.at(id)
			dst = append(dst, x.packet(id, e))
			x.remove(id, e)
		}
		x.trimPicked()
		return dst
	}
	dst = append(dst, x.packet(id, e))
	x.remove(id, e)
	return dst
}

// pick returns a packet and the members of its group that go with it, valid until the next call.
func (x *Index) pick(id uint32, e *entry, lim Limit) []uint32 {
	x.picked = append(x.picked[:0], id)
	if e.group == 0 {
		return x.picked
	}
	left, bytes := lim.Packets-1, lim.Bytes-int64(e.size)
	x.picked = x.others(x.keys.groups.at(e.group), id, func(m *entry) bool {
		left--
		bytes -= int64(m.size)
		return (lim.Packets <= 0 || left >= 0) && (lim.Bytes <= 0 || bytes >= 0)
	}, x.picked)
	return x.picked
}

// trimPicked ends the use of what pick returned, and frees its memory if a large group has made it long.
func (x *Index) trimPicked() {
	if cap(x.picked) > 1<<16 {
		x.picked = nil
	}
}

// Claim lends the selected packet to a consumer until leaseEnd (Unix ms; 0 or less: until it answers) and counts the
// attempt, which stops at 65,535; false when nothing can be selected. The packet returned is as it is afterwards.
// See Best for times.
func (x *Index) Claim(q QueueID, end End, f Filter, leaseEnd int64) (Packet, bool) {
	id := x.best(q, end, f)
	if id == 0 {
		return Packet{}, false
	}
	e := x.entries.at(id)
	if e.attempts < ^uint16(0) {
		e.attempts++
	}
	x.setState(id, e, Claimed, leaseEnd)
	return x.packet(id, e), true
}

// Extend sets a new lease end for a claimed packet (0 or less: none); false when there is no such claim.
func (x *Index) Extend(id ID, leaseEnd int64) bool {
	e := x.entry(id)
	if e == nil || e.state != Claimed {
		return false
	}
	x.setState(uint32(id), e, Claimed, leaseEnd)
	return true
}

// Release returns a claimed packet to its own place in the order, at once or, when notBefore (Unix ms) is after now,
// then; false when there is no such claim. One that expired meanwhile is what the next Advance reports.
func (x *Index) Release(id ID, notBefore, now int64) bool {
	e := x.entry(id)
	if e == nil || e.state != Claimed {
		return false
	}
	if notBefore > max(now, 0) {
		x.setState(uint32(id), e, Delayed, notBefore)
	} else {
		x.setState(uint32(id), e, Ready, 0)
	}
	return true
}

// best returns what is selected, or 0.
func (x *Index) best(q QueueID, end End, f Filter) uint32 {
	if !x.hasQueue(q) || end > Oldest {
		return 0
	}
	u := x.queues.at(uint32(q))
	lane := u.defaultLane
	if u.byTags != nil {
		lane = x.bestLane(u, end, f)
	} else if f != nil && !f(nil) {
		return 0
	}
	if lane == 0 {
		return 0
	}
	l := x.lanes.at(uint32(lane))
	if l.tree.count == 0 {
		return 0
	}
	_, id := x.head(l, end)
	return id
}

// bestLane returns the lane of a queue with several whose head is selected, or 0.
func (x *Index) bestLane(u *queue, end End, f Filter) LaneID {
	h := u.heaps[end]
	if len(h) == 0 {
		return 0
	}
	if f == nil {
		return h[0]
	}
	best := LaneID(0)
	for _, id := range h {
		// The filter costs more than the comparison, so it comes second.
		if (best == 0 || x.laneBefore(end, id, best)) && f(x.lanes.at(uint32(id)).tags) {
			best = id
		}
	}
	return best
}
