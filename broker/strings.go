package broker

import (
	"github.com/holdfast-queue/holdfast/index/keyspace"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// String returns a string; ok is false if nothing has the name.
func (tx *Tx) String(name []byte) (v Value, ok bool, err error) {
	k, err := tx.m.findKey(name, keyspace.String)
	if k == nil {
		return Value{}, false, err
	}
	return tx.m.value(stringOf(k)), true, nil
}

// SetString gives the name to a string, in place of whatever had it. It expires at a moment in Unix
// milliseconds, 0 for never. The value is copied.
func (tx *Tx) SetString(name, value []byte, expiry int64) error {
	m := tx.m
	if err := tx.CanSet(name, len(value)); err != nil {
		return err
	}
	k := m.named(name)
	if k.Kind() != TypeString {
		m.vacate(name)
		k = m.addValue(name, keyspace.String)
	}
	m.names.SetExpiry(k, expiry)
	m.putString(k, value)
	if expiry != 0 && expiry <= tx.now {
		m.deleteValue(k)
	}
	return nil
}

// CanSet returns the error that a SetString would get because of its size or the disk's free space.
func (tx *Tx) CanSet(name []byte, size int) error {
	if err := checkName(name, size); err != nil {
		return err
	}
	return tx.CanStore()
}

// PatchString writes data at an offset into a string, which is made if there is none, fills a gap
// before it with zeros, keeps the expiry, and returns the new size. ErrTooManyChanged: the strings
// that the Atomic patches are too large together.
func (tx *Tx) PatchString(name []byte, at int, data []byte) (size int, err error) {
	m := tx.m
	k, err := m.findKey(name, keyspace.String)
	if err != nil {
		return 0, err
	}
	if k != nil {
		size = k.Len()
	}
	size = max(size, at+len(data))
	if err := tx.CanSet(name, size); err != nil {
		return 0, err
	}
	if err := tx.change(1 + size/writtenUnit); err != nil {
		return 0, err
	}
	var old []byte
	if k == nil {
		k = m.addValue(name, keyspace.String)
	} else if old, err = m.read(stringOf(k)); err != nil {
		return 0, err
	}
	m.patched = patch(append(m.patched[:0], old...), at, data)
	m.putString(k, m.patched)
	return size, nil
}

// keepPatched bounds the memory that the patches of one turn leave to the next.
const keepPatched = 1 << 16

// putString gives a string a value.
func (m *Machine) putString(k *keyspace.Entry, value []byte) {
	m.storeHead(k, &content.Head{Value: value})
	m.keepValue(stringOf(k), value)
	m.changedName(k)
}
