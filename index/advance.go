package index

// EventKind says what happened to a packet when its moment came.
type EventKind uint8

const (
	Expired     EventKind = iota + 1 // the packet is gone: its expiry came, or it was Dead for long enough
	Due                              // Delayed → Ready
	LeaseEnded                       // Claimed → Ready, at its own place in the order
	WindowEnded                      // the window of a unique push is over
	Alarm                            // the moment that SetAlarm has set
	MayTake                          // a rate, or a rest, lets packets be taken again
)

// Event is one change that Advance made. Packet is the packet after the change. If it expired,
// Packet is as it was before, and its ID is free already. Of a window it has the queue and the
// identity only, and of an alarm or a rate the queue.
type Event struct {
	Kind   EventKind
	Packet Packet
	Rested string // of MayTake: the share whose rest is over, if HasRested
	// HasRested says that it is not the rate alone that lets packets be taken.
	HasRested bool
}

// Wait is how many milliseconds from now on Advance has nothing to do, 0 or less if it has; false
// when nothing is ever due. now is in Unix milliseconds. steady is the same moment on a clock that
// never jumps: leases end by it, and everything else by now.
func (x *Index) Wait(now, steady int64) (wait int64, ok bool) {
	_, ago, ok := x.first(now, steady)
	return -ago, ok
}

// Advance makes the change that is due first at a moment (see Wait, inclusive); false when nothing
// is due. Of the timers on both clocks, the one that was due for longer comes first. A change is
// final: a later call with an earlier moment does not undo it. Call it until nothing is due before
// a packet is selected.
func (x *Index) Advance(now, steady int64) (Event, bool) {
	timer, ago, ok := x.first(now, steady)
	if !ok || ago < 0 {
		return Event{}, false
	}
	switch x.timers.At(timer).delivery {
	case windowTimer:
		q, identity := x.endWindow(timer)
		return Event{Kind: WindowEnded, Packet: Packet{Queue: q, Identity: identity}}, true
	case alarmTimer:
		q := QueueID(x.timers.At(timer).entry)
		x.SetAlarm(q, 0)
		return Event{Kind: Alarm, Packet: Packet{Queue: q}}, true
	case wakeTimer:
		return x.endWait(QueueID(x.timers.At(timer).entry)), true
	}
	return x.advance(x.timers.At(timer).entry, now), true
}

// AdvancePacket is Advance for one packet: false when nothing is due for it, or its number is not
// in use. O(log n).
func (x *Index) AdvancePacket(id ID, now, steady int64) (Event, bool) {
	e := x.entry(id)
	if e == nil || e.timer == 0 || !x.timers.isDue(e.timer, e.state.clock(), now, steady) {
		return Event{}, false
	}
	return x.advance(uint32(id), now), true
}

// AdvanceHolder is Advance for what holds an id, as Holder says: its window, or the packet. Once
// nothing is due for it Holder says who has the id at that moment.
func (x *Index) AdvanceHolder(q QueueID, unique []byte, now, steady int64) (Event, bool) {
	u := &x.uniques
	g := u.ids.find(q, unique)
	if g == 0 {
		return Event{}, false
	}
	if w := u.window(g); w != 0 && x.timers.isDue(w, wall, now, steady) {
		_, identity := x.endWindow(w)
		return Event{Kind: WindowEnded, Packet: Packet{Queue: q, Identity: identity}}, true
	}
	w := x.forest.WalkPriority(&u.tree, g, Newest)
	if w.Done() {
		return Event{}, false
	}
	_, id := w.At()
	return x.AdvancePacket(ID(id), now, steady)
}

// advance makes the change that is due for a packet.
func (x *Index) advance(id uint32, now int64) Event {
	e := x.entries.At(id)
	if expiry := join64(x.timers.At(e.timer).expiry); e.state == Dead || expiry != 0 && expiry <= now {
		ev := Event{Kind: Expired, Packet: x.packet(id, e)}
		x.remove(id, e)
		return ev
	}
	kind := Due
	if e.state == Claimed {
		kind = LeaseEnded
	}
	x.setState(id, e, Ready, 0)
	return Event{Kind: kind, Packet: x.packet(id, e)}
}

// first returns the timer whose moment comes first and how long ago that was, negative if it is
// still to come; false when nothing waits for a moment.
func (x *Index) first(now, steadyNow int64) (timer uint32, ago int64, ok bool) {
	for c, at := range [clocks]int64{wall: now, steady: steadyNow} {
		when, next, waits := x.timers.next(clock(c))
		if waits && (!ok || at-when > ago) {
			timer, ago, ok = next, at-when, true
		}
	}
	return timer, ago, ok
}
