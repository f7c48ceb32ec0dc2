package broker

import (
	"bytes"
	"fmt"

	"github.com/holdfast-queue/holdfast/broker/keyspace"
	"github.com/holdfast-queue/holdfast/storage"
)

// A large value is in the open batch, the cache, the batch that is on its way to the disk, or only
// on the disk.

// Value is a string or the value of a field.
type Value struct {
	Size int // in bytes
	// Batch is the number of the batch that brought the value, or of a later one, for Durable.
	Batch uint64
	ref   valueRef
}

// valueRef is a value and where it is.
type valueRef struct {
	*keyspace.Value
	id   storage.ValueID
	tag  uint64 // by which the cache has it
	head uint64 // the version of the head
}

func stringOf(k *keyspace.Entry) valueRef {
	return valueRef{&k.Value, storage.ValueID{ID: k.ID}, k.ID, k.Version}
}

func fieldOf(k *keyspace.Entry, f *keyspace.Field) valueRef {
	return valueRef{&f.Value, storage.ValueID{ID: k.ID, Field: f.ID, IsField: true}, f.ID, k.Version}
}

// valueAtHand returns a value that need not be read from the disk.
func (b *Broker) valueAtHand(s valueRef) (value []byte, ok bool) {
	if !s.Large() {
		return s.Small, true
	}
	if value, ok := b.open.ops.Value(s.id); ok {
		return value, true
	}
	if value = b.cache.get(s.Ref, s.tag); value == nil && b.onWay != nil {
		return b.onWay.ops.Value(s.id)
	}
	return value, value != nil
}

// read returns a value, valid until the next call that changes something. The error wraps
// ErrUnreadable.
func (b *Broker) read(s valueRef) (value []byte, err error) {
	if value, ok := b.valueAtHand(s); ok {
		return value, nil
	}
	b.store.ReadValues([]storage.ValueID{s.id}, func(_ int, read []byte, damage error) {
		switch {
		case damage != nil:
			err = fmt.Errorf("%w: %w", ErrUnreadable, damage)
		case len(read) != s.Len():
			err = fmt.Errorf("%w: %w: %v has %d bytes instead of %d", ErrUnreadable, storage.ErrDamaged, s.id, len(read), s.Len())
		default:
			value = bytes.Clone(read)
			s.Ref = b.cache.add(s.tag, value)
		}
	})
	return value, err
}

func (b *Broker) value(s valueRef) Value {
	return Value{Size: s.Len(), Batch: b.batchOf(max(s.head, s.Version)), ref: s}
}

// Bytes returns a value, valid until the next call that changes something; none of the zero Value.
// The error wraps ErrUnreadable.
func (tx *Tx) Bytes(v Value) ([]byte, error) {
	if v.ref.Value == nil {
		return nil, nil
	}
	return tx.b.read(v.ref)
}

// batchOf returns the number of the batch that brought a version, or of a later one.
func (b *Broker) batchOf(version uint64) uint64 {
	switch {
	case version <= b.durableKey:
		return b.durableBatch
	case version > b.open.lastKey:
		return b.open.number
	}
	return b.open.number - 1
}

// keepValue keeps a value that the open batch puts in memory if it is small, and in the cache if it
// is large.
func (b *Broker) keepValue(s valueRef, value []byte) {
	v := s.Value
	if storage.IsLarge(len(value)) {
		v.Small, v.Size, v.Ref = nil, uint32(len(value)), b.cache.add(s.tag, value)
		return
	}
	if small := v.Small; small == nil || cap(small) < len(value) || cap(small) > 2*len(value)+64 {
		v.Small = make([]byte, 0, len(value))
	}
	v.Small, v.Size, v.Ref = append(v.Small[:0], value...), 0, 0
}

// patch writes data at an offset into value and fills a gap before it with zeros.
func patch(value []byte, at int, data []byte) []byte {
	if gap := at - len(value); gap > 0 {
		value = append(value, make([]byte, gap)...)
	}
	n := copy(value[at:], data)
	return append(value, data[n:]...)
}
