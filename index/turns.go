package index

import (
	"container/heap"

	"github.com/holdfast-queue/holdfast/index/tree"
)

// Shares take turns. Next is the share with the fewest whole turns of claims, claims by weight
// rounded down; of equal ones that with the lowest pass; of equal passes that which was made or
// served first. A take from a share moves the clock of the queue up to the pass of that, and the
// pass one turn by weight beyond the clock (start-time fair queueing). A share that comes new, also
// after it was forgotten with its last packet, is as if just served: else whoever has one packet at
// a time would take nearly all.

const (
	// oneTurn is what a take adds to the pass of a share of weight 1. By its rounding a share of
	// weight 1,000 is a take ahead after four million.
	oneTurn = 1 << 32
	// passEnd is when passes begin at the clock anew: after a billion turns.
	passEnd = 1 << 62
)

// shareHead is a share in a heap, with all that its order needs.
type shareHead struct {
	held uint32 // whole turns of claims
	pass uint64
	turn uint64
	*share
}

// Before is the order of turns.
func (a *shareHead) Before(b *shareHead) bool {
	if a.held != b.held {
		return a.held < b.held
	}
	if a.pass != b.pass {
		return a.pass < b.pass
	}
	return a.turn < b.turn
}

// Moved notes the place of the share in its heap.
func (a *shareHead) Moved(pos uint32) { a.share.pos = pos }

type shareHeap = tree.Heap[shareHead, *shareHead]

// Take says that a packet is about to be popped or claimed, with the next call: its share has had a
// turn.
func (x *Index) Take(id ID) {
	u, s := x.takenFrom(id)
	if u == nil {
		return
	}
	if s != nil {
		if u.shares.serve(s); u.shares.clock > passEnd {
			u.shares.rebase()
		}
	}
	x.takeCounts(u, s, 1)
}

// serve is what a take from a share changes in the order of turns. Its place in the heap follows.
func (sh *sharing) serve(s *share) {
	sh.clock = max(sh.clock, s.pass)
	s.pass = sh.clock + oneTurn/uint64(s.weight)
	sh.turns++
	s.turn = sh.turns
}

// rebase lets the clock begin anew before it overflows. Shares that it has passed are equal then,
// and go by turn.
func (sh *sharing) rebase() {
	for s := range sh.each() {
		s.pass -= min(s.pass, sh.clock)
	}
	sh.clock = 0
	for stop := range sh.heaps {
		for _, heap := range [...]shareHeap{sh.heaps[stop].narrow, sh.heaps[stop].onlyWide} {
			for i := range heap {
				heap[i].pass = heap[i].share.pass
			}
			heap.Build()
		}
	}
}

// placeShare puts a share into the heap that it belongs to, at its place, or out of both.
func (x *Index) placeShare(u *queue, s *share) {
	sh := u.shares
	narrow, wide := x.widths(u.giving(s))
	stop := x.stopOf(u, s)
	if s.pos != 0 && (s.stop != stop || s.onlyWide == narrow || !narrow && !wide) {
		sh.takeOut(s)
	}
	if s.wide != wide || s.stop != stop {
		sh.countWide(s, -1)
		s.wide, s.stop = wide, stop
		sh.countWide(s, 1)
	}
	if !narrow && !wide {
		return
	}
	if s.pos == 0 {
		s.onlyWide = !narrow
	}
	heap, head := sh.heapOf(s), shareHead{s.claimed / s.weight, s.pass, s.turn, s}
	if s.pos == 0 {
		heap.Push(head)
	} else if (*heap)[s.pos-1] != head {
		heap.Set(int(s.pos-1), head)
	}
}

// heapOf returns the heap that a share is in, or belongs to.
func (sh *sharing) heapOf(s *share) *shareHeap {
	if s.onlyWide {
		return &sh.heaps[s.stop].onlyWide
	}
	return &sh.heaps[s.stop].narrow
}

func (sh *sharing) countWide(s *share, by int) {
	if s.wide {
		sh.heaps[s.stop].wide += by
	}
}

// takeOut takes a share out of its heap.
func (sh *sharing) takeOut(s *share) {
	sh.heapOf(s).Remove(int(s.pos - 1))
	s.pos = 0
}

// turns is a look at who is next in a queue that is shared out. It lets the turns pass, and takes
// them back at its end.
type turns struct {
	x      *Index
	u      *queue
	s      Selection
	looked []shareLook // shares that had a turn, as they were
	aside  []*share    // that have nothing, or nothing more, for the selection
	clock  uint64      // as it was
	number uint64      // as it was
}

// shareLook is a share that had a turn in a look.
type shareLook struct {
	*share
	pass, turn uint64
	claimed    uint32
	due, gap   int64
	walk       *openWalks // from the second turn on
}

// byTurns is Next of a queue that is shared out. It costs O((skip+n) log shares), and with a filter
// besides O(lanes) of the shares that it passes over.
func (x *Index) byTurns(u *queue, s Selection, skip, n int, dst []Packet) []Packet {
	sh := u.shares
	if s.Filter != nil {
		best := x.bestByTurns(u, &s)
		if best == 0 {
			return dst
		}
		if skip == 0 && n == 1 {
			return append(dst, x.packet(best, x.entries.At(best)))
		}
	}
	t := turns{x: x, u: u, s: s, clock: sh.clock, number: sh.turns}
	for n > 0 {
		next := x.firstShare(u, &s)
		if next == nil {
			break
		}
		id := t.next(next)
		if id == 0 {
			sh.takeOut(next)
			t.aside = append(t.aside, next)
			continue
		}
		if skip--; skip < 0 {
			dst = append(dst, x.packet(id, x.entries.At(id)))
			n--
		}
		if n > 0 {
			t.pass(next)
		}
	}
	for _, l := range t.looked {
		l.share.pass, l.share.turn, l.share.claimed, l.look = l.pass, l.turn, l.claimed, 0
		l.meter.due, l.meter.gap = l.due, l.gap
		x.placeShare(u, l.share)
	}
	for _, s := range t.aside {
		x.placeShare(u, s)
	}
	sh.clock, sh.turns = t.clock, t.number
	return dst
}

// bestByTurns is byTurns for one packet. It takes no share out of its heap: it goes
// down the heaps in the order of turns, and ends with the first share that gives.
func (x *Index) bestByTurns(u *queue, s *Selection) (best uint32) {
	var next lookedAt
	for by := range u.shares.heaps {
		for _, h := range [...][]shareHead{u.shares.heaps[by].narrow, u.shares.heaps[by].onlyWide} {
			if s.passes(stop(by)) && len(h) > 0 {
				heap.Push(&next, &h[0])
			}
		}
	}
	for len(next) > 0 {
		of := heap.Pop(&next).(*shareHead).share
		if s.passes(x.stopOf(u, of)) {
			if best = x.bestIn(u.giving(of), s); best != 0 {
				break
			}
		}
		h := *u.shares.heapOf(of)
		for c := 2*int(of.pos) - 1; c <= 2*int(of.pos) && c < len(h); c++ {
			heap.Push(&next, &h[c])
		}
	}
	return best
}

// lookedAt is a heap of the shares that bestByTurns asks next.
type lookedAt []*shareHead

func (l lookedAt) Len() int           { return len(l) }
func (l lookedAt) Less(i, j int) bool { return l[i].Before(l[j]) }
func (l lookedAt) Swap(i, j int)      { l[i], l[j] = l[j], l[i] }
func (l *lookedAt) Push(h any)        { *l = append(*l, h.(*shareHead)) }
func (l *lookedAt) Pop() any {
	last := len(*l) - 1
	h := (*l)[last]
	*l = (*l)[:last]
	return h
}

// shareHeaps holds the shares with packets that can be selected, and that the same stops.
type shareHeaps struct {
	narrow, onlyWide shareHeap // of those that have narrow ones, and of the others
	wide             int       // how many of both have wide ones
}

// first is the share that is next; nil if there is none.
func (sh *sharing) first(s *Selection) *share {
	first := sh.heaps[open].first(s.Fits16)
	for stop := full; stop < stops; stop++ {
		if f := sh.heaps[stop].first(s.Fits16); f != nil && s.passes(stop) && (first == nil || f.Before(first)) {
			first = f
		}
	}
	if first == nil {
		return nil
	}
	return first.share
}

func (h *shareHeaps) first(narrow bool) *shareHead {
	switch {
	case len(h.narrow) == 0 && (narrow || len(h.onlyWide) == 0):
		return nil
	case len(h.narrow) == 0, !narrow && len(h.onlyWide) > 0 && h.onlyWide[0].Before(&h.narrow[0]):
		return &h.onlyWide[0]
	}
	return &h.narrow[0]
}

// next is the packet that the share gives now, behind those that it gave in the look; 0 if none.
func (t *turns) next(s *share) uint32 {
	of := t.u.giving(s)
	if s.look == 0 {
		return t.x.bestIn(of, &t.s)
	}
	l := &t.looked[s.look-1]
	if l.walk == nil {
		l.walk = &openWalks{x: t.x, end: t.s.End, accepts: t.x.accepting(t.s.Filter)}
		l.walk.openLanes(of, t.s.Fits16)
		l.walk.take()
	}
	if len(l.walk.heap) == 0 {
		return 0
	}
	return l.walk.take()
}

// pass lets a share have its turn.
func (t *turns) pass(s *share) {
	if s.look == 0 {
		t.looked = append(t.looked, shareLook{share: s, pass: s.pass, turn: s.turn, claimed: s.claimed, due: s.meter.due, gap: s.meter.gap})
		s.look = uint32(len(t.looked))
	}
	s.meter.charge(t.u.rate(s), t.x.clock, 1)
	if t.u.shares.serve(s); t.s.Claims {
		s.claimed++
	}
	t.x.placeShare(t.u, s)
}
