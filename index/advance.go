package index

// EventKind says what happened to a packet when its moment came.
type EventKind uint8

const (
	Expired    EventKind = iota + 1 // the packet is gone
	Due                             // Delayed → Ready
	LeaseEnded                      // Claimed → Ready, at its own place in the order
)

// Event is one change that Advance made. Packet is the packet after the change. If it expired,
// Packet is as it was before, and its ID is free already.
type Event struct {
	Kind   EventKind
	Packet Packet
}

// Deadline is the earliest moment (Unix milliseconds) at which Advance has something to do; false
// when there is none.
func (x *Index) Deadline() (int64, bool) {
	when, _, ok := x.timers.next()
	return when, ok
}

// Advance makes the changes that are due at now (Unix milliseconds, inclusive), earliest first, at
// most max of them, and appends them to dst. When it made max changes there may be more: call it
// again before a packet is selected.
//
// A change is final: a later call with an earlier now does not undo it.
func (x *Index) Advance(now int64, max int, dst []Event) []Event {
	for ; max > 0; max-- {
		when, id, ok := x.timers.next()
		if !ok || when > now {
			break
		}
		e := x.entries.at(id)
		expiry := join64(x.timers.at(e.timer).expiry)
		ev := Event{Kind: Due, Packet: x.packet(id, e)}
		switch {
		case expiry != 0 && expiry <= now:
			ev.Kind = Expired
			x.remove(id, e)
		default:
			if e.state == Claimed {
				ev.Kind = LeaseEnded
			}
			x.setState(id, e, Ready, 0)
			ev.Packet.State = Ready
		}
		dst = append(dst, ev)
	}
	return dst
}
