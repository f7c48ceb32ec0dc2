package storage

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cespare/xxhash/v2"
)

// Tally is what the control record counts and a scan must reproduce: the packets without expiry,
// all heads, fields and ids of unique pushes, and all delivery states. Packets with an expiry come
// and go by the clock, so they are not counted.
type Tally struct {
	Live uint64 // how many packets there are
	Hash uint64 // sum of SetHash over them, modulo 2^64

	Keys    uint64 // how many heads, fields and ids of unique pushes there are
	KeyHash uint64 // sum of their hashes, modulo 2^64

	Deliveries   uint64 // how many delivery states there are
	DeliveryHash uint64 // sum over them of the xxhash64 of their identity, modulo 2^64
}

// AddDelivery counts a delivery state.
func (t *Tally) AddDelivery(identity uint64) {
	t.Deliveries++
	t.DeliveryHash += deliveryHash(identity)
}

// counted is what an entry of a batch counts as.
type counted uint8

const (
	uncounted counted = iota
	countedPacket
	countedKey
	countedDelivery
)

// count adds one with a hash, or takes it away where sign is -1.
func (t *Tally) count(c counted, sign int, hash uint64) {
	n := uint64(sign) // modulo 2^64
	switch c {
	case countedPacket:
		t.Live, t.Hash = t.Live+n, t.Hash+n*hash
	case countedKey:
		t.Keys, t.KeyHash = t.Keys+n, t.KeyHash+n*hash
	case countedDelivery:
		t.Deliveries, t.DeliveryHash = t.Deliveries+n, t.DeliveryHash+n*hash
	}
}

func deliveryHash(identity uint64) uint64 {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], identity)
	return xxhash.Sum64(b[:])
}

// AddItem counts a head or a field.
func (t *Tally) AddItem(v ValueID, version uint64) {
	t.Keys++
	t.KeyHash += ItemHash(v, version)
}

// Add counts a packet; expiry is that of its record, 0 for none.
func (t *Tally) Add(id PacketID, expiry int64) {
	if expiry == 0 {
		t.Live++
		t.Hash += SetHash(id)
	}
}

// Merge adds what another tally counts.
func (t *Tally) Merge(other Tally) {
	t.Live += other.Live
	t.Hash += other.Hash
	t.Keys += other.Keys
	t.KeyHash += other.KeyHash
	t.Deliveries += other.Deliveries
	t.DeliveryHash += other.DeliveryHash
}

// Check compares the packets of a scan with those of this tally, of the control record. It returns
// a *MismatchError when they differ. unread is how many records the scan could not read: each of
// them may be a packet without expiry, so only what they cannot explain is a difference.
func (t Tally) Check(scan Tally, unread uint64) error {
	return checkCounts(MismatchError{Want: t.Live, Got: scan.Live, WantHash: t.Hash, GotHash: scan.Hash, Unread: unread})
}

// CheckKeys does the same for heads and fields.
func (t Tally) CheckKeys(scan Tally, unread uint64) error {
	return checkCounts(MismatchError{Keys: true, Want: t.Keys, Got: scan.Keys, WantHash: t.KeyHash, GotHash: scan.KeyHash, Unread: unread})
}

// CheckDeliveries does the same for delivery states.
func (t Tally) CheckDeliveries(scan Tally, unread uint64) error {
	return checkCounts(MismatchError{Deliveries: true, Want: t.Deliveries, Got: scan.Deliveries,
		WantHash: t.DeliveryHash, GotHash: scan.DeliveryHash, Unread: unread})
}

// checkAll makes the three comparisons of a scan that read everything.
func (t Tally) checkAll(scan Tally) error {
	return errors.Join(t.Check(scan, 0), t.CheckKeys(scan, 0), t.CheckDeliveries(scan, 0))
}

func checkCounts(e MismatchError) error {
	fits := e.Want == e.Got && e.WantHash == e.GotHash
	if e.Unread > 0 {
		fits = e.Got <= e.Want && e.Want-e.Got <= e.Unread
	}
	if fits {
		return nil
	}
	return &e
}

// MismatchError reports that a scan did not reproduce the control record: a packet, a string, a
// field of a hash or a delivery state was lost or came back.
type MismatchError struct {
	Keys              bool   // it is about heads and fields, and not packets
	Deliveries        bool   // it is about delivery states
	Want, Got         uint64 // how many
	WantHash, GotHash uint64
	Unread            uint64 // records that the scan could not read
}

// CameBack reports whether there are packets, keys or delivery states that the control record does
// not count. If not, some are missing.
func (e *MismatchError) CameBack() bool { return e.Got > e.Want }

// Finding returns the mismatch as a finding.
func (e *MismatchError) Finding() Finding {
	kind := FindingLost
	if e.CameBack() {
		kind = FindingResurrected
	}
	what, _ := e.about()
	return Finding{Kind: kind, Key: what, What: e.Error()}
}

// about returns what is counted, and which of it.
func (e *MismatchError) about() (what, which string) {
	switch {
	case e.Keys:
		return "keys", ""
	case e.Deliveries:
		return "delivery states", ""
	}
	return "packets", " without expiry"
}

// Error says what was expected and what was found.
func (e *MismatchError) Error() string {
	what, which := e.about()
	if e.Got == e.Want {
		return fmt.Sprintf("%s are not the ones written: the control record and the scan both count %d%s, "+
			"but the set hash is %016x instead of %016x", what, e.Got, which, e.GotHash, e.WantHash)
	}
	how, unread := "are missing", ""
	if e.CameBack() {
		how = "came back"
	}
	if e.Unread > 0 {
		unread = fmt.Sprintf("; records that cannot be read: %d", e.Unread)
	}
	return fmt.Sprintf("%s %s: the control record counts %d%s, the scan found %d%s", what, how, e.Want, which, e.Got, unread)
}

// Unwrap makes a mismatch an ErrLoss.
func (e *MismatchError) Unwrap() error { return ErrLoss }
