package index

// timer holds the times of one packet. A packet without times has none.
//
// The heap holds a timer at most once, under the moment that its packet's state waits for: a Ready
// packet's expiry, the earlier of a Delayed packet's expiry and not-before, a Claimed packet's
// lease end. A moment of 0 means never; such a timer is not in the heap.
type timer struct {
	expiry [2]uint32 // Unix milliseconds, in halves: keeps the record at 24 bytes of alignment 4
	until  [2]uint32 // not-before or lease end
	entry  uint32
	pos    uint32 // place in the heap plus 1, 0 when not in it; links free slots
}

func (t *timer) freeLink() *uint32 { return &t.pos }

// dueAt is the moment the timer is scheduled for while its packet is in state s; 0 for never.
func (t *timer) dueAt(s State) int64 {
	expiry, until := join64(t.expiry), join64(t.until)
	if s == Ready || s == Delayed && expiry != 0 && expiry < until {
		return expiry
	}
	return until
}

func split64(v int64) [2]uint32 { return [2]uint32{uint32(v), uint32(v >> 32)} }
func join64(h [2]uint32) int64  { return int64(h[1])<<32 | int64(h[0]) }

// heapItem is an element of the heap.
type heapItem struct {
	when  [2]uint32
	timer uint32
}

// timers is a 4-ary heap of the moments that packets wait for. Each timer knows its place in it.
type timers struct {
	slab[timer, *timer]
	heap paged[heapItem]
	n    uint32 // items in the heap
}

// next returns the earliest moment and its packet; false when nothing waits.
func (t *timers) next() (when int64, entry uint32, ok bool) {
	if t.n == 0 {
		return 0, 0, false
	}
	s := t.heap.at(0)
	return join64(s.when), t.at(s.timer).entry, true
}

// schedule puts a timer into the heap, or moves it there. A moment of 0 takes it out.
func (t *timers) schedule(id uint32, when int64) {
	pos := t.at(id).pos
	switch {
	case when == 0 && pos == 0:
	case when == 0:
		t.unschedule(pos - 1)
	case pos == 0:
		t.n++
		t.heap.resize(t.n)
		t.siftUp(t.n-1, heapItem{split64(when), id})
	default:
		t.fix(pos-1, heapItem{split64(when), id})
	}
}

// unschedule takes the item at i out of the heap.
func (t *timers) unschedule(i uint32) {
	t.at(t.heap.at(i).timer).pos = 0
	t.n--
	last := *t.heap.at(t.n)
	if i != t.n {
		t.fix(i, last)
	}
	t.heap.resize(t.n)
}

// fix puts s where it belongs, starting at i.
func (t *timers) fix(i uint32, s heapItem) {
	if i > 0 && join64(s.when) < join64(t.heap.at((i-1)/4).when) {
		t.siftUp(i, s)
		return
	}
	t.siftDown(i, s)
}

// siftUp puts s at i or above.
func (t *timers) siftUp(i uint32, s heapItem) {
	when := join64(s.when)
	for i > 0 {
		parent := (i - 1) / 4
		p := *t.heap.at(parent)
		if join64(p.when) <= when {
			break
		}
		t.put(i, p)
		i = parent
	}
	t.put(i, s)
}

// siftDown puts s at i or below.
func (t *timers) siftDown(i uint32, s heapItem) {
	when := join64(s.when)
	for {
		// Four times the highest place does not fit into 32 bits.
		first := uint64(i)*4 + 1
		best, bestWhen := uint32(0), when
		for c := first; c < min(first+4, uint64(t.n)); c++ {
			if w := join64(t.heap.at(uint32(c)).when); w < bestWhen {
				best, bestWhen = uint32(c), w
			}
		}
		if best == 0 {
			break
		}
		t.put(i, *t.heap.at(best))
		i = best
	}
	t.put(i, s)
}

func (t *timers) put(i uint32, s heapItem) {
	*t.heap.at(i) = s
	t.at(s.timer).pos = i + 1
}
