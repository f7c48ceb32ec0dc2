package storage

// DeliveryState is what a packet with a delivery state waits for.
type DeliveryState uint8

// The states.
const (
	Waiting DeliveryState = iota // for a consumer; with an Until, for that moment first
	Claimed                      // for its consumer, until the lease ends
	Dead                         // for somebody to look at it: it was tried too often
	Done                         // for its expiry: it was acknowledged
)

// Delivery is the delivery state of a packet: what was tried with it. It has a record of its own, so
// that an attempt does not rewrite the packet. The record is there as long as the packet, or a
// little longer: a start deletes what belongs to no packet any more.
type Delivery struct {
	Identity              uint64 // of the packet
	State                 DeliveryState
	Until                 int64 // lease end or not-before, Unix milliseconds; 0 is none
	Attempts              uint32
	Token                 uint64 // of the last claim, 0: there was none
	FirstClaim, LastClaim int64  // Unix milliseconds
	Consumer              string // of the last claim
	Origin                uint32 // the queue where the packet died and was moved from; 0: none
	Expiry                int64  // of the packet; 0 is none
}

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

// PutDelivery writes a delivery state, copying all it needs of d. stored says what the store had of
// it before this call. Within one batch the last call for an identity wins, and a state that comes
// and goes in one batch leaves nothing to write.
func (b *Batch) PutDelivery(d *Delivery, stored Stored) { panic("not built") }

// PutNote writes a note, which is copied; an empty one is deleted. stored as for PutDelivery.
func (b *Batch) PutNote(id NoteID, text []byte, stored Stored) { panic("not built") }

// DeleteDelivery deletes a delivery state and its notes: those that stored names. It is for a packet
// whose Put is cancelled. Of one that is deleted, Removed says the same.
func (b *Batch) DeleteDelivery(identity uint64, stored Stored) { panic("not built") }

// Note returns the text of a note that the batch puts, valid until Reset; ok is false if it puts
// none.
func (b *Batch) Note(id NoteID) (text []byte, ok bool) { panic("not built") }

// Deliveries calls fn for every delivery state on disk, in order of identity; valid during the call.
// stored says which records there are. It stops at the first error of fn.
func (s *Store) Deliveries(fn func(d *Delivery, stored Stored) error) error { panic("not built") }

// ReadNotes calls fn with the text of each note, nil where there is none. The bytes are valid during
// the call only.
func (s *Store) ReadNotes(ids []NoteID, fn func(i int, text []byte) error) error { panic("not built") }

// AppendChanged appends the full record rec with another expiry and identity to dst: what a packet
// has that is kept for a while, or that moves. A zero identity stands for the sequence.
func AppendChanged(dst, rec []byte, expiry int64, identity uint64) ([]byte, error) {
	panic("not built")
}
