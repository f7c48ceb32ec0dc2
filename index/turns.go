package index

import "github.com/holdfast-queue/holdfast/index/tree"

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
	for _, heap := range sh.heaps {
		for i := range heap {
			heap[i].pass = heap[i].share.pass
		}
		heap.Build()
	}
}

// placeShare puts a share into the heap that it belongs to, at its place, or out of all.
func (x *Index) placeShare(u *queue, s *share) {
	stop, gives := x.placeOf(u, s)
	if s.pos != 0 && (s.stop != stop || !gives) {
		u.shares.takeOut(s)
	}
	if s.stop = stop; !gives {
		return
	}
	heap, head := &u.shares.heaps[stop], shareHead{s.claimed / s.weight, s.pass, s.turn, s}
	if s.pos == 0 {
		heap.Push(head)
	} else if (*heap)[s.pos-1] != head {
		heap.Set(int(s.pos-1), head)
	}
}

// takeOut takes a share out of its heap.
func (sh *sharing) takeOut(s *share) { sh.heaps[s.stop].Remove(int(s.pos - 1)) }

// byTurns is Next of a queue that is shared out. It costs O((skip+n) log shares), and with a filter
// besides O(lanes) of the shares that it passes over.
func (x *Index) byTurns(u *queue, s Selection, skip, n int, dst []Packet) []Packet {
	if n <= 0 {
		return dst
	}
	x.look(u, &s, func(id uint32) bool {
		if skip--; skip < 0 {
			dst = append(dst, x.packet(id, x.entries.At(id)))
			n--
		}
		return n > 0
	})
	return dst
}

// bestByTurns is byTurns for one packet, by its number; 0 if there is none.
func (x *Index) bestByTurns(u *queue, s *Selection) (best uint32) {
	x.look(u, s, func(id uint32) bool { best = id; return false })
	return best
}

// coming is a share in a look: as it stands in a heap of the queue or, if it had a turn in the look
// already, as it will be. It is small, as filters pass over many.
type coming struct {
	*shareHead
	had *had // nil: it stands in a heap, at i
	i   int32
	in  stop
}

// Before is the order of turns.
func (a *coming) Before(b *coming) bool { return a.shareHead.Before(b.shareHead) }

// Moved notes nothing: nobody asks for the place.
func (a *coming) Moved(uint32) {}

// had is a share as it will be after its turns in a look.
type had struct {
	shareHead
	gate gate
	walk *openWalks // over what it has yet to give, once it had several
}

// look is a look at who is next in a queue that is shared out.
type look struct {
	x     *Index
	u     *queue
	s     Selection // a copy: one that was given by address would have to be on the heap
	next  tree.Heap[coming, *coming]
	room  []had    // for shares that have their first turn; pointers to some stay
	stale []*share // that give nothing, though their heaps say so
}

// look gives the packets that the next takes would give, in that order. It walks down the heaps of
// the shares as far as they can be next. Those that had a turn come again as they will be. Shares
// that it found where they do not belong, placedSlice of them at most, it moves at its end.
func (x *Index) look(u *queue, s *Selection, yield func(id uint32) bool) {
	l := look{x: x, u: u, s: *s}
	for in := open; in < stops; in++ {
		if s.passes(in) {
			l.comes(in, 0)
		}
	}
	for clock, turns := u.shares.clock, u.shares.turns; len(l.next) > 0 && len(l.stale) < placedSlice; {
		c := l.next[0]
		if l.next.Remove(0); c.had == nil {
			l.comes(c.in, 2*c.i+1)
			l.comes(c.in, 2*c.i+2)
		}
		id := l.give(&c)
		if id == 0 {
			continue
		}
		if !yield(id) {
			break
		}
		clock, turns = max(clock, c.pass), turns+1
		if l.pass(&c) {
			c.pass, c.turn = clock+oneTurn/uint64(c.weight), turns
			l.next.Push(c)
		}
	}
	for _, of := range l.stale {
		x.followLimits(u, of)
	}
}

// comes lets the share at a place of a heap be next.
func (l *look) comes(in stop, i int32) {
	if h := l.u.shares.heaps[in]; int(i) < len(h) {
		l.next.Push(coming{shareHead: &h[i], i: i, in: in})
	}
}

// give is the packet that a share gives now, behind those that it gave in the look; 0 if there is
// none.
func (l *look) give(c *coming) uint32 {
	x, h := l.x, c.had
	switch {
	case h == nil && l.s.Limits && !l.s.passes(x.stopOf(l.u, c.share)):
		l.stale = append(l.stale, c.share)
		return 0
	case h == nil:
		return x.bestIn(l.u.giving(c.share), &l.s)
	case h.walk == nil:
		h.walk = &openWalks{x: x, end: l.s.End, accepts: l.s.taking()}
		h.walk.openLanes(l.u.giving(c.share))
		h.walk.take()
	}
	if len(h.walk.heap) == 0 {
		return 0
	}
	return h.walk.take()
}

// pass notes that a share had a turn. It returns false if it may have no other.
func (l *look) pass(c *coming) bool {
	of := c.share
	if c.had == nil {
		if len(l.room) == cap(l.room) {
			l.room = make([]had, 0, min(max(4, 2*cap(l.room)), 64))
		}
		l.room = append(l.room, had{shareHead: *c.shareHead, gate: of.gate})
		c.had = &l.room[len(l.room)-1]
		c.shareHead = &c.had.shareHead
	}
	h := c.had
	if h.gate.charge(l.x.clock, 1); l.s.Claims {
		h.gate.claimed++
	}
	h.held = h.gate.claimed / of.weight
	return !l.s.Limits || l.s.passes(l.x.stopAt(l.u, of, &h.gate))
}

// first is the share that is next; nil if there is none.
func (sh *sharing) first(s *Selection) *share {
	var first *shareHead
	for in := open; in < stops; in++ {
		if h := sh.heaps[in]; len(h) > 0 && s.passes(in) && (first == nil || h[0].Before(first)) {
			first = &h[0]
		}
	}
	if first == nil {
		return nil
	}
	return first.share
}
