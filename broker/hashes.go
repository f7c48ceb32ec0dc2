package broker

import (
	"github.com/holdfast-queue/holdfast/index/keyspace"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// HashLen returns the number of fields; 0 for an unknown name.
func (tx *Tx) HashLen(name []byte) (int, error) {
	k, err := tx.hash(name)
	if k == nil {
		return 0, err
	}
	return k.Fields(), nil
}

// hash returns the hash that has the name, nil if nothing has it.
func (tx *Tx) hash(name []byte) (*keyspace.Entry, error) {
	return tx.m.findKey(name, keyspace.Hash)
}

// field returns the hash that has the name, and its field; nil for what there is not.
func (tx *Tx) field(name, field []byte) (k *keyspace.Entry, f *keyspace.Field, err error) {
	if k, err = tx.hash(name); k != nil {
		f = k.Field(field)
	}
	return k, f, err
}

// Field returns the value of a field; ok is false if there is none.
func (tx *Tx) Field(name, field []byte) (v Value, ok bool, err error) {
	k, f, err := tx.field(name, field)
	if f == nil {
		return Value{}, false, err
	}
	return tx.m.value(fieldOf(k, f)), true, nil
}

// CanSetField returns the error that a SetField would get because of its size or the disk's free
// space.
func (tx *Tx) CanSetField(name, field []byte, size int) error {
	if err := checkSize(field, size, MaxRecord); err != nil {
		return err
	}
	return tx.CanSet(name, 0)
}

// SetField gives a field a value. The hash is made if there is none. added says that the field is
// new. The bytes are copied.
func (tx *Tx) SetField(name, field, value []byte) (added bool, err error) {
	m := tx.m
	if err := tx.CanSetField(name, field, len(value)); err != nil {
		return false, err
	}
	k, err := m.findKey(name, keyspace.Hash)
	if err != nil {
		return false, err
	}
	if k == nil {
		k = m.addValue(name, keyspace.Hash)
		m.putHead(k)
	}
	f := k.Field(field)
	if added = f == nil; added {
		f = k.AddField(field, m.nextKey())
	}
	m.putField(k, f, value)
	m.changedName(k)
	return added, nil
}

// putField gives a field a value.
func (m *Machine) putField(k *keyspace.Entry, f *keyspace.Field, value []byte) {
	old := marked(&f.Value)
	f.Version = m.nextKey()
	m.name = append(m.name[:0], f.Name()...)
	m.open.ops.PutField(&content.Field{
		Hash: k.ID, ID: f.ID, Name: m.name, Version: f.Version, Value: value, Rest: m.rests.Items[fieldOf(k, f).id],
	}, old)
	m.keepValue(fieldOf(k, f), value)
}

// DeleteField deletes a field, and the hash with its last one.
func (tx *Tx) DeleteField(name, field []byte) (existed bool, err error) {
	m := tx.m
	k, f, err := tx.field(name, field)
	if f == nil {
		return false, err
	}
	if k.Fields() == 1 {
		m.deleteValue(k)
		return true, nil
	}
	m.open.ops.DeleteField(k.ID, f.ID, marked(&f.Value))
	k.RemoveField(f)
	m.changedName(k)
	return true, nil
}

// Fields calls fn with every field, in no particular order, until it returns false. The name of the
// field is valid during the call. fn must not make calls that change something.
func (tx *Tx) Fields(name []byte, fn func(field []byte, v Value) bool) error {
	k, err := tx.hash(name)
	if k == nil {
		return err
	}
	m := tx.m
	goOn := true
	for at := uint64(0); goOn; goOn = goOn && at != 0 {
		at = k.ScanFields(at, 1, func(f *keyspace.Field) { goOn = fn(tx.look(f), m.value(fieldOf(k, f))) })
		tx.looked++ // there may be free places
	}
	return nil
}

// NextField calls fn with the next field of a look, or with none though there are more. The name of
// the field is valid during the call.
func (tx *Tx) NextField(name []byte, c *FieldCursor, fn func(field []byte, v Value)) (more bool, err error) {
	k, err := tx.hash(name)
	if k == nil {
		return false, err
	}
	m := tx.m
	if c.hash == 0 {
		*c = FieldCursor{hash: k.ID, last: m.marks.LastKey}
	}
	if k.ID != c.hash {
		return false, nil
	}
	tx.looked++ // there may be free places
	c.slot = k.ScanFields(c.slot, 1, func(f *keyspace.Field) {
		if f.ID <= c.last {
			fn(tx.look(f), m.value(fieldOf(k, f)))
		}
	})
	return c.slot != 0, nil
}

// ScanFields is Scan for the fields of a hash.
func (tx *Tx) ScanFields(name []byte, cursor uint64, n int, fn func(field []byte, v Value)) (next uint64, err error) {
	k, err := tx.hash(name)
	if k == nil {
		return 0, err
	}
	tx.looked++ // there may be free places
	return k.ScanFields(cursor, n, func(f *keyspace.Field) { fn(tx.look(f), tx.m.value(fieldOf(k, f))) }), nil
}

// look notes a look at a field, and returns its name, valid until the next call.
func (tx *Tx) look(f *keyspace.Field) []byte {
	tx.lookedAt(1, 0)
	tx.looked += len(f.Name()) / nameBytes
	tx.m.name = append(tx.m.name[:0], f.Name()...)
	return tx.m.name
}
