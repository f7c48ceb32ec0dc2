package broker

import (
	"bytes"
	"fmt"

	"github.com/holdfast-queue/holdfast/index/keyspace"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// A large value is in the open batch, the cache, the batch that is on its way to the disk, or only
// on the disk.

// Value is a string or the value of a field.
type Value struct {
	Size int // in bytes
	ref  valueRef
}

// valueRef is a value and where it is.
type valueRef struct {
	*keyspace.Value
	id  content.ValueID
	tag uint64 // by which the cache has it
}

func stringOf(k *keyspace.Entry) valueRef {
	return valueRef{&k.Value, content.ValueID{ID: k.ID}, k.ID}
}

func fieldOf(k *keyspace.Entry, f *keyspace.Field) valueRef {
	return valueRef{&f.Value, content.ValueID{ID: k.ID, Field: f.ID, IsField: true}, f.ID}
}

// valueAtHand returns a value that need not be read from the disk.
func (m *Machine) valueAtHand(s valueRef) (value []byte, ok bool) {
	if !s.Large() {
		return s.Small, true
	}
	if value, ok := m.open.ops.Value(s.id); ok {
		return value, true
	}
	if value = m.cache.Get(s.Ref, s.tag); value == nil && m.onWay != nil {
		return m.onWay.ops.Value(s.id)
	}
	return value, value != nil
}

// read returns a value, valid until the next call that changes something. The error wraps
// ErrUnreadable.
func (m *Machine) read(s valueRef) (value []byte, err error) {
	if value, ok := m.valueAtHand(s); ok {
		return value, nil
	}
	m.store.ReadValues([]content.ValueID{s.id}, func(_ int, read []byte, damage error) {
		switch {
		case damage != nil:
			err = fmt.Errorf("%w: %w", ErrUnreadable, damage)
		case len(read) != s.Len():
			err = fmt.Errorf("%w: %w: %v has %d bytes instead of %d", ErrUnreadable, storage.ErrDamaged, s.id, len(read), s.Len())
		default:
			value = bytes.Clone(read)
			s.Ref = m.cache.Add(s.tag, value)
		}
	})
	return value, err
}

func (m *Machine) value(s valueRef) Value {
	return Value{Size: s.Len(), ref: s}
}

// Bytes returns a value, valid until the next call that changes something; none of the zero Value.
// The error wraps ErrUnreadable.
func (tx *Tx) Bytes(v Value) ([]byte, error) {
	if v.ref.Value == nil {
		return nil, nil
	}
	tx.lookedAt(0, v.Size)
	return tx.m.read(v.ref)
}

// keepValue keeps a value that the open batch puts in memory if it is small, and in the cache if it
// is large.
func (m *Machine) keepValue(s valueRef, value []byte) {
	v := s.Value
	if content.IsLarge(len(value)) {
		v.Small, v.Size, v.Ref = nil, uint32(len(value)), m.cache.Add(s.tag, value)
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
