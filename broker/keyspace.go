package broker

import "errors"

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
func (tx *Tx) Type(name []byte) Type { return TypeNone }

// Delete deletes whatever has the name. existed is false if nothing had it.
func (tx *Tx) Delete(name []byte) (existed bool, err error) { return false, errStub }

// Rename gives what is called from the name to, in place of what has that name. ok is false if
// nothing is called from.
func (tx *Tx) Rename(from, to []byte) (ok bool, err error) { return false, errStub }

// Copy copies what is called from, with its expiry, to the name to, in place of what has that name.
// ok is false if nothing is called from.
func (tx *Tx) Copy(from, to []byte) (ok bool, err error) { return false, errStub }

// CopyRoom returns what a Copy may bring.
func (tx *Tx) CopyRoom(from, to []byte) Room { return Room{} }

// Expiry returns when a name expires, in Unix milliseconds, 0 for never; ok is false if nothing has
// it.
func (tx *Tx) Expiry(name []byte) (at int64, ok bool) { return 0, false }

// SetExpiry lets a name expire at a moment in Unix milliseconds, 0 for never. A moment that is past
// deletes it. ok is false if nothing has the name.
func (tx *Tx) SetExpiry(name []byte, at int64) (ok bool, err error) { return false, errStub }

// Now returns the moment of the transaction in Unix milliseconds. What expires by then is gone.
func (tx *Tx) Now() int64 { return tx.now }

// Scan calls fn with some names and returns a cursor for the next call, 0 after the last. It starts
// with 0. A name that is there from the first call to the last is given at least once. It looks at
// about n names.
func (tx *Tx) Scan(cursor uint64, n int, fn func(name []byte, t Type)) (next uint64) { return 0 }

// RandomName appends any name to dst; ok is false if there is none.
func (tx *Tx) RandomName(dst []byte) (name []byte, ok bool) { return dst, false }

// NameCount returns how many names there are, and how many of them expire.
func (tx *Tx) NameCount() (names, expiring int) { return 0, 0 }

// Flush deletes everything: every queue, string and hash.
func (tx *Tx) Flush() error { return errStub }

// Watch notes that c wants to know of a change to what has the name, or comes to have it.
func (tx *Tx) Watch(c *Consumer, name []byte) error { return errStub }

// WatchBroken says that something that c watches was changed, by anybody and any protocol.
func (tx *Tx) WatchBroken(c *Consumer) bool { return false }

// Unwatch ends all watches of c.
func (tx *Tx) Unwatch(c *Consumer) {}

// Value is a string or the value of a field.
type Value struct {
	Bytes []byte // valid until the transaction ends; nil if OnDisk
	Size  int    // in bytes
	// OnDisk says that only the disk holds the value: SendString and SendField reply with it.
	OnDisk bool
	// Batch is the number of the batch that brought the value, for Settled.
	Batch uint64
}

// String returns a string; ok is false if nothing has the name.
func (tx *Tx) String(name []byte) (v Value, ok bool, err error) { return Value{}, false, errStub }

// SendString replies to c with bytes [from, to) of a string, as one packet with that payload.
func (tx *Tx) SendString(c *Consumer, name []byte, from, to int, tag Tag) error { return errStub }

// SetString makes the name that of a string, in place of whatever had it. It expires at a moment in
// Unix milliseconds, 0 for never.
func (tx *Tx) SetString(name, value []byte, expiry int64) error { return errStub }

// PatchString writes data at an offset into a string, which is made if there is none, fills a gap
// before it with zeros, keeps the expiry, and returns the new size.
func (tx *Tx) PatchString(name []byte, at int, data []byte) (size int, err error) {
	return 0, errStub
}

// HashLen returns the number of fields; 0 for an unknown name.
func (tx *Tx) HashLen(name []byte) (int, error) { return 0, errStub }

// Field returns the value of a field; ok is false if there is none.
func (tx *Tx) Field(name, field []byte) (v Value, ok bool, err error) {
	return Value{}, false, errStub
}

// SendField replies to c with the value of a field, as one packet with that payload.
func (tx *Tx) SendField(c *Consumer, name, field []byte, tag Tag) error { return errStub }

// SetField gives a field a value. The hash is made if there is none. added says that the field is
// new.
func (tx *Tx) SetField(name, field, value []byte) (added bool, err error) { return false, errStub }

// DeleteField deletes a field, and the hash with its last one.
func (tx *Tx) DeleteField(name, field []byte) (existed bool, err error) { return false, errStub }

// Fields calls fn with every field, in no particular order, until it returns false.
func (tx *Tx) Fields(name []byte, fn func(field []byte, v Value) bool) error { return errStub }

// ScanFields is Scan for the fields of a hash.
func (tx *Tx) ScanFields(name []byte, cursor uint64, n int, fn func(field []byte, v Value)) (next uint64, err error) {
	return 0, errStub
}

var errStub = errors.New("not built yet")
