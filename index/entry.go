package index

import "github.com/holdfast-queue/holdfast/index/tree"

// ID is the number of a packet in an [Index] while the packet is held; 0 is none. The numbers of
// packets that are gone are used again.
type ID uint32

// State is what a packet waits for. The zero value is not a state of a packet.
type State uint8

const (
	Ready   State = iota + 1 // for a consumer
	Delayed                  // for its not-before time
	Claimed                  // for its consumer's answer or the end of the lease
	Dead                     // for somebody to look at it: it was tried too often
	Done                     // for its expiry: a consumer has acknowledged it
	Damaged                  // for the next start: its record cannot be read
)

// String returns the name of the state.
func (s State) String() string {
	switch s {
	case Ready:
		return "ready"
	case Delayed:
		return "delayed"
	case Claimed:
		return "claimed"
	case Dead:
		return "dead"
	case Done:
		return "done"
	case Damaged:
		return "damaged"
	}
	return "none"
}

// Entry is what Push needs to know about a packet.
type Entry struct {
	Queue    QueueID
	Tags     []byte // what a Filter sees; equal sets must be equal bytes. Copied
	Wide     bool   // only a consumer of wide packets takes it, see Selection.Fits16
	Priority uint32 // 1 is best; 0 is never selected
	Seq      uint64 // unique among the queue's packets of equal priority; higher is newer
	Key      []byte // nil: no group; empty: a key like any other. Copied
	Hash     uint64 // of the value, for FindValue; 0: unknown. A packet with a key keeps none
	Size     uint32 // counted in Counts.Bytes and Limit.Bytes
	TagBytes uint32 // of tags and texts beyond Size, counted in Limit.Bytes; Packet says how it is kept
	Flags    uint8  // the caller's own
	// Identity is the packet's own number, which it keeps wherever it goes; 0: it is Seq. No two
	// packets of an index have the same.
	Identity uint64
	Unique   []byte // the client's own id, see Holder; empty: none. Copied
	// UntilClaim: the caller frees the id with the first claim. The index only keeps this.
	UntilClaim bool
	Expiry     int64 // Unix milliseconds, 0 for none
	// State is what the packet waits for. Zero stands for Ready. A Ready packet whose Until is in
	// the future is Delayed.
	State    State
	Until    int64 // as of SetState; 0 for none
	Delivery Delivery
	Ref      uint32 // the caller's own; SetRef changes it
}

// Packet is a copy of what the index holds about a packet.
type Packet struct {
	ID       ID
	Queue    QueueID
	Share    uint32 // its number, see Place; 0 for the empty one
	Lane     LaneID
	Priority uint32
	Seq      uint64
	Identity uint64
	Expiry   int64 // Unix milliseconds, 0 for none
	Until    int64 // of the state, as of SetState; 0 for none
	Size     uint32
	TagBytes uint32 // at least Entry.TagBytes, and at most half as much again, or 64
	Flags    uint8
	State    State
	Stored   uint8  // as of Delivery
	Consumer uint32 // as of Delivery
	Ref      uint32

	HasUnique  bool // it has an id, see Unique
	UntilClaim bool // as of Entry, of one that has an id
}

// entry is one packet. Its state is 0 while the slot is free.
type entry struct {
	seq        [2]uint32 // low and high half: keeps the record at 44 bytes of alignment 4
	priority   uint32
	lane       LaneID
	group      uint32 // 0: none
	next, prev uint32 // ring of the group, see groups.go, or hash, see values.go; next links free slots
	timer      uint32 // 0: none
	size       uint32
	ref        uint32
	state      State
	flags      uint8
	rare       rareFields
	tagBytes   uint8
}

// rareFields says what few packets have: it is kept elsewhere.
type rareFields uint8

const (
	rareIdentity rareFields = 1 << iota // it is not the sequence, see identities.go
	rareUnique                          // see uniques.go
	rareUntilClaim
	rareGives // see strict.go
	rareHolds
)

// packTagBytes keeps bytes beyond the size of a packet in one byte, rounded up to 64, 96, 128, 192,
// …: so they cost no memory. What is too much for it, over 3 GiB, is kept as the most.
func packTagBytes(n uint32) (packed uint8) {
	for packed < maxTagBytes && unpackTagBytes(packed) < n {
		packed++
	}
	return packed
}

// unpackTagBytes returns what packTagBytes has kept.
func unpackTagBytes(packed uint8) uint32 {
	if packed == 0 {
		return 0
	}
	return uint32(2+(packed-1)&1) << (5 + (packed-1)/2)
}

const maxTagBytes = 52

// weight returns the bytes that the packet counts as in Limit.Bytes.
func (e *entry) weight() int64 { return int64(e.size) + int64(unpackTagBytes(e.tagBytes)) }

func (e *entry) FreeLink() *uint32 { return &e.next }

func (e *entry) seqNumber() uint64 { return uint64(e.seq[1])<<32 | uint64(e.seq[0]) }

func (e *entry) setSeq(seq uint64) { e.seq = [2]uint32{uint32(seq), uint32(seq >> 32)} }

// place is the packet's place in the tree of its lane.
func (e *entry) place() tree.Place { return tree.Place{Priority: e.priority, Seq: e.seqNumber()} }

// rank is the packet's place among the members of its group. It is like place, but priority 0
// comes after all others.
func (e *entry) rank() tree.Place { return tree.Place{Priority: e.priority - 1, Seq: e.seqNumber()} }

// selectable reports whether the packet is in the tree of its lane.
func (e *entry) selectable() bool { return e.state == Ready && e.priority != 0 }
