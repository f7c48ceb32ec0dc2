package content

import (
	"cmp"
	"encoding/binary"
	"strconv"

	"github.com/cespare/xxhash/v2"
)

// PacketID is a packet's place in the order of delivery and its identity on disk. No two packets of
// a store have the same queue and sequence, whatever their priority.
type PacketID struct {
	Queue    uint32
	Priority uint32 // 1 is best, 0 is never selected
	Seq      uint64 // of equal priority the higher is newer
}

// Compare orders identities as their keys are ordered on disk. It returns -1, 0 or 1.
func (id PacketID) Compare(other PacketID) int {
	return cmp.Or(cmp.Compare(id.Queue, other.Queue), cmp.Compare(id.Priority, other.Priority), cmp.Compare(id.Seq, other.Seq))
}

// Tag is one name and value that a consumer may select by.
type Tag struct{ Name, Value string }

// String names the packet as every error and finding does: queue, priority and sequence in digits,
// with slashes between.
func (id PacketID) String() string {
	b := strconv.AppendUint(make([]byte, 0, 42), uint64(id.Queue), 10)
	b = strconv.AppendUint(append(b, '/'), uint64(id.Priority), 10)
	return string(strconv.AppendUint(append(b, '/'), id.Seq, 10))
}

// Packet holds what a record says. Times are Unix milliseconds, 0 is none.
type Packet struct {
	Key        []byte // nil: no key; empty and not nil: the empty key
	Payload    []byte
	Expiry     int64
	NotBefore  int64
	EnqueuedAt int64
	Tags       []Tag // sorted by name
	Attempts   uint32
	Producer   string
	Hash       uint64 // ValueHash of a large payload without a key; 0: unknown, and it is not written
	Identity   uint64 // what the packet is called wherever it goes; 0: its sequence
	Lease      int64  // of a claim that asks for none, in milliseconds; 0: as the queue says
	Meta       []byte // what was pushed beside the payload; empty: nothing
	// Unique is the client's own id of a unique push; empty: none. It is not in the record of the
	// packet, but has one of its own.
	Unique     []byte
	UntilClaim bool // as of Unique
}

// Meta is a Packet without its payload and producer: what an index needs.
type Meta struct {
	Expiry     int64
	NotBefore  int64
	EnqueuedAt int64
	Key        []byte // nil: no key
	Tags       []Tag
	Attempts   uint32
	Size       uint32 // len(key) + len(payload)
	Hash       uint64 // ValueHash of the payload of a packet without a key; 0: unknown
	Large      bool   // the payload has a record of its own
	Identity   uint64 // as of Packet
	Beside     uint32 // bytes of what was pushed beside the payload
	Extra      uint32 // about the bytes of what there is besides these and the payload: see ExtraBytes
}

// ExtraBytes is about what the tags of a packet, its producer, its lease and its id of a unique
// push take in a record, and not less. A Meta counts what a later version wrote, too.
func ExtraBytes(p *Packet) int {
	const tagOverhead, uniqueOverhead, leaseBytes = 10, 6, 10
	n := len(p.Producer)
	if len(p.Unique) > 0 {
		n += uniqueOverhead + len(p.Unique)
	}
	if p.Lease != 0 {
		n += leaseBytes
	}
	for i := range p.Tags {
		n += tagOverhead + len(p.Tags[i].Name) + len(p.Tags[i].Value)
	}
	return n
}

// MaxNarrow is the longest key or payload of a narrow packet: the most that a length of 16 bits can
// say. Any other packet is wide.
const MaxNarrow = 0xffff

// IsWide reports whether a packet is wide, by the lengths of its key and payload.
func IsWide(key, payload int) bool { return key > MaxNarrow || payload > MaxNarrow }

// Wide reports whether the packet is wide.
func (m *Meta) Wide() bool { return IsWide(len(m.Key), int(m.Size)-len(m.Key)) }

// Expired reports whether the packet's time has passed at now, in Unix milliseconds: it lives up to
// its expiry, and not at it.
func (p *Packet) Expired(now int64) bool { return p.Expiry != 0 && p.Expiry <= now }

// Expired reports what Packet.Expired does.
func (m *Meta) Expired(now int64) bool { return m.Expiry != 0 && m.Expiry <= now }

// SetHash is one packet's share of Control.Hash, which is the sum, modulo 2^64, over the live
// packets without expiry. A sum forgets the order, so adding and taking away need no other state.
func SetHash(id PacketID) uint64 {
	var b [16]byte
	binary.BigEndian.PutUint32(b[0:], id.Queue)
	binary.BigEndian.PutUint32(b[4:], id.Priority)
	binary.BigEndian.PutUint64(b[8:], id.Seq)
	return xxhash.Sum64(b[:])
}
