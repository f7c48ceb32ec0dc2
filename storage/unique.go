package storage

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"

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

// uniqueTakeover makes records of what folders of version 3 and 4 have of unique pushes: field 12
// of packets, and strings that are windows. It can be cut short and begun again at any batch: a
// string goes with the batch that has its record.
type uniqueTakeover struct {
	s      *Store
	known  map[UniqueID]bool // of a run that was cut short
	queues map[string]uint32
	marks  Marks
	b      Batch
}

// takeOverUniques does that when a folder of an older version is opened.
func (s *Store) takeOverUniques() error {
	if !s.folder.old {
		return nil
	}
	t := &uniqueTakeover{s: s, known: make(map[UniqueID]bool), queues: make(map[string]uint32), marks: s.control.Marks}
	for _, step := range []func() error{
		func() error {
			return s.Uniques(func(u *Unique) error { t.known[u.UniqueID] = true; return nil })
		},
		func() error { return s.Queues(t.queue) },
		func() error { return s.Packets(t.packet) },
		func() error { return s.Heads(t.head) },
		func() error { return t.write(0) },
		s.sync, // before the version is another, whatever Options.Sync says
	} {
		if err := step(); err != nil {
			return fmt.Errorf("take over the ids of unique pushes: %w", err)
		}
	}
	return nil
}

func (t *uniqueTakeover) queue(q Queue) error {
	if !t.s.flush.DropsQueue(&q) {
		t.queues[string(q.Name)] = q.ID
	}
	return nil
}

func (t *uniqueTakeover) packet(id PacketID, m *Meta) error {
	if len(m.Unique) == 0 {
		return nil
	}
	return t.put(&Unique{UniqueID: UniqueID{id.Queue, cmp.Or(m.Identity, id.Seq)}, ID: m.Unique})
}

// head takes a string over if it is a window. One without an expiry is a user's own.
func (t *uniqueTakeover) head(h *Head) error {
	queue, id, ok := parseWindow(h.Name)
	first, err := strconv.ParseInt(string(h.Value), 10, 64)
	if !ok || err != nil || h.Kind != String || h.Expiry == 0 || t.s.flush.Drops(h) {
		return nil
	}
	q, there := t.queues[string(queue)]
	if !there { // it became empty: the window is all that is left of it
		if t.marks.NextQueue == math.MaxUint32 {
			return nil
		}
		q = t.marks.NextQueue
		t.marks.NextQueue++
		t.queues[string(queue)] = q
		t.b.PutQueue(Queue{ID: q, Name: queue, New: true})
	}
	t.b.DeleteHead(h.ID, Mark{Version: h.Version, Large: IsLarge(h.Size)})
	return t.put(&Unique{UniqueID{q, uint64(first) + firstMarks().NextSeq}, id, h.Expiry})
}

func (t *uniqueTakeover) put(u *Unique) error {
	if !t.known[u.UniqueID] {
		t.b.PutUnique(u)
	}
	return t.write(4096)
}

// write applies the batch if it has so many entries.
func (t *uniqueTakeover) write(atLeast int) error {
	if t.b.count == 0 || t.b.count < atLeast {
		return nil
	}
	t.b.SetMarks(t.marks)
	err := t.s.write(&t.b)
	t.b.Reset()
	return err
}

// parseWindow splits the name that the string of a window had in version 4: "unique:", the bytes of
// the queue's name in digits, and behind a colon each that name and the id.
func parseWindow(name []byte) (queue, id []byte, ok bool) {
	const word = "unique:"
	rest, ok := bytes.CutPrefix(name, []byte(word))
	digits, rest, found := bytes.Cut(rest, []byte(":"))
	n, err := strconv.Atoi(string(digits))
	if !ok || !found || err != nil || n < 0 || n >= len(rest)-1 || rest[n] != ':' || len(rest)-n-1 > MaxUnique {
		return nil, nil, false
	}
	return rest[:n], rest[n+1:], true
}
