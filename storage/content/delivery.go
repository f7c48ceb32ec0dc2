package content

import (
	"fmt"
)

// State is what a packet waits for. They have the numbers of index.State, and are stored as they
// are.
type State uint8

// The states.
const (
	Ready   State = iota + 1 // for a consumer
	Delayed                  // for a moment, and then for a consumer
	Claimed                  // for its consumer, until the lease ends
	Dead                     // for somebody to look at it: it was tried too often
	Done                     // for its expiry: it was acknowledged
)

// Delivery is the delivery state of a packet: what was tried with it. It has a record of its own,
// so that an attempt does not rewrite the packet. The record is there as long as the packet, or a
// little longer: a start deletes what belongs to no packet any more.
type Delivery struct {
	Identity              uint64 // of the packet
	State                 State  // 0 stands for Ready
	Until                 int64  // lease end, not-before or death, Unix milliseconds; 0 is none
	Attempts              uint32
	Token                 uint64 // of the last claim, 0: there was none
	FirstClaim, LastClaim int64  // Unix milliseconds
	Consumer              string // of the last claim
	Origin                uint32 // the queue where the packet died and was moved from; 0: none
	Expiry                int64  // of the packet; 0 is none
	Cancelled             bool   // of a claimed packet: it goes when its claim ends
	Rest                  Rest

	// The notes, which are records of their own. Empty: there is none, or it was not asked for.
	Reason, Progress string
}

// Leased reports whether somebody holds a packet that is in a state until a moment.
func (s State) Leased(until, now int64) bool { return s == Claimed && (until == 0 || until > now) }

// Leased reports whether somebody holds the packet. d may be nil.
func (d *Delivery) Leased(now int64) bool { return d != nil && d.State.Leased(d.Until, now) }

// NoteKind says what a note is about.
type NoteKind uint8

// The kinds.
const (
	NoteReason   NoteKind = 1 // why the packet came back or died, the last time
	NoteProgress NoteKind = 2 // how far the consumer has come: percent in a byte, and text
)

// NoteID names a note: a text that goes with a delivery state and is kept on disk only.
type NoteID struct {
	Identity uint64
	Kind     NoteKind
}

// Stored says which records of a packet's delivery state the store has, or the open batch puts. It
// is a set of the bits below.
type Stored uint8

// The records.
const (
	StoredDelivery Stored = 1 << iota
	StoredReason
	StoredProgress
)

// StoredAll is all of them.
const StoredAll = StoredDelivery | StoredReason | StoredProgress

// stateKinds is how many records a delivery state has: itself, which is kind 0, and its notes. The
// bit of a kind in Stored is 1 << kind.
const stateKinds = 3

// String names the note, or the delivery state where the kind is 0, as every error and finding
// does.
func (id NoteID) String() string {
	if id.Kind == 0 {
		return fmt.Sprintf("the delivery state of %d", id.Identity)
	}
	return fmt.Sprintf("note %d of %d", id.Kind, id.Identity)
}

// The record of a delivery state is one msgpack map with small integers for names, in rising order.
// A field without a value is left out. It is written by hand, like a packet's record, because each
// claim writes one.
const (
	stateUntil      = 2
	stateAttempts   = 3
	stateToken      = 4
	stateFirstClaim = 5
	stateLastClaim  = 6
	stateConsumer   = 7
	stateOrigin     = 8
	stateExpiry     = 9
	stateState      = 10
	stateCancelled  = 11
)

// AppendDelivery appends the record of d; the identity is in the key.
func AppendDelivery(dst []byte, d *Delivery) []byte {
	w := newWriter(dst)
	w.int(stateUntil, d.Until)
	w.uint(stateAttempts, uint64(d.Attempts))
	w.uint(stateToken, d.Token)
	w.int(stateFirstClaim, d.FirstClaim)
	w.int(stateLastClaim, d.LastClaim)
	w.str(stateConsumer, d.Consumer)
	w.uint(stateOrigin, uint64(d.Origin))
	w.int(stateExpiry, d.Expiry)
	w.uint(stateState, uint64(max(d.State, Ready)))
	if d.Cancelled {
		w.b = appendBool(w.field(stateCancelled), true)
	}
	w.rest(d.Rest)
	return w.end()
}

// DecodeDelivery reads a record into d, replacing all of it. A consumer that is the same as before
// is kept, so a loop takes no memory. The error wraps ErrRecord; d is then undefined.
func DecodeDelivery(rec []byte, identity uint64, d *Delivery) error {
	before := d.Consumer
	*d = Delivery{Identity: identity, State: Ready}
	r := reader{b: rec}
	for r.next() {
		switch r.field {
		case stateState:
			v := r.uint()
			r.check(uint64(Ready) <= v && v <= uint64(Done))
			d.State = State(v)
		case stateUntil:
			d.Until = r.int()
		case stateAttempts:
			d.Attempts = r.uint32()
		case stateToken:
			d.Token = r.uint()
		case stateFirstClaim:
			d.FirstClaim = r.int()
		case stateLastClaim:
			d.LastClaim = r.int()
		case stateConsumer:
			if name := r.str(); string(name) == before {
				d.Consumer = before
			} else {
				d.Consumer = string(name)
			}
		case stateOrigin:
			d.Origin = r.uint32()
		case stateExpiry:
			d.Expiry = r.int()
		case stateCancelled:
			d.Cancelled = r.bool()
		default:
			r.keep(&d.Rest)
		}
	}
	return r.err()
}
