package broker

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/storage"
)

// Names are one space: a name is that of a queue, a string or a hash, or nobody's. A queue that
// holds nothing does not have its name.

// Type is what a name stands for.
type Type uint8

// The types.
const (
	TypeNone Type = iota
	TypeList      // a queue
	TypeString
	TypeHash
)

// String returns the word that the Redis command TYPE answers.
func (t Type) String() string {
	return [...]string{"none", "list", "string", "hash"}[t]
}

// ErrWrongType: a name stands for something of another type.
var ErrWrongType = errors.New("the name belongs to a value of another type")

// Every call below is made inside Atomic.

// Type returns the type of a name; TypeNone if nothing has it.
func (tx *Tx) Type(name []byte) Type {
	if k := tx.b.keys.Find(name); k != nil {
		return typeOf(k)
	}
	if tx.b.listNamed(name) != nil {
		return TypeList
	}
	return TypeNone
}

func typeOf(k *index.Key) Type {
	if k.Kind() == index.HashKey {
		return TypeHash
	}
	return TypeString
}

// listNamed returns the queue that has the name, nil if none has.
func (b *Broker) listNamed(name []byte) *queue {
	if q := b.queues.find(name); q != nil && b.ix.Counts(q.ix).Len() > 0 {
		return q
	}
	return nil
}

// findKey returns the string or hash that has the name, nil if nothing has it. ErrWrongType.
func (b *Broker) findKey(name []byte, kind index.KeyKind) (*index.Key, error) {
	k := b.keys.Find(name)
	if k == nil && b.listNamed(name) != nil || k != nil && k.Kind() != kind {
		return nil, ErrWrongType
	}
	return k, nil
}

// isValue says that the name is that of a string or hash.
func (b *Broker) isValue(name []byte) bool { return b.keys.Len() > 0 && b.keys.Find(name) != nil }

// Delete deletes whatever has the name. existed is false if nothing had it.
func (tx *Tx) Delete(name []byte) (existed bool, err error) {
	return tx.drop(name, Room{})
}

// drop deletes whatever has the name, and takes the room of that and more.
func (tx *Tx) drop(name []byte, more Room) (existed bool, err error) {
	b := tx.b
	k, q := b.keys.Find(name), b.listNamed(name)
	switch {
	case k != nil:
		more.Records++
	case q != nil:
		more = more.Plus(dropRoom(b.ix.Counts(q.ix).Len()))
	}
	if err := tx.begin(more); err != nil {
		return false, err
	}
	if k != nil {
		b.deleteKey(k)
	}
	if q != nil {
		b.dropQueue(q)
	}
	return k != nil || q != nil, nil
}

// Rename gives what is called from the name to, in place of what has that name. ok is false if
// nothing is called from.
func (tx *Tx) Rename(from, to []byte) (ok bool, err error) {
	b := tx.b
	k, q := b.keys.Find(from), b.listNamed(from)
	if k == nil && q == nil {
		return false, tx.begin(Room{})
	}
	if string(from) == string(to) {
		return true, tx.begin(Room{})
	}
	if err := b.checkName(to, 0); err != nil {
		return false, err
	}
	room := Room{Records: 1, Bytes: len(to)}
	if q != nil {
		room.Records++ // of an empty queue with that name
	} else if !k.Large() {
		room.Bytes += k.Len()
	}
	if _, err := tx.drop(to, room); err != nil {
		return false, err
	}
	if q != nil {
		b.renameQueue(q, to)
		return true, nil
	}
	b.touchName(k.Name())
	b.keys.Rename(k, to)
	b.putHead(k)
	b.touchName(k.Name())
	return true, nil
}

// Scan calls fn with some names and returns a cursor for the next call, 0 after the last. It starts
// with 0. A name that is there from the first call to the last is given at least once. It looks at
// about n names. fn must not make calls.
func (tx *Tx) Scan(cursor uint64, n int, fn func(name []byte, t Type)) (next uint64) {
	const keys = 1 << 32 // the first cursor of keys; below it are queues
	b := tx.b
	n = max(n, 1)
	looks := 10 * n
	for ; cursor < uint64(len(b.queues.all)); cursor++ {
		if n == 0 || looks == 0 {
			return cursor
		}
		looks--
		if q := b.queues.all[cursor]; b.isList(q) {
			fn([]byte(q.name), TypeList)
			n--
		}
	}
	cursor = max(cursor, keys)
	if n == 0 || looks == 0 {
		return cursor
	}
	slot, done := b.keys.Scan(uint32(cursor-keys), n, func(k *index.Key) { fn([]byte(k.Name()), typeOf(k)) })
	if done {
		return 0
	}
	return keys + uint64(slot)
}

// isList says that q, which may be nil, has its name.
func (b *Broker) isList(q *queue) bool {
	return q != nil && !q.dropped && b.ix.Counts(q.ix).Len() > 0
}

// RandomName appends any name to dst; ok is false if there is none.
func (tx *Tx) RandomName(dst []byte) (name []byte, ok bool) {
	b := tx.b
	lists := tx.lists()
	if n := lists + b.keys.Len(); n == 0 {
		return dst, false
	} else if at := rand.IntN(n); at >= lists {
		return append(dst, b.keys.Pick(rand.IntN).Name()...), true
	}
	all := b.queues.all
	for at := rand.IntN(len(all)); ; at = (at + 1) % len(all) {
		if b.isList(all[at]) {
			return append(dst, all[at].name...), true
		}
	}
}

// NameCount returns how many names there are, and how many of them expire.
func (tx *Tx) NameCount() (names, expiring int) {
	return tx.lists() + tx.b.keys.Len(), tx.b.keys.Expiring()
}

// lists returns how many queues have their names.
func (tx *Tx) lists() (n int) {
	for _, q := range tx.b.queues.all {
		if tx.b.isList(q) {
			n++
		}
	}
	return n
}

// checkName returns ErrTooLarge if a record of that name and a value of so many bytes is too long.
func (b *Broker) checkName(name []byte, value int) error {
	if n := len(name) + value; n > b.limits.record {
		return fmt.Errorf("%w: name and value have %d bytes together, the limit is %d", ErrTooLarge, n, b.limits.record)
	}
	return nil
}

// putHead brings the head of a key to the open batch again. Its value stays as it is.
func (b *Broker) putHead(k *index.Key) {
	if k.Large() {
		b.storeHead(k, &storage.Head{Size: k.Len(), KeepValue: true})
	} else {
		b.storeHead(k, &storage.Head{Value: k.Small})
	}
}

// storeHead puts a head, with the value that h has, under a new version.
func (b *Broker) storeHead(k *index.Key, h *storage.Head) {
	old := marked(&k.Value)
	k.Version = b.nextKey()
	b.name = append(b.name[:0], k.Name()...)
	h.ID, h.Kind, h.Name, h.Version, h.Expiry = k.ID, storage.Kind(k.Kind()), b.name, k.Version, k.Expiry()
	b.open.ops.PutHead(h, old)
}

// nextKey returns a number or version for a key or field that nothing had before.
func (b *Broker) nextKey() uint64 {
	b.marks.LastKey++
	return b.marks.LastKey
}

// deleteKey deletes a string or hash. The fields of a hash are left to the sweeper.
func (b *Broker) deleteKey(k *index.Key) {
	b.touchName(k.Name())
	b.keys.Remove(k)
	b.open.ops.DeleteHead(k.ID, marked(&k.Value))
	k.Version = 0
	if k.Kind() == index.HashKey {
		b.leftovers = append(b.leftovers, k)
		b.signal()
	}
}

// marked is what the storage must know of a head or field that it holds already.
func marked(v *index.Value) storage.Mark {
	return storage.Mark{Version: v.Version, Large: v.Version != 0 && v.Large()}
}
