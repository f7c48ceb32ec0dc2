package content

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/cespare/xxhash/v2"
)

// UniqueID names the record of one unique push: by the queue, and by the identity that the packet
// got when it was pushed. No two pushes have the same, so a record never changes what it says.
type UniqueID struct {
	Queue    uint32
	Identity uint64
}

// String names the record as every error and finding does.
func (id UniqueID) String() string { return fmt.Sprintf("unique %d/%d", id.Queue, id.Identity) }

// Unique says that a packet of a queue was pushed with an id of the client's own.
type Unique struct {
	UniqueID
	ID    []byte // 1 to MaxUnique bytes
	Until int64  // end of the window in Unix milliseconds; 0: the packet has the id as long as it is in the queue
	// UntilClaim: the packet has the id until it is claimed first. That deletes the record.
	UntilClaim bool
}

// Expired reports whether the window is over at now.
func (u *Unique) Expired(now int64) bool { return u.Until != 0 && u.Until <= now }

// PutUnique writes a record, copying all it needs of u. Nothing has its key on disk, or the batch
// deleted it before.
func (b *Batch) PutUnique(u *Unique) {
	var key [MaxKey]byte
	b.scratch = AppendUnique(b.scratch[:0], u)
	b.putKey(AppendUniqueKey(key[:0], u.UniqueID), known{counts: countedKey}, b.scratch, UniqueHash(u.UniqueID))
}

// DeleteUnique deletes a record. Of one that the batch itself put nothing is left to write.
func (b *Batch) DeleteUnique(id UniqueID) {
	var key [MaxKey]byte
	b.deleteKey(AppendUniqueKey(key[:0], id), known{stored: true, counts: countedKey, hash: UniqueHash(id)})
}

// CancelUnique takes back a record that is new in this batch; false for any other.
func (b *Batch) CancelUnique(id UniqueID) bool {
	var key [MaxKey]byte
	e := b.find(AppendUniqueKey(key[:0], id))
	if e == nil || e.stored || !e.puts() {
		return false
	}
	b.remove(e)
	return true
}

// UniqueHash is one record's share of Tally.KeyHash.
func UniqueHash(id UniqueID) uint64 {
	var key [uniqueKeyLen]byte
	return xxhash.Sum64(AppendUniqueKey(key[:0], id))
}

// AppendUniqueKey appends the key of a unique push.
func AppendUniqueKey(dst []byte, id UniqueID) []byte {
	dst = binary.BigEndian.AppendUint32(append(dst, UniquePrefix...), id.Queue)
	return binary.BigEndian.AppendUint64(dst, id.Identity)
}

// DecodeUniqueKey reads the key of a unique push.
func DecodeUniqueKey(key []byte) (UniqueID, error) {
	if len(key) != uniqueKeyLen || string(key[:2]) != UniquePrefix {
		return UniqueID{}, badKey(key, "a unique push")
	}
	return UniqueID{binary.BigEndian.Uint32(key[2:]), binary.BigEndian.Uint64(key[6:])}, nil
}

// AppendUnique appends the record of u to dst.
func AppendUnique(dst []byte, u *Unique) []byte {
	w := newWriter(dst)
	w.bin(1, u.ID)
	w.int(2, u.Until)
	if u.UntilClaim {
		w.b = appendBool(w.field(3), true)
	}
	return w.end()
}

// DecodeUnique reads a record into u. Nothing of it aliases rec. The error wraps ErrRecord.
func DecodeUnique(rec []byte, u *Unique) error {
	r := reader{b: rec}
	for r.next() {
		switch r.field {
		case 1:
			u.ID = bytes.Clone(r.bin())
		case 2:
			u.Until = r.int()
		case 3:
			u.UntilClaim = r.bool()
		default:
			r.skip(0)
		}
	}
	r.check(len(u.ID) > 0)
	return r.err()
}
