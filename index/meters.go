package index

// RateOf says whose rate counts a take: that of a queue, the own one of a share, or that of its
// queue for the shares that have none.
type RateOf uint8

const (
	OfQueue RateOf = iota
	OfShare
	OfShares
)

// charged is a slow rate that has another due.
type charged struct {
	queue QueueID
	of    RateOf
	share *share // OfShare
}

// note has Charged tell of the slow rate of a share or, if that is nil, of a queue.
func (x *Index) note(u *queue, s *share) {
	c, noted := charged{of: OfQueue}, new(bool)
	switch {
	case s != nil && s.ownRate:
		c, noted = charged{of: OfShare, share: s}, &s.charged
	case s != nil:
		c, noted = charged{of: OfShares}, &u.shares.charged
	case u.rules != nil:
		noted = &u.rules.charged
	}
	if !*noted {
		*noted, c.queue = true, x.lanes.At(uint32(u.home)).queue
		x.charged = append(x.charged, c)
	}
}

// Charged tells which slow rates have counted takes, or have another due, since it was called last.
// What is to be kept of a due comes back with SetShare, and with Spend of a queue. A share is named
// where the rate is its own; there is no due of OfShares.
func (x *Index) Charged(fn func(q QueueID, of RateOf, share string, d TakeDue)) {
	for i := 0; i < len(x.charged); i++ { // SetShare may add some
		c := x.charged[i]
		var u *queue
		if x.hasQueue(c.queue) {
			u = x.queues.At(uint32(c.queue))
		}
		switch {
		case c.of == OfShare:
			c.share.charged = false
			if u != nil && u.shares.at(c.share.num) == c.share && c.share.ownRate && u.shares.rule != nil { // else it is gone, or its rate
				fn(c.queue, OfShare, c.share.name, c.share.keep(x.clock))
			}
		case u == nil:
		case c.of == OfQueue:
			d := TakeDue{}
			if r := u.rules; r != nil {
				r.charged, d = false, r.keep(x.clock)
			}
			fn(c.queue, OfQueue, "", d)
		case u.shares != nil:
			u.shares.charged = false
			fn(c.queue, OfShares, "", TakeDue{})
		}
	}
	clear(x.charged)
	x.charged = x.charged[:0]
}

// IsAhead says that a queue, even without packets, is to stay as its takes were many for a rate, or
// shares of it rest. MayTake tells when that may be over.
func (x *Index) IsAhead(q QueueID) bool {
	u := x.queues.At(uint32(q))
	if r := u.rules; r != nil && r.due > x.clock {
		if r.told == 0 {
			x.openAt(u, r.end())
		}
		return true
	}
	sh := u.shares
	if sh == nil {
		return false
	}
	empty := sh.all[0]
	until := max(empty.due, sh.begins.due)
	if until > x.clock && empty.wake == 0 {
		x.wakeAt(u, empty, (until+999_999)/1_000_000)
	}
	return until > x.clock || len(sh.all)-len(sh.free) > 1
}

// DueOf is when the next take of a queue is due by its own rate, fast ones too.
func (x *Index) DueOf(q QueueID) (d TakeDue) {
	if r := x.queues.At(uint32(q)).rules; r != nil && r.due > x.clock {
		d = TakeDue{r.end(), r.gap}
	}
	return d
}

// GoOn lets the rate of a queue go on where that of another one was.
func (x *Index) GoOn(q QueueID, d TakeDue) {
	u := x.queues.At(uint32(q))
	if r := u.rules; r != nil && d.At > 0 {
		if slow := r.goOn(d, x.clock); slow || r.gap >= slowGap {
			x.note(u, nil)
		}
		x.awaitRate(u)
	}
}

// SetClock says the present moment on the steady clock, in milliseconds, by which rates go.
func (x *Index) SetClock(steady int64) { x.clock = steady * 1_000_000 }

// Charge counts n takes more of a packet that was taken: its work was worth so many.
func (x *Index) Charge(id ID, n int64) {
	if u, s := x.takenFrom(id); u != nil {
		x.takeCounts(u, s, n)
	}
}

// GapOf is how far apart takes are, in nanoseconds, by the slower one of the rates that count a
// packet; 0: none does.
func (x *Index) GapOf(id ID) (gap int64) {
	u, s := x.takenFrom(id)
	if u != nil && u.rules != nil {
		gap = u.rules.gap
	}
	if s != nil {
		gap = max(gap, s.gap)
	}
	return gap
}

// takenFrom returns the queue of a packet, nil if there is no such, and its share, nil if the queue
// is not shared out.
func (x *Index) takenFrom(id ID) (u *queue, s *share) {
	e := x.entry(id)
	if e == nil {
		return nil, nil
	}
	l := x.lanes.At(uint32(e.lane))
	if u = x.queues.At(uint32(l.queue)); u.shares != nil {
		s = u.shares.of(l)
	}
	return u, s
}

// takeCounts charges n takes to the meters of a queue and of its share, which may be nil.
func (x *Index) takeCounts(u *queue, s *share, n int64) {
	if r := u.rules; r != nil {
		r.charge(x.clock, n)
		if x.awaitRate(u); r.gap >= slowGap {
			x.note(u, nil)
		}
	}
	if s == nil || s.gap == 0 {
		return
	}
	if s.charge(x.clock, n); s.gap >= slowGap {
		x.note(u, s)
	}
	x.followLimits(u, s)
}

// isCrowded says that a take from a share might make it one more than may rest.
func (x *Index) isCrowded(u *queue, s *share) bool {
	return u.shares.resting >= x.mostResting && s.num != 0 && s.gap > 0 && s.unfinished <= s.claimed+1
}

// opensAt is when the rest of a share ends, or else its rate lets takes pass, in milliseconds.
func (s *share) opensAt(now int64) int64 {
	switch {
	case s.rest != 0:
		return s.rest / 1_000_000
	case s.passes(now) == 0:
		return s.opens()
	}
	return now/1_000_000 + crowdedWait
}

// crowdedWait is after how many milliseconds a share that isCrowded is looked at again.
const crowdedWait = 60_000

// MaxResting is how many shares of a queue may stay without packets for their rates. A take that
// needs one more finds nothing. Those that took before, and lose their packets then, may be more.
const MaxResting = 250_000

// RestAtMost replaces MaxResting.
func (x *Index) RestAtMost(n int) { x.mostResting = n }

// setResting notes whether a share counts to MaxResting.
func (sh *sharing) setResting(s *share, is bool) {
	switch {
	case is && !s.resting:
		sh.resting++
	case !is && s.resting:
		sh.resting--
	}
	s.resting = is
}

// leaveShare forgets a share that has no packets, once its meter is at rest, and its own rest over:
// else whoever has one packet at a time would have no rate. Rests are as many as SetShare says.
func (x *Index) leaveShare(u *queue, s *share) {
	if at := x.stays(u, s); at != 0 {
		u.shares.setResting(s, true)
		x.wakeAt(u, s, at)
		return
	}
	x.wakeAt(u, s, 0)
	u.shares.setResting(s, false)
	u.shares.forget(s)
}

// stays is until when a share without packets stays, in milliseconds; 0: it goes.
func (x *Index) stays(u *queue, s *share) int64 {
	until := s.rest
	if until == 0 && s.gap != 0 && s.due > x.clock {
		until = max(1, s.due)
	}
	if u.shares.rule == nil {
		return 0
	}
	return (until + 999_999) / 1_000_000
}

// isEmpty says that a share has no packets, and is there for its rate or its rest.
func (s *share) isEmpty() bool { return s.home == 0 && s.set == nil }
