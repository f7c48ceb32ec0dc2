package broker

import (
	"bytes"
	"fmt"

	"github.com/holdfast-queue/holdfast/broker/keyspace"
	"github.com/holdfast-queue/holdfast/storage"
)

// A large value is at hand if the open batch puts it or the cache has it. Else only the disk has
// it, and no call may read that. So what is done with it is noted in the batch, in the order of the
// calls. The committer reads each such value once, before the batch is applied, and goes through
// the notes: a read gives a reply its part of the value as it is then, and what patches and copies
// have made in the end is filled into the batch.

// Value is a string or the value of a field.
type Value struct {
	Bytes []byte // valid until the next call that changes something; nil if OnDisk
	Size  int    // in bytes
	// OnDisk says that only the disk holds the value: SendString and SendField reply with it.
	OnDisk bool
	// Batch is the number of the batch that brought the value, or of a later one, for Durable.
	Batch uint64
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
	value = b.cache.get(s.Ref, s.tag)
	return value, value != nil
}

func (b *Broker) value(s valueRef) Value {
	value, ok := b.valueAtHand(s)
	return Value{Bytes: value, Size: s.Len(), OnDisk: !ok, Batch: b.batchOf(max(s.head, s.Version))}
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

// expectValue notes that the open batch puts a large value of so many bytes that comes late.
func (b *Broker) expectValue(s valueRef, size int) {
	b.open.ops.ValueLate(s.id, size)
	s.Small, s.Size, s.Ref = nil, uint32(size), 0
}

// send replies to c with bytes [from, to) of a value, as one packet with that payload.
func (tx *Tx) send(c *Conn, s valueRef, from, to int, tag Tag) error {
	b := tx.b
	if err := tx.begin(Room{}); err != nil {
		return err
	}
	t := b.open
	first, size := len(t.records), to-from
	value, ok := b.valueAtHand(s)
	if n := len(t.values); !ok && (n == 0 || t.values[n-1].value.id != s.id) {
		size = s.Len() // all of it is read into memory
	}
	if err := tx.useReply(size); err != nil {
		return err
	}
	if ok {
		start := len(t.copied)
		t.copied = storage.AppendRecord(t.copied, &Packet{Payload: value[from:to]})
		t.records = append(t.records, t.copied[start:len(t.copied):len(t.copied)])
	} else {
		b.stats.misses.Add(1)
		b.note(valueEvent{kind: valueRead, value: s, at: from, to: to, record: int32(first)})
		t.records = append(t.records, nil)
	}
	b.queueReply(c, first, replyPackets, tag, size)
	return nil
}

// sendNothing replies to c with no packet.
func (tx *Tx) sendNothing(c *Conn, tag Tag) error {
	if err := tx.begin(Room{}); err != nil {
		return err
	}
	tx.b.queueReply(c, len(tx.b.open.records), replyPackets, tag, 0)
	return nil
}

// patch writes data at an offset into value and fills a gap before it with zeros.
func patch(value []byte, at int, data []byte) []byte {
	if gap := at - len(value); gap > 0 {
		value = append(value, make([]byte, gap)...)
	}
	n := copy(value[at:], data)
	return append(value, data[n:]...)
}

// valueEvent is something that a batch does with a value that only the disk has, or that was made
// of such a one before.
type valueEvent struct {
	kind    valueEventKind
	value   valueRef
	size    int      // of the value before the event
	version uint64   // of the record after the event
	record  int32    // of a read: where in batch.records its bytes [at, to) go
	at, to  int      // of a patch: where its data goes
	data    []byte   // of a patch
	target  valueRef // of a copy
}

type valueEventKind uint8

const (
	valueRead valueEventKind = iota
	valuePatch
	valueCopy
)

// note appends an event. The value has the size that it has before the event.
func (b *Broker) note(e valueEvent) *valueEvent {
	e.size, e.version = e.value.Len(), e.value.Version
	b.open.values = append(b.open.values, e)
	return &b.open.values[len(b.open.values)-1]
}

// lateValues are the values that a batch needs from the disk.
type lateValues map[storage.ValueID][]byte

// readValues reads the values that t.values needs, and carries that out.
func (b *Broker) readValues(t *batch) error {
	values := make(lateValues)
	if err := b.readBefore(t, values); err != nil {
		return fmt.Errorf("read values: %w", err)
	}
	changed := make(map[storage.ValueID]bool)
	for i := range t.values {
		e := &t.values[i]
		value := values[e.value.id]
		switch e.kind {
		case valueRead:
			t.records[e.record] = storage.AppendRecord(nil, &Packet{Payload: value[e.at:e.to]})
		case valuePatch:
			values[e.value.id] = patch(value, e.at, e.data)
			changed[e.value.id] = true
		case valueCopy:
			values[e.target.id] = bytes.Clone(value)
			changed[e.target.id] = true
		}
	}
	for id := range changed {
		t.ops.FillValue(id, values[id])
	}
	b.cacheValues(t, values)
	return nil
}

// readBefore gets from the disk what events need that no earlier event has made.
func (b *Broker) readBefore(t *batch, values lateValues) error {
	var ids []storage.ValueID
	var sizes []int
	for i := range t.values {
		e := &t.values[i]
		if _, ok := values[e.value.id]; !ok {
			values[e.value.id] = nil
			ids, sizes = append(ids, e.value.id), append(sizes, e.size)
		}
		if e.kind == valueCopy {
			values[e.target.id] = nil
		}
	}
	return b.store.ReadValues(ids, func(i int, value []byte) (err error) {
		if len(value) != sizes[i] {
			value, err = make([]byte, sizes[i]), b.unreadableValue(ids[i])
		}
		values[ids[i]] = bytes.Clone(value)
		return err
	})
}

// unreadableValue decides what becomes of a value that cannot be read. If that is accepted, there
// are zeros in its place.
func (b *Broker) unreadableValue(id storage.ValueID) error {
	why := fmt.Errorf("%w: the value of %v is gone or has not the length that was written", storage.ErrDamaged, id)
	if !b.acceptLoss {
		return fmt.Errorf("%w: %w", ErrUnreadable, why)
	}
	b.log.Error("value is damaged and is taken for zeros", "error", why)
	return nil
}

// cacheValues keeps values for the next calls that want them, unless they have changed since.
func (b *Broker) cacheValues(t *batch, values lateValues) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range t.values {
		e := &t.values[i]
		if v := e.value; v.Version == e.version && b.cache.get(v.Ref, v.tag) == nil {
			v.Ref = b.cache.add(v.tag, values[v.id])
		}
	}
}
