package index

// A queue waits for its own rate; a share waits for its rate, or rests. Each is looked at again
// when its moment comes. The shares of a queue stand in a heap by these moments, and the queue has
// one timer, for the first.

// wake is a share that is looked at again at a moment, in milliseconds of the steady clock.
type wake struct {
	at int64
	*share
}

// Before is the order of moments.
func (a *wake) Before(b *wake) bool { return a.at < b.at }

// Moved notes the place of the share among those that are looked at again.
func (a *wake) Moved(pos uint32) { a.share.wake = pos }

// wakeAt has Advance look at a share at a moment; at 0 it does not.
func (x *Index) wakeAt(u *queue, s *share, at int64) {
	sh := u.shares
	switch i := int(s.wake) - 1; {
	case i < 0 && at == 0, i >= 0 && sh.wakes[i].at == at:
		return
	case i < 0:
		sh.wakes.Push(wake{at, s})
	case at == 0:
		sh.wakes.Remove(i)
	default:
		sh.wakes.Set(i, wake{at, s})
	}
	x.scheduleWakes(u)
}

// openAt has Advance tell of a queue at a moment when its own rate lets takes pass; at 0 it does
// not.
func (x *Index) openAt(u *queue, at int64) {
	if u.rules.told != at {
		u.rules.told = at
		x.scheduleWakes(u)
	}
}

// wakeTimer marks a timer of a queue, in place of a delivery: its entry is the queue, and it is due
// with the first of what waits there.
const wakeTimer = ^uint32(0) - 2

// scheduleWakes brings the timer of a queue to the first of its moments.
func (x *Index) scheduleWakes(u *queue) {
	at := int64(0)
	if u.rules != nil {
		at = u.rules.told
	}
	if sh := u.shares; sh != nil && len(sh.wakes) > 0 && (at == 0 || sh.wakes[0].at < at) {
		at = sh.wakes[0].at
	}
	x.scheduleQueue(&u.wakeup, x.lanes.At(uint32(u.home)).queue, wakeTimer, steady, at)
}

// endWait follows the first moment of a queue, which has come.
func (x *Index) endWait(q QueueID) (e Event) {
	e.Kind, e.Packet.Queue = MayTake, q
	u := x.queues.At(uint32(q))
	sh := u.shares
	if r := u.rules; r != nil && r.told != 0 && (sh == nil || len(sh.wakes) == 0 || r.told <= sh.wakes[0].at) {
		x.openAt(u, 0)
		return e
	}
	s := sh.wakes[0].share
	x.wakeAt(u, s, 0)
	if s.rest != 0 && s.rest <= x.clock {
		e.Rested, e.HasRested = s.name, true
		own := sh.own[s.name]
		own.Rest = 0
		sh.keepOwn(s.name, own)
		x.setOwn(u, s, own)
	}
	if s.isEmpty() && s.num != 0 {
		x.leaveShare(u, s)
		return e
	}
	x.followLimits(u, s)
	return e
}
