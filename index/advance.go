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

// Wait is how many milliseconds from now on Advance has nothing to do, 0 or less if it has; false
// when nothing is ever due. now is in Unix milliseconds. steady is the same moment on a clock that
// never jumps: leases end by it, and everything else by now.
func (x *Index) Wait(now, steady int64) (wait int64, ok bool) { panic("not built") }

// Due returns the packet that the next Advance changes, as it is before; false when nothing is due.
func (x *Index) Due(now, steady int64) (Packet, bool) { panic("not built") }

// Advance makes the change that is due first at a moment (see Wait, inclusive); false when nothing
// is due. A change is final: a later call with an earlier moment does not undo it. Call it until
// nothing is due before a packet is selected.
func (x *Index) Advance(now, steady int64) (Event, bool) { panic("not built") }
