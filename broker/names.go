package broker

import (
	"errors"
	"fmt"

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
	if q := b.queues.find(name); q != nil && b.exists(q) {
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

// DeleteRoom returns what a Delete brings.
func (tx *Tx) DeleteRoom(name []byte) Room {
	b := tx.b
	if b.keys.Find(name) != nil {
		return Room{Records: 1}
	}
	if q := b.queues.find(name); q != nil && (b.exists(q) || b.ix.HasWindow(q.ix)) {
		return dropRoom(q.name, b.ix.Counts(q.ix).Len())
	}
	return Room{}
}

// drop deletes whatever has the name, and takes the room of that and more.
func (tx *Tx) drop(name []byte, more Room) (existed bool, err error) {
	if err := tx.begin(more.Plus(tx.DeleteRoom(name))); err != nil {
		return false, err
	}
	b := tx.b
	k, q := b.keys.Find(name), b.queues.find(name)
	existed = k != nil || q != nil && b.exists(q)
	if k != nil {
		b.deleteKey(k)
	}
	if q != nil && (b.exists(q) || b.ix.HasWindow(q.ix)) { // the windows of an empty queue end, too
		b.dropQueue(q)
	}
	return existed, nil
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
	if err := b.checkNewName(k, to); err != nil {
		return false, err
	}
	if other := b.queues.find(to); q != nil && other != nil && exclusive(q.settings, consumerRole) {
		only, err := b.onlyConsumer(q, other)
		if err != nil {
			return false, err
		}
		q.hold(consumerRole, only)
	}
	room := Room{Records: 1, Bytes: len(to)}
	if q != nil {
		room.Records++ // of an empty queue with that name
		room.Bytes += settingsBytes(q)
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

// checkName returns ErrTooLarge if the name is too long, or its record with a value of so many
// bytes.
func (b *Broker) checkName(name []byte, value int) error {
	if len(name) > storage.MaxName {
		return fmt.Errorf("%w: the name has %d bytes, the limit is %d", ErrTooLarge, len(name), storage.MaxName)
	}
	return b.checkSize(name, value)
}

// checkNewName is checkName for the new name of a string; or of a hash or list, whose elements have
// records of their own.
func (b *Broker) checkNewName(k *index.Key, name []byte) error {
	if k == nil {
		return b.checkName(name, 0)
	}
	return b.checkName(name, k.Len())
}

// checkSize returns ErrTooLarge if a record of that name and a value of so many bytes is too long.
func (b *Broker) checkSize(name []byte, value int) error {
	if n := len(name) + value; n > b.limits.record {
		return fmt.Errorf("%w: name and value have %d bytes together, the limit is %d", ErrTooLarge, n, b.limits.record)
	}
	return nil
}
