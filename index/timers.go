package index

import (
	"math"

	"github.com/holdfast-queue/holdfast/index/tree"
)

// timer holds what only some packets have: times, and what was tried with the packet. A packet
// without any of that has none.
//
// A timer is at most once in the heap of its packet's clock, under the moment that the packet's
// state waits for: a Claimed packet's lease end; of the others the expiry, or what comes earlier:
// the not-before of a Delayed one, and the end of the time that a Dead one is kept
// (Index.KeepDead). A moment of 0 means never; such a timer is in no heap. The window of a unique
// push (uniques.go) is a timer, too, and so are the alarm (alarm.go) and the wakeup (wakes.go) of a
// queue.
type timer struct {
	expiry   [2]uint32 // Unix milliseconds, in halves: keeps the record at alignment 4
	until    [2]uint32 // not-before, lease end or death
	entry    uint32
	delivery uint32 // a Delivery, 0: none
	pos      uint32 // place in the heap plus 1, 0 when not in it; links free slots
}

func (t *timer) FreeLink() *uint32 { return &t.pos }

// empty reports whether the timer holds nothing.
func (t *timer) empty() bool {
	return t.expiry == [2]uint32{} && t.until == [2]uint32{} && t.delivery == 0
}

// dueAt returns the moment for which the timer is set while its packet is in state s; 0 for never.
// Dead packets are kept for keep milliseconds.
func (t *timer) dueAt(s State, keep int64) int64 {
	expiry, until := join64(t.expiry), join64(t.until)
	switch {
	case s == Claimed:
		return until
	case s == Dead && keep > 0 && until != 0:
		until = min(until, math.MaxInt64-keep) + keep
	case s != Delayed || until == 0:
		return expiry
	}
	if expiry != 0 && expiry < until {
		return expiry
	}
	return until
}

// clock says which clock measures a moment.
type clock uint8

const (
	wall   clock = iota // Unix milliseconds
	steady              // never jumps
	clocks = 2
)

// clock is the clock of the moment that a packet in this state waits for.
func (s State) clock() clock {
	if s == Claimed {
		return steady
	}
	return wall
}

func split64(v int64) [2]uint32 { return [2]uint32{uint32(v), uint32(v >> 32)} }
func join64(h [2]uint32) int64  { return int64(h[1])<<32 | int64(h[0]) }

// heapItem is an element of the heap.
type heapItem struct {
	when  [2]uint32
	timer uint32
}

// moments is a 4-ary heap, the earliest first.
type moments struct {
	items tree.Paged[heapItem]
	n     uint32
}

// timers are scheduled in a heap for each clock. Each timer knows its place in its heap.
type timers struct {
	tree.Slab[timer, *timer]
	heaps [clocks]moments
}

// next returns the earliest moment of a clock and its timer; false when nothing waits.
func (t *timers) next(c clock) (when int64, timer uint32, ok bool) {
	h := &t.heaps[c]
	if h.n == 0 {
		return 0, 0, false
	}
	s := h.items.At(0)
	return join64(s.when), s.timer, true
}

// isDue says that the moment of a timer has come, which is in the heap of a clock or in none.
func (t *timers) isDue(id uint32, c clock, now, steadyNow int64) bool {
	if c == steady {
		now = steadyNow
	}
	pos := t.At(id).pos
	return pos != 0 && join64(t.heaps[c].items.At(pos-1).when) <= now
}

// schedule puts a timer into the heap of a clock, or moves it there. A moment of 0 takes it out. It
// must not be in the other heap.
func (t *timers) schedule(id uint32, c clock, when int64) {
	h, pos := &t.heaps[c], t.At(id).pos
	switch {
	case when == 0 && pos == 0:
	case when == 0:
		t.unschedule(h, pos-1)
	case pos == 0:
		h.n++
		h.items.Resize(h.n)
		t.siftUp(h, h.n-1, heapItem{split64(when), id})
	default:
		t.fix(h, pos-1, heapItem{split64(when), id})
	}
}

// unschedule takes the item at i out of a heap.
func (t *timers) unschedule(h *moments, i uint32) {
	t.At(h.items.At(i).timer).pos = 0
	h.n--
	last := *h.items.At(h.n)
	if i != h.n {
		t.fix(h, i, last)
	}
	h.items.Resize(h.n)
}

// fix puts s where it belongs, starting at i.
func (t *timers) fix(h *moments, i uint32, s heapItem) {
	if i > 0 && join64(s.when) < join64(h.items.At((i-1)/4).when) {
		t.siftUp(h, i, s)
		return
	}
	t.siftDown(h, i, s)
}

// siftUp puts s at i or above.
func (t *timers) siftUp(h *moments, i uint32, s heapItem) {
	when := join64(s.when)
	for i > 0 {
		parent := (i - 1) / 4
		p := *h.items.At(parent)
		if join64(p.when) <= when {
			break
		}
		t.put(h, i, p)
		i = parent
	}
	t.put(h, i, s)
}

// siftDown puts s at i or below.
func (t *timers) siftDown(h *moments, i uint32, s heapItem) {
	when := join64(s.when)
	for {
		// Four times the highest place does not fit into 32 bits.
		first := uint64(i)*4 + 1
		best, bestWhen := uint32(0), when
		for c := first; c < min(first+4, uint64(h.n)); c++ {
			if w := join64(h.items.At(uint32(c)).when); w < bestWhen {
				best, bestWhen = uint32(c), w
			}
		}
		if best == 0 {
			break
		}
		t.put(h, i, *h.items.At(best))
		i = best
	}
	t.put(h, i, s)
}

func (t *timers) put(h *moments, i uint32, s heapItem) {
	*h.items.At(i) = s
	t.At(s.timer).pos = i + 1
}

// scheduleQueue sets a timer of a queue to a moment, and makes it if there is none. A moment of 0
// frees it.
func (x *Index) scheduleQueue(timer *uint32, q QueueID, kind uint32, c clock, at int64) {
	if *timer == 0 && at != 0 {
		*timer = x.timers.Alloc()
		t := x.timers.At(*timer)
		t.entry, t.delivery = uint32(q), kind
	}
	if *timer == 0 {
		return
	}
	if x.timers.schedule(*timer, c, at); at == 0 {
		x.timers.Free(*timer)
		*timer = 0
	}
}
