package content

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cespare/xxhash/v2"
)

// Tally holds what the control record counts and a scan must reproduce: the packets without expiry,
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

// counted says what an entry of a batch counts as.
type counted uint8

const (
	uncounted counted = iota
	countedPacket
	countedKey
	countedDelivery
)

// of returns where something is counted. What counts nothing goes nowhere.
func (t *Tally) of(c counted) (n, hash *uint64) {
	switch c {
	case countedPacket:
		return &t.Live, &t.Hash
	case countedKey:
		return &t.Keys, &t.KeyHash
	case countedDelivery:
		return &t.Deliveries, &t.DeliveryHash
	}
	return new(uint64), new(uint64)
}

// count adds a hash times times, or takes it away where times is negative.
func (t *Tally) count(c counted, times int, hash uint64) {
	n, sum := t.of(c)
	*n += uint64(times) // modulo 2^64
	*sum += uint64(times) * hash
}

func deliveryHash(identity uint64) uint64 {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], identity)
	return xxhash.Sum64(b[:])
}

// Add counts a packet; expiry is as its record says, 0 for none.
func (t *Tally) Add(id PacketID, expiry int64) {
	if expiry == 0 {
		t.count(countedPacket, 1, SetHash(id))
	}
}

// AddItem counts a head or a field.
func (t *Tally) AddItem(v ValueID, version uint64) { t.count(countedKey, 1, ItemHash(v, version)) }

// AddUnique counts the record of a unique push among the keys.
func (t *Tally) AddUnique(id UniqueID) { t.count(countedKey, 1, UniqueHash(id)) }

// AddDelivery counts a delivery state.
func (t *Tally) AddDelivery(identity uint64) { t.count(countedDelivery, 1, deliveryHash(identity)) }

// Merge adds what another tally counts.
func (t *Tally) Merge(other Tally) {
	for c := countedPacket; c <= countedDelivery; c++ {
		n, sum := t.of(c)
		m, hash := other.of(c)
		*n, *sum = *n+*m, *sum+*hash
	}
}

// Check compares the packets of a scan with the packets of this tally, of the control record. It
// returns a *MismatchError when they differ. unread is how many records the scan could not read:
// each of them may be a packet without expiry, so only what they cannot explain is a difference.
func (t Tally) Check(scan Tally, unread uint64) error { return t.check(countedPacket, scan, unread) }

// CheckKeys does the same for heads, fields and ids of unique pushes.
func (t Tally) CheckKeys(scan Tally, unread uint64) error { return t.check(countedKey, scan, unread) }

// CheckDeliveries does the same for delivery states.
func (t Tally) CheckDeliveries(scan Tally, unread uint64) error {
	return t.check(countedDelivery, scan, unread)
}

// CheckAll makes the three comparisons of a scan that read everything.
func (t Tally) CheckAll(scan Tally) error {
	return errors.Join(t.Check(scan, 0), t.CheckKeys(scan, 0), t.CheckDeliveries(scan, 0))
}

func (t Tally) check(c counted, scan Tally, unread uint64) error {
	want, wantHash := t.of(c)
	got, gotHash := scan.of(c)
	fits := *want == *got && *wantHash == *gotHash
	if unread > 0 {
		fits = *got <= *want && *want-*got <= unread
	}
	if fits {
		return nil
	}
	return &MismatchError{c, *want, *got, *wantHash, *gotHash, unread}
}

// MismatchError reports that a scan did not reproduce the control record: a packet, a string, a
// field of a hash or a delivery state was lost or came back.
type MismatchError struct {
	counted           counted
	want, got         uint64 // how many
	wantHash, gotHash uint64
	unread            uint64 // records that the scan could not read
}

// CameBack reports whether there are packets, keys or delivery states that the control record does
// not count. If not, some are missing.
func (e *MismatchError) CameBack() bool { return e.got > e.want }

// What is counted, for people.
func (e *MismatchError) What() string {
	return [...]string{countedPacket: "packets", countedKey: "keys", countedDelivery: "delivery states"}[e.counted]
}

// Error says what was expected and what was found.
func (e *MismatchError) Error() string {
	which, how, unread := "", "are missing", ""
	if e.counted == countedPacket {
		which = " without expiry"
	}
	if e.got == e.want {
		return fmt.Sprintf("%s are not the ones written: the control record and the scan both count %d%s, "+
			"but the set hash is %016x instead of %016x", e.What(), e.got, which, e.gotHash, e.wantHash)
	}
	if e.CameBack() {
		how = "came back"
	}
	if e.unread > 0 {
		unread = fmt.Sprintf("; records that cannot be read: %d", e.unread)
	}
	return fmt.Sprintf("%s %s: the control record counts %d%s, the scan found %d%s", e.What(), how, e.want, which, e.got, unread)
}

// Unwrap makes a mismatch an ErrLoss.
func (e *MismatchError) Unwrap() error { return ErrLoss }

// PacketsOf returns what the entries of a batch change of the packets, of which each entry says
// whether it counts them. Of all else only who made the batch knows.
func PacketsOf(body [][]byte, count uint32) (t Tally, err error) {
	wrong := EachEntry(body, count, func(e Entry) {
		if !bytes.HasPrefix(e.Key, []byte(PacketPrefix)) || err != nil {
			return
		}
		var id PacketID
		if id, err = DecodePacketKey(e.Key); err != nil {
			return
		}
		if e.Kind == EntryOver || e.Kind == EntryDelete {
			t.count(countedPacket, -1, SetHash(id))
		}
		if !e.Kind.Deletes() && e.Expires == 0 {
			t.count(countedPacket, 1, SetHash(id))
		}
	})
	return t, cmp.Or(wrong, err)
}
