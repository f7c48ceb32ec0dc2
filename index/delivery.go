package index

// Delivery is what was tried with a packet. The zero value says: nothing. It stays with the packet
// when that changes its state, its queue or its place.
type Delivery struct {
	Token                 uint64 // of the last claim, 0: there was none
	FirstClaim, LastClaim int64  // Unix milliseconds
	Consumer              uint32 // of the last claim: the caller's own number
	Origin                uint32 // where the packet died and was moved from: the caller's own number
	Attempts              uint16 // claims so far
	Stored                uint8  // the caller's own: which records of it the store has
}

// Delivery returns what was tried with a packet; the zero value when that is nothing, or the number
// is not in use.
func (x *Index) Delivery(id ID) Delivery { panic("not built") }

// SetDelivery notes what was tried with a packet; the zero value forgets it. False when the number
// is not in use.
func (x *Index) SetDelivery(id ID, d Delivery) bool { panic("not built") }

// SetState gives a packet another state and the moment that ends it: a Delayed packet's not-before
// in Unix milliseconds, a Claimed one's lease end on the steady clock; 0 or less: none. The packet
// keeps its place in the order. False when the number is not in use.
func (x *Index) SetState(id ID, s State, until int64) bool { panic("not built") }

// Find returns the packet with an identity, in any state and any queue. The first call builds a
// table of all packets, which is kept up to date from then on, until no packet is left. O(1).
func (x *Index) Find(identity uint64) (Packet, bool) { panic("not built") }

// Place is a packet's place in the order of a queue.
type Place struct {
	Priority uint32
	Seq      uint64
}

// List appends to dst the packets of a queue that are in one state, in the order of their places,
// oldest first: at most n, and only those behind a place; the zero Place is before all. Ready lists
// those of priority 0, too. O(lanes + n log n).
func (x *Index) List(q QueueID, s State, after Place, n int, dst []Packet) []Packet {
	panic("not built")
}

// CountBetween is how many selectable packets of a queue have a priority from one to another, both
// included. It costs a leaf for each 31 of them at most.
func (x *Index) CountBetween(q QueueID, from, to uint32) int { panic("not built") }

// Before is how many selectable packets the oldest end takes before this one; -1 when it is not
// selectable or the number is not in use. It costs what Position does.
func (x *Index) Before(id ID) int { panic("not built") }
