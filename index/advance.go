package index

// EventKind is what a moment brought about.
type EventKind uint8

const (
	Expired    EventKind = iota + 1 // the packet is gone
	Due                             // Delayed → Ready
	LeaseEnded                      // Claimed → Ready, at its own place in the order
)

// String names the kind.
func (k EventKind) String() string {
	switch k {
	case Expired:
		return "expired"
	case Due:
		return "due"
	case LeaseEnded:
		return "lease ended"
	}
	return "none"
}

// Event is one change that Advance made. Packet is as it is afterwards or, if it expired, as it was before: its number
// is free then.
type Event struct {
	Kind   EventKind
	Packet Packet
}

// Deadline is the earliest moment (Unix ms) at which Advance has something to do; false when there is none.
func (x *Index) Deadline() (int64, bool) {
	when, _, ok := x.timers.next()
	return when, ok
}

// Advance does what is due at now (Unix ms, moments up to and including it), earliest first, at most max changes, and
// appends them to dst. When it made max changes there may be more: call it again before taking packets.
//
// A moment that has come stays come: a later call with an earlier now changes nothing back.
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
