package storage

import "fmt"

// Tally is what the control record counts and a scan must reproduce: the packets without expiry.
// Packets with one come and go by the clock, so they are not counted.
type Tally struct {
	Live uint64 // how many there are
	Hash uint64 // sum of SetHash over them, modulo 2^64
}

// Add counts a packet; expiry is that of its record, 0 for none.
func (t *Tally) Add(id PacketID, expiry int64) {
	if expiry == 0 {
		t.Live++
		t.Hash += SetHash(id)
	}
}

// Merge adds the packets of another tally.
func (t *Tally) Merge(other Tally) {
	t.Live += other.Live
	t.Hash += other.Hash
}

// Check compares the tally of a scan with this one, of the control record. It returns a
// *MismatchError when they differ. unread is how many records the scan could not read: each of
// them may be a packet without expiry, so only what they cannot explain is a difference.
func (t Tally) Check(scan Tally, unread uint64) error {
	fits := t == scan
	if unread > 0 {
		fits = scan.Live <= t.Live && t.Live-scan.Live <= unread
	}
	if fits {
		return nil
	}
	return &MismatchError{Want: t, Got: scan, Unread: unread}
}

// MismatchError reports that a scan did not reproduce the control record: a packet was lost or
// came back.
type MismatchError struct {
	Want, Got Tally
	Unread    uint64 // records that the scan could not read
}

// CameBack reports whether there are packets that the control record does not count. If not, some
// are missing.
func (e *MismatchError) CameBack() bool { return e.Got.Live > e.Want.Live }

// Finding returns the mismatch as a finding.
func (e *MismatchError) Finding() Finding {
	kind := FindingLost
	if e.CameBack() {
		kind = FindingResurrected
	}
	return Finding{Kind: kind, Key: "packets", What: e.Error()}
}

// Error says what was expected and what was found.
func (e *MismatchError) Error() string {
	if e.Got.Live == e.Want.Live {
		return fmt.Sprintf("packets are not the ones written: the control record and the scan both count %d without expiry, "+
			"but the set hash is %016x instead of %016x", e.Got.Live, e.Got.Hash, e.Want.Hash)
	}
	what, unread := "packets are missing", ""
	if e.CameBack() {
		what = "packets came back"
	}
	if e.Unread > 0 {
		unread = fmt.Sprintf("; records that cannot be read: %d", e.Unread)
	}
	return fmt.Sprintf("%s: the control record counts %d without expiry, the scan found %d%s", what, e.Want.Live, e.Got.Live, unread)
}

// Unwrap makes a mismatch an ErrLoss.
func (e *MismatchError) Unwrap() error { return ErrLoss }
