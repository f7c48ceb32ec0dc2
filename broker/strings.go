package broker

import (
	"github.com/holdfast-queue/holdfast/broker/keyspace"
	"github.com/holdfast-queue/holdfast/storage"
)

// String returns a string; ok is false if nothing has the name.
func (tx *Tx) String(name []byte) (v Value, ok bool, err error) {
	b := tx.b
	if err := tx.begin(Room{}); err != nil {
		return Value{}, false, err
	}
	k, err := b.findKey(name, keyspace.String)
	if k == nil {
		return Value{}, false, err
	}
	return b.value(stringOf(k)), true, nil
}

// SendString replies to c with bytes [from, to) of a string, as one packet with that payload.
// Without a string the reply has no packet.
func (tx *Tx) SendString(c *Conn, name []byte, from, to int, tag Tag) error {
	k, err := tx.b.findKey(name, keyspace.String)
	if err != nil {
		return err
	}
	if k == nil {
		return tx.sendNothing(c, tag)
	}
	to = max(0, min(to, k.Len()))
	return tx.send(c, stringOf(k), max(0, min(from, to)), to, tag)
}

// SetString makes the name that of a string, in place of whatever had it. It expires at a moment in
// Unix milliseconds, 0 for never. The value is copied.
func (tx *Tx) SetString(name, value []byte, expiry int64) error {
	b := tx.b
	if err := b.checkName(name, len(value)); err != nil {
		return err
	}
	room := Room{Records: 1, Bytes: len(name) + len(value)}
	k := b.named(name)
	if typeOf(k) != TypeString {
		if err := tx.pushable(); err != nil {
			return err
		}
		if _, err := tx.drop(name, room); err != nil {
			return err
		}
		k = b.addValue(name, keyspace.String)
	} else if err := tx.beginPut(room); err != nil {
		return err
	}
	b.names.SetExpiry(k, expiry)
	b.putString(k, value)
	if expiry != 0 && expiry <= tx.now {
		b.deleteValue(k)
	}
	return nil
}

// CanSet returns the error that a SetString would get because of its size or the disk's free space.
func (tx *Tx) CanSet(name []byte, size int) error {
	if err := tx.b.checkName(name, size); err != nil {
		return err
	}
	return tx.pushable()
}

// PatchString writes data at an offset into a string, which is made if there is none, fills a gap
// before it with zeros, keeps the expiry, and returns the new size.
func (tx *Tx) PatchString(name []byte, at int, data []byte) (size int, err error) {
	b := tx.b
	k, err := b.findKey(name, keyspace.String)
	if err != nil {
		return 0, err
	}
	if k != nil {
		size = k.Len()
	}
	size = max(size, at+len(data))
	if err := b.checkName(name, size); err != nil {
		return 0, err
	}
	if err := tx.beginPut(Room{Records: 1, Bytes: len(name) + size}); err != nil {
		return 0, err
	}
	if k == nil {
		k = b.addValue(name, keyspace.String)
		k.Small = []byte{}
	}
	b.patchKey(k, at, data, size)
	return size, nil
}

// patchKey makes a patch of which the string has so many bytes.
func (b *Broker) patchKey(k *keyspace.Entry, at int, data []byte, size int) {
	if old, ok := b.valueAtHand(stringOf(k)); ok {
		value := patch(append(b.patched[:0], old...), at, data)
		b.putString(k, value)
		if b.patched = value; cap(value) > keepPatched {
			b.patched = nil
		}
		return
	}
	e := b.note(valueEvent{kind: valuePatch, value: stringOf(k), at: at, data: b.open.copy(data)})
	b.putLateString(k, size)
	e.version = k.Version
}

// keepPatched is how many bytes a patch may leave allocated for the next one.
const keepPatched = 1 << 16

// putString gives a string a value that is at hand.
func (b *Broker) putString(k *keyspace.Entry, value []byte) {
	b.storeHead(k, &storage.Head{Value: value})
	b.keepValue(stringOf(k), value)
	b.changedName(k)
}

// putLateString gives a string a large value that an event makes.
func (b *Broker) putLateString(k *keyspace.Entry, size int) {
	b.storeHead(k, &storage.Head{Size: size})
	b.expectValue(stringOf(k), size)
	b.changedName(k)
}
