package index

import "math"

// A rate is a meter (GCRA): it says when the next take is due. Each take moves that one gap on, at
// the earliest from now. So takes are spread evenly, with a burst on top. All takes are charged,
// also those of a whole group, and a meter without a gap passes all. Times are in nanoseconds, on
// the clock of SetClock.

// slack is how much a take may be early, in nanoseconds. The clock has whole milliseconds: without
// it each take would be late by a part of one, and so all behind it.
const slack = 10_000_000

// rate is what meters have in common.
type rate struct {
	gap   int64 // between takes; 0: none
	burst int64 // takes at once, 1 at least
}

// rateOf returns a rate whose sums cannot overflow.
func rateOf(gap, burst int64) rate {
	if burst = max(1, burst); gap > 0 {
		burst = min(burst, latest/2/gap)
	}
	return rate{gap, burst}
}

// latest is the latest moment of a meter: after a century.
const latest = 1 << 62

// meter is when the next take is due, without the burst. Its zero value is at rest.
type meter struct {
	due int64
	gap int64 // of the rate that due goes by; 0: any
}

// opensAt is a meter whose burst is spent: it lets one pass at a moment, and no other before.
func opensAt(at int64, r rate) meter { return meter{due: at + (r.burst-1)*r.gap + slack, gap: r.gap} }

// TakeDue is when the next take of a slow rate is due, without the burst.
type TakeDue struct {
	At  int64 // in milliseconds of the steady clock; 0: at rest
	Gap int64 // nanoseconds between takes of the rate that it goes by
}

// slowGap is how far apart takes are of a rate that is slow, in nanoseconds: a start knows of it.
const slowGap = 10_000_000_000

// dueBy is when the next take is due by a rate that may have changed: as many takes are ahead.
func (m *meter) dueBy(r rate, now int64) int64 {
	if m.due <= now || m.gap == 0 || m.gap == r.gap {
		return m.due
	}
	return now + int64(min(latest/2, float64(m.due-now)/float64(m.gap)*float64(r.gap)))
}

// passes is how many takes a meter lets pass now.
func (m *meter) passes(r rate, now int64) int {
	if r.gap == 0 {
		return math.MaxInt
	}
	left := now + (r.burst-1)*r.gap + slack - max(m.dueBy(r, now), now)
	if left < 0 {
		return 0
	}
	return int(left/r.gap) + 1
}

// charge counts n takes.
func (m *meter) charge(r rate, now, n int64) {
	if r.gap != 0 {
		m.due, m.gap = max(m.dueBy(r, now), now), r.gap
		m.due += min((latest-m.due)/r.gap, n) * r.gap
	}
}

// open is when a meter that lets nothing pass does so, in milliseconds.
func (m *meter) open(r rate, now int64) int64 {
	return max(1, (m.dueBy(r, now)-(r.burst-1)*r.gap-slack+999_999)/1_000_000)
}

// follow lets a meter obey another rate: who was to wait for long waits no longer than that says.
// The burst may be another, too. slow says that its due is another, and was of a slow rate or is.
func (m *meter) follow(r rate, now int64, burst bool) (slow bool) {
	if m.gap == r.gap && !burst {
		return false
	}
	slow = m.due > now && max(m.gap, r.gap) >= slowGap
	m.due, m.gap = min(m.dueBy(r, now), now+r.burst*r.gap), r.gap
	return slow
}

// followRate has the meter of a share follow its rate.
func (x *Index) followRate(u *queue, s *share, burst bool) {
	if s.meter.follow(u.rate(s), x.clock, burst) && s.gap > 0 {
		x.note(u, s)
	}
}

// begin lets a meter begin after a start. at is when somebody may have taken last, in milliseconds.
func (m *meter) begin(r rate, d TakeDue, at int64) {
	switch {
	case d.At > 0:
		m.due, m.gap = d.At*1_000_000, d.Gap
	case r.gap < slowGap: // nobody knows what was taken before, and it may have been early
		m.due, m.gap = at*1_000_000+r.burst*r.gap+slack, r.gap
	}
}

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
	case s != nil && s.gap > 0:
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
	for _, c := range x.charged {
		var u *queue
		if x.hasQueue(c.queue) {
			u = x.queues.At(uint32(c.queue))
		}
		switch {
		case c.of == OfShare:
			c.share.charged = false
			if u != nil && u.shares.at(c.share.num) == c.share && c.share.gap > 0 && u.shares.rule != nil { // else it is gone, or its rate
				fn(c.queue, OfShare, c.share.name, c.share.meter.keep(u.rate(c.share), x.clock))
			}
		case u == nil:
		case c.of == OfQueue:
			d := TakeDue{}
			if r := u.rules; r != nil {
				r.charged, d = false, r.meter.keep(r.rate(), x.clock)
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
	if r := u.rules; r != nil && r.meter.due > x.clock {
		if r.opens == 0 {
			x.openAt(u, r.meter.end())
		}
		return true
	}
	sh := u.shares
	if sh == nil {
		return false
	}
	empty := sh.all[0]
	until := max(empty.meter.due, sh.begins.due)
	if until > x.clock && empty.wake == 0 {
		x.wakeAt(u, empty, (until+999_999)/1_000_000)
	}
	return until > x.clock || len(sh.all)-len(sh.free) > 1
}

// end is when a meter is at rest, in milliseconds.
func (m *meter) end() int64 { return (m.due + 999_999) / 1_000_000 }

// DueOf is when the next take of a queue is due by its own rate, fast ones too.
func (x *Index) DueOf(q QueueID) (d TakeDue) {
	if r := x.queues.At(uint32(q)).rules; r != nil && r.meter.due > x.clock {
		d = TakeDue{r.meter.end(), r.meter.gap}
	}
	return d
}

// GoOn lets the rate of a queue go on where that of another one was.
func (x *Index) GoOn(q QueueID, d TakeDue) {
	u := x.queues.At(uint32(q))
	if r := u.rules; r != nil && d.At > 0 {
		r.meter.due, r.meter.gap = d.At*1_000_000, d.Gap
		if x.limitQueue(u, false); r.Gap >= slowGap {
			x.note(u, nil)
		}
	}
}

// keep is what is to be kept of a meter.
func (m *meter) keep(r rate, now int64) TakeDue {
	if m.due <= now || r.gap < slowGap {
		return TakeDue{}
	}
	return TakeDue{m.end(), m.gap}
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
		gap = u.rules.rate().gap
	}
	if s != nil {
		gap = max(gap, u.rate(s).gap)
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
		if r.meter.charge(r.rate(), x.clock, n); r.meter.passes(r.rate(), x.clock) == 0 {
			x.openAt(u, r.meter.open(r.rate(), x.clock))
		}
		if r.Gap >= slowGap {
			x.note(u, nil)
		}
	}
	if s == nil || u.rate(s).gap == 0 {
		return
	}
	if s.meter.charge(u.rate(s), x.clock, n); u.rate(s).gap >= slowGap {
		x.note(u, s)
	}
	x.followLimits(u, s)
}

// passes is how many takes a share lets pass now, by a meter.
func (x *Index) passes(u *queue, s *share, m *meter) int {
	if s.rest > x.clock || x.isCrowded(u, s) {
		return 0
	}
	return m.passes(u.rate(s), x.clock)
}

// isCrowded says that a take from a share might make it one more than may rest.
func (x *Index) isCrowded(u *queue, s *share) bool {
	return u.shares.resting >= x.mostResting && s.num != 0 && u.rate(s).gap > 0 && s.unfinished <= s.claimed+1
}

// opens is when the rest of a share ends, or else its meter lets takes pass, in milliseconds.
func (u *queue) opens(s *share, now int64) int64 {
	switch {
	case s.rest != 0:
		return s.rest / 1_000_000
	case s.meter.passes(u.rate(s), now) == 0:
		return s.meter.open(u.rate(s), now)
	}
	return now/1_000_000 + crowdedWait
}

// crowdedWait is after how many milliseconds a share that isCrowded is looked at again.
const crowdedWait = 60_000

// MaxResting is how many shares of a queue may stay without packets for their meters. A take that
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
	if until == 0 && u.rate(s).gap != 0 && s.meter.due > x.clock {
		until = max(1, s.meter.due)
	}
	if u.shares.rule == nil {
		return 0
	}
	return (until + 999_999) / 1_000_000
}

// isEmpty says that a share has no packets, and is there for its meter.
func (s *share) isEmpty() bool { return s.home == 0 && s.set == nil }
