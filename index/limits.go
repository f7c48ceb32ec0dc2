package index

import (
	"cmp"
	"math"
)

// Limits say how many packets of a queue may be Claimed at once, and how fast they are taken; 0: as
// many as come. They are asked when a packet is taken. Claims are counted where they are: so no
// count can leak. A share at a limit stands in a heap of its own, which no take looks at that the
// limit is for.
type Limits struct {
	Claimed       uint32 // of the queue
	ShareClaimed  uint32 // of each share that has no limit of its own
	Gap, ShareGap int64  // nanoseconds between takes, of the queue and of each share
	Burst         int64  // takes that may come at once; 0 is 1
}

// SetLimits replaces the limits of a queue. All its shares follow.
func (x *Index) SetLimits(q QueueID, l Limits) {
	if !x.hasQueue(q) {
		return
	}
	u := x.queues.At(uint32(q))
	slow := false
	if r := u.rules; r != nil {
		slow = r.Limits.Gap >= slowGap && r.Limits.Gap != l.Gap
		x.openAt(u, 0)
	}
	u.setRules(func(r *rules) { r.Limits, r.max = l, l.Claimed })
	if r := u.rules; r != nil {
		slow = r.follow(rateOf(l.Gap, l.Burst), x.clock) || slow
		x.awaitRate(u)
	}
	if slow {
		x.note(u, nil)
	}
	if sh := u.shares; sh != nil {
		x.obey(u, &sh.begins, ShareOwn{})
		for s := range sh.each() {
			x.followShare(u, s)
		}
		x.placeShares(u)
	}
	x.reopen(u)
}

// Spend lets the rates of a queue begin with their burst spent at a moment of the steady clock, in
// milliseconds, as after a start: nobody knows what was taken until then. Slow rates of the queue,
// and of a share, go on with what is known of them: due, and ShareOwn.Due. A slow rate of shares
// goes on at a moment, from; 0: not known. Spend returns that: one gap after at at the latest.
func (x *Index) Spend(q QueueID, at int64, due TakeDue, from int64) int64 {
	if !x.hasQueue(q) {
		return 0
	}
	u := x.queues.At(uint32(q))
	if r := u.rules; r != nil {
		if r.begin(due, at, x.clock) {
			x.note(u, nil)
		}
		x.awaitRate(u)
	}
	sh := u.shares
	if sh == nil || u.rules == nil && len(sh.own) == 0 {
		return 0
	}
	g := &sh.begins
	if latest := at + (g.gap+999_999)/1_000_000; from == 0 || from > latest {
		from = latest
	}
	if g.due = g.spent(from * 1_000_000); g.gap < slowGap {
		from = 0
		g.begin(TakeDue{}, at, x.clock)
	}
	for name, own := range sh.own {
		if own.Gap > 0 && sh.byName[name] == nil && sh.rule != nil { // it is there while takes are ahead
			sh.setResting(x.addShare(u, name), true)
		}
	}
	for s := range sh.each() {
		if s.due = g.due; s.ownRate {
			if s.due = 0; s.begin(sh.own[s.name].Due, at, x.clock) {
				x.note(u, s)
			}
		}
	}
	x.placeShares(u)
	return from
}

// awaitRate has Advance tell of a queue when its own rate lets takes pass, if it does not now.
func (x *Index) awaitRate(u *queue) {
	if r := u.rules; r.passes(x.clock) == 0 {
		x.openAt(u, r.opens())
	}
}

// rateOf is the rate of a share with a gap of its own; 0: it has none.
func (u *queue) rateOf(own int64) rate {
	if u.rules == nil {
		return rateOf(own, 0)
	}
	return rateOf(cmp.Or(own, u.rules.ShareGap), u.rules.Burst)
}

// HasLimits says that a limit or a rate of a queue may keep packets back, or one of a share.
func (x *Index) HasLimits(q QueueID) bool {
	if !x.hasQueue(q) {
		return false
	}
	u := x.queues.At(uint32(q))
	return u.rules != nil && u.rules.Limits != Limits{} || u.limitsShares()
}

// gateOf is the gate of a queue.
func (x *Index) gateOf(u *queue) (g gate) {
	if u.rules != nil {
		g = u.rules.gate
		if g.max > 0 {
			g.claimed = uint32(x.claimed(u))
		}
	}
	return g
}

// obey has a gate of a share follow the limits of its queue, and what the share has of its own.
func (x *Index) obey(u *queue, g *gate, own ShareOwn) (slow bool) {
	if g.max = own.MaxClaimed; g.max == 0 && u.rules != nil {
		g.max = u.rules.ShareClaimed
	}
	return g.follow(u.rateOf(own.Gap), x.clock)
}

// followShare is obey for a share. What is kept of a slow rate of its own is another.
func (x *Index) followShare(u *queue, s *share) {
	if slow := x.obey(u, &s.gate, u.shares.own[s.name]); slow && s.ownRate {
		x.note(u, s)
	}
}

func (x *Index) claimed(u *queue) int {
	if u.byState == 0 {
		return 0
	}
	return x.byStates.At(u.byState).count(Claimed)
}

// stopOf says what stops a share now. Its place may follow later.
func (x *Index) stopOf(u *queue, s *share) stop { by, _ := x.placeOf(u, s); return by }

// placeOf is stopOf. Without packets that can be selected, a share gives nothing and is in no heap.
func (x *Index) placeOf(u *queue, s *share) (by stop, gives bool) {
	narrow, wide := x.widths(u.giving(s))
	if by = x.stopAt(u, s, &s.gate); wide && !narrow {
		by |= onlyWide
	}
	return by, narrow || wide
}

// stopAt says what stops a share with a gate, whatever the width of its packets.
func (x *Index) stopAt(u *queue, s *share, g *gate) stop {
	if x.isCrowded(u, s) {
		return waits
	}
	return g.stop(x.clock)
}

// allowed is how many packets a selection may take from a queue, or with a share from that.
func (x *Index) allowed(u *queue, s *Selection, of *share) int {
	if !s.Limits {
		return math.MaxInt
	}
	g := x.gateOf(u)
	n := g.allows(x.clock, s.Claims)
	switch {
	case of == nil:
		return n
	case x.isCrowded(u, of):
		return 0
	}
	return min(n, of.allows(x.clock, s.Claims))
}

// placedSlice is how many shares a selection looks at that stand where they do not belong: a change
// of how many shares rest may leave some.
const placedSlice = 1000

func (u *queue) limitsShares() bool {
	return u.shares != nil && (u.shares.ownLimits > 0 || u.rules != nil && (u.rules.ShareClaimed > 0 || u.rules.ShareGap > 0))
}

// gives says that no limit or share keeps a selection from packets of a lane now.
func (x *Index) gives(u *queue, l *lane, s *Selection) bool {
	if !x.inShare(u, l, s.Share) || u.shares == nil {
		return u.shares == nil && len(s.Share) == 0
	}
	of := u.shares.of(l)
	return !s.Limits || s.passes(of.stop) && s.passes(x.stopOf(u, of))
}

// passes says that a selection takes from shares that this stops.
func (s *Selection) passes(by stop) bool {
	return !(s.Fits16 && by&onlyWide > 0) && (!s.Limits || by < full || by < waits && !s.Claims)
}

// readyByShares is Ready where shares have limits.
func (x *Index) readyByShares(u *queue, s *Selection, most int) (n int) {
	for by, heap := range u.shares.heaps {
		for i := 0; s.passes(stop(by)) && i < len(heap) && n < most; i++ {
			own := 0
			for l := range x.filledIn(u.giving(heap[i].share)) {
				if s.takes(l) {
					own += int(l.tree.Count)
				}
			}
			n += min(own, x.allowed(u, s, heap[i].share))
		}
	}
	return min(n, most)
}

// firstShare is the share from which a selection takes next; nil if there is none. What stops a
// share may have changed with what rests elsewhere: its place follows here.
func (x *Index) firstShare(u *queue, s *Selection) *share {
	for range placedSlice {
		first := u.shares.first(s)
		if first == nil || !s.Limits || first.stop == x.stopOf(u, first) {
			return first
		}
		x.followLimits(u, first)
	}
	return nil
}

// followLimits brings a share to its heap. One that gives again has fresh lanes.
func (x *Index) followLimits(u *queue, s *share) {
	was := s.stop
	x.placeShare(u, s)
	if s.stop >= waits || s.rest != 0 { // else its moment may be that at which it would be forgotten
		x.wakeAt(u, s, s.opensAt(x.clock))
	}
	if was&^onlyWide <= s.stop || u.fresh == nil {
		return
	}
	for l := range x.filledIn(u.giving(s)) {
		l.fresh = false
		x.freshen(u, l)
	}
	if len(u.fresh.lanes) > manyFresh {
		x.reopen(u)
	}
}

// placeShares brings all shares of a queue to where they belong, if it has some.
func (x *Index) placeShares(u *queue) {
	sh := u.shares
	if sh == nil {
		return
	}
	for i := range sh.heaps {
		sh.heaps[i] = sh.heaps[i][:0]
	}
	sh.wakes = sh.wakes[:0]
	for s := range sh.each() {
		by, gives := x.placeOf(u, s)
		s.pos, s.wake, s.stop = 0, 0, by
		if s.num != 0 && s.isEmpty() {
			if at := x.stays(u, s); at != 0 {
				sh.wakes = append(sh.wakes, wake{at, s})
			} else {
				x.leaveShare(u, s)
			}
			continue
		}
		if gives {
			sh.heaps[by] = append(sh.heaps[s.stop], shareHead{s.claimed / s.weight, s.pass, s.turn, s})
		}
		if s.stop >= waits || s.rest != 0 {
			sh.wakes = append(sh.wakes, wake{s.opensAt(x.clock), s})
		}
	}
	for i := range sh.heaps {
		sh.heaps[i].Build()
	}
	sh.wakes.Build()
	x.scheduleWakes(u)
}

// Held is a limit, or a rest, that keeps packets from being taken.
type Held struct {
	Share   string // that has it, if it is InShare; else the queue has it
	InShare bool
	Claimed int // of so many that may be
	Limit   int
	Wait    int64 // 0, or for how many milliseconds the rate still lets nothing pass
	Rest    int64 // 0, or for how many milliseconds the share rests

	Crowded bool // the share would be one more than MaxResting

	ByKey bool   // no limit does, but another packet of its key
	For   uint64 // the identity of that; 0: it would take long to find
}

// HeldBack says what keeps a packet from being claimed; false if nothing does.
func (x *Index) HeldBack(id ID) (h Held, ok bool) {
	e := x.entry(id)
	if e == nil || !e.selectable() {
		return h, false
	}
	u, s := x.takenFrom(id)
	if of, waits := x.waitsFor(u, e); waits {
		return Held{ByKey: true, For: of}, true
	}
	return x.heldBy(u, s)
}

// HeldShare says what keeps a share from giving packets to claims; false if nothing does.
func (x *Index) HeldShare(q QueueID, name string) (h Held, ok bool) {
	s, _ := x.shareNamed(q, name)
	if s == nil {
		return h, false
	}
	u := x.queues.At(uint32(q))
	if h, ok = x.heldBy(u, s); ok || !u.inOrder() || s.pos != 0 {
		return h, ok
	}
	ready, _, _ := x.ShareCounts(q, name)
	return Held{InShare: true, ByKey: true}, ready > 0
}

// heldBy says which limit holds back a share, or its queue; s may be nil.
func (x *Index) heldBy(u *queue, s *share) (h Held, ok bool) {
	if s != nil {
		h = Held{Share: s.name, InShare: true}
		switch stop := x.stopAt(u, s, &s.gate); {
		case stop == full:
			h.Claimed, h.Limit = int(s.claimed), int(s.max)
			return h, true
		case stop == waits && s.rest > x.clock:
			h.Rest = (s.rest - x.clock) / 1_000_000
			return h, true
		case stop == waits && x.isCrowded(u, s):
			h.Crowded = true
			return h, true
		case stop == waits:
			h.Wait = s.opens() - x.clock/1_000_000
			return h, true
		}
	}
	switch g := x.gateOf(u); {
	case g.room() == 0:
		return Held{Claimed: int(g.claimed), Limit: int(g.max)}, true
	case g.passes(x.clock) == 0:
		return Held{Wait: g.opens() - x.clock/1_000_000}, true
	}
	return Held{}, false
}

// AtLimit says that nothing of a queue may be claimed, as all that may be is.
func (x *Index) AtLimit(q QueueID) bool {
	g := gate{}
	if x.hasQueue(q) {
		g = x.gateOf(x.queues.At(uint32(q)))
	}
	return g.room() == 0
}

// HeldCounts is how much of a queue is held back.
type HeldCounts struct {
	SharesAtLimit int // with packets to give, of which as many are Claimed as may be
	SharesNotDue  int // with packets to give, that wait for their rate or rest, whatever is Claimed
	PacketsBehind int // Ready ones that wait for another one of their key
}

// HeldCounts counts what is held back of a queue.
func (x *Index) HeldCounts(q QueueID) (n HeldCounts) {
	if !x.hasQueue(q) {
		return n
	}
	u := x.queues.At(uint32(q))
	if u.shares != nil {
		h := &u.shares.heaps
		n.SharesAtLimit, n.SharesNotDue = len(h[full])+len(h[full|onlyWide]), len(h[waits])+len(h[waits|onlyWide])
	}
	if u.inOrder() {
		n.PacketsBehind = u.ready - u.rules.strict.firsts
	}
	return n
}
