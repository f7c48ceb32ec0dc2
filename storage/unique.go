package storage

import (
	"encoding/binary"
	"fmt"

	"github.com/cespare/xxhash/v2"
	"github.com/vmihailenco/msgpack/v5"
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
}

// Expired reports whether the window is over at now.
func (u *Unique) Expired(now int64) bool { return u.Until != 0 && u.Until <= now }

// uniqueOp is what a batch does to one record.
type uniqueOp struct {
	rec   []byte // nil: deleted
	fresh bool   // there was none before the batch
}

// PutUnique writes a record, copying all it needs of u. Nothing has its key on disk, or the batch
// deleted it before.
func (b *Batch) PutUnique(u *Unique) {
	rec := appendUnique(b.grow(32+len(u.ID)), u)
	b.keep(len(rec))
	_, again := b.uniques[u.UniqueID]
	b.setUnique(u.UniqueID, uniqueOp{rec[:len(rec):len(rec)], !again})
}

// DeleteUnique deletes a record. Of one that the batch itself put nothing is left to write.
func (b *Batch) DeleteUnique(id UniqueID) {
	if !b.CancelUnique(id) {
		b.setUnique(id, uniqueOp{})
	}
}

// CancelUnique takes back a record that is new in this batch; false for any other.
func (b *Batch) CancelUnique(id UniqueID) bool {
	if !b.uniques[id].fresh {
		return false
	}
	b.countUnique(id, -1)
	delete(b.uniques, id)
	return true
}

func (b *Batch) setUnique(id UniqueID, o uniqueOp) {
	if b.uniques == nil {
		b.uniques = make(map[UniqueID]uniqueOp)
	}
	b.countUnique(id, -1)
	b.uniques[id] = o
	b.countUnique(id, 1)
}

// countUnique adds the operation on a record, if there is one, to the totals of the batch; or takes
// it out.
func (b *Batch) countUnique(id UniqueID, sign int) {
	if o, there := b.uniques[id]; there {
		b.count += sign
		b.bytes += sign * (uniqueKeyLen + len(o.rec) + opBytes)
	}
}

// uniques adds the records.
func (e *entries) uniques(b *Batch, next *Control) {
	var room [maxKey]byte
	for id, o := range b.uniques {
		key := appendUniqueKey(room[:0], id)
		if o.rec == nil {
			e.delete(key)
		} else {
			e.put(key, o.rec, 0, !o.fresh)
			next.AddUnique(id)
		}
		if !o.fresh {
			next.Keys--
			next.KeyHash -= uniqueHash(id)
		}
	}
}

// AddUnique counts the record of a unique push among the keys.
func (t *Tally) AddUnique(id UniqueID) {
	t.Keys++
	t.KeyHash += uniqueHash(id)
}

func uniqueHash(id UniqueID) uint64 {
	var key [uniqueKeyLen]byte
	return xxhash.Sum64(appendUniqueKey(key[:0], id))
}

// Uniques calls fn for the record of every unique push, in the order of their keys; valid during
// the call. Those that are over are shown, too. It stops at the first error of fn.
func (s *Store) Uniques(fn func(*Unique) error) error {
	return s.scan(uniquePrefix, func(key, rec []byte) error { return giveUnique(key, rec, fn, nil) })
}

// Uniques is that of a store. A tolerant view leaves records out that cannot be read. Items counts
// them all.
func (n *Snapshot) Uniques(fn func(*Unique) error) error {
	return n.scan(uniquePrefix, prefixRange(uniquePrefix), func(key, rec []byte) error { return giveUnique(key, rec, fn, n.tolerate) })
}

func giveUnique(key, rec []byte, fn func(*Unique) error, tolerate func(Finding)) error {
	id, err := decodeUniqueKey(key)
	if err != nil {
		return tolerated(err, fmt.Sprintf("%x", key), tolerate)
	}
	u := Unique{UniqueID: id}
	if err := decodeUnique(rec, &u); err != nil {
		return tolerated(fmt.Errorf("%w: %v: %w", ErrDamaged, id, err), id.String(), tolerate)
	}
	return fn(&u)
}

func appendUniqueKey(dst []byte, id UniqueID) []byte {
	dst = binary.BigEndian.AppendUint32(append(dst, uniquePrefix...), id.Queue)
	return binary.BigEndian.AppendUint64(dst, id.Identity)
}

func decodeUniqueKey(key []byte) (UniqueID, error) {
	if len(key) != uniqueKeyLen || string(key[:2]) != uniquePrefix {
		return UniqueID{}, fmt.Errorf("%w: %x is not the key of a unique push", ErrDamaged, key)
	}
	return UniqueID{binary.BigEndian.Uint32(key[2:]), binary.BigEndian.Uint64(key[6:])}, nil
}

func appendUnique(dst []byte, u *Unique) []byte {
	fields := byte(1)
	if u.Until != 0 {
		fields = 2
	}
	dst = appendBin(append(dst, formFixMap|fields, 1), u.ID)
	if u.Until != 0 {
		dst = appendInt(append(dst, 2), u.Until)
	}
	return dst
}

func decodeUnique(rec []byte, u *Unique) error {
	err := eachField(rec, func(field uint64, d *msgpack.Decoder) (err error) {
		switch field {
		case 1:
			u.ID, err = d.DecodeBytes()
		case 2:
			u.Until, err = d.DecodeInt64()
		default:
			err = d.Skip()
		}
		return err
	})
	if err == nil && len(u.ID) == 0 {
		err = fmt.Errorf("%w: it has no id", ErrRecord)
	}
	return err
}
