package dump

import (
	"errors"
	"fmt"

	"github.com/holdfast-queue/holdfast/storage"
)

// keys is what a checker knows of strings and hashes.
type keys struct {
	head     *storage.Head // the last one; nil before the first
	field    storage.Field
	keyNames map[string]struct{}
	fields   map[string]struct{} // of head
	keyCount uint64              // strings, hashes and fields
}

// keyOverhead is more than the record of a string or field has besides its name and value.
const keyOverhead = 128

// KeyBound is at least the length of the record of a string, a hash or a field.
func KeyBound(name, value []byte) int { return keyOverhead + len(name) + len(value) }

// keyRecord checks a string or a hash and makes it head, or checks a field of head, which it
// returns. What it returns is valid until the next call.
func (c *checker) keyRecord(r *keyRecord) (*storage.Field, error) {
	switch n := KeyBound(r.Name, r.Value); {
	case c.ended:
		return nil, errAfterEnd
	case r.Identity != 0:
		return nil, fmt.Errorf("a %s has an identity: only a window has one", r.Type)
	case r.Name == nil:
		return nil, fmt.Errorf("a %s must have the field \"name\"", r.Type)
	case n > MaxRecord:
		return nil, fmt.Errorf("the %s has a record of %d bytes: at most %d", r.Type, n, MaxRecord)
	case r.Type == typeField:
		return c.fieldRecord(r)
	}
	name := storage.FullName(uint8(r.Database), r.Name)
	_, again := c.keyNames[name]
	switch {
	case len(r.Name) > storage.MaxName:
		return nil, fmt.Errorf("the name of a %s has %d bytes: at most %d", r.Type, len(r.Name), storage.MaxName)
	case c.emptyHash():
		return nil, c.hashWithoutFields()
	case r.Hash != nil || r.Type == typeHash && r.Value != nil:
		return nil, fmt.Errorf("a %s with a hash or a value: only a field has both", r.Type)
	case r.Database >= storage.Databases:
		return nil, fmt.Errorf("the %s %.100q is in database %d: expected 0 to %d", r.Type, r.Name, r.Database, storage.Databases-1)
	case again:
		return nil, fmt.Errorf("two strings or hashes have the name %.100q", r.Name)
	case c.names[name]:
		return nil, fmt.Errorf("a %s and a queue with packets or settings have the name %.100q", r.Type, r.Name)
	}
	if c.keyNames == nil {
		c.keyNames, c.fields = make(map[string]struct{}), make(map[string]struct{})
	}
	clear(c.fields)
	c.keyNames[name] = struct{}{}
	c.head = &storage.Head{Kind: storage.String, Database: uint8(r.Database), Name: r.Name, Expiry: int64(r.Expires)}
	if r.Type == typeHash {
		c.head.Kind = storage.Hash
	} else {
		c.head.Value = notNil(r.Value)
	}
	c.keyCount++
	return nil, nil
}

// windowRecord checks a window of the last queue.
func (c *checker) windowRecord(r *keyRecord) (*storage.Unique, error) {
	identity := uint64(r.Identity)
	switch {
	case c.ended:
		return nil, errAfterEnd
	case c.queue == nil || c.head != nil:
		return nil, errors.New("a window that follows no queue: expected the windows of a queue behind its record")
	case len(r.Name) == 0 || len(r.Name) > storage.MaxUnique || r.Expires <= 0 || r.Hash != nil || r.Value != nil:
		return nil, fmt.Errorf("a window must have a name of 1 to %d bytes and expires, and no hash and value", storage.MaxUnique)
	case identity <= c.marks.LowSeq || identity >= c.marks.NextSeq:
		return nil, fmt.Errorf("a window has the identity %d: expected one between the marks %d and %d", identity, c.marks.LowSeq, c.marks.NextSeq)
	}
	return &storage.Unique{UniqueID: storage.UniqueID{Queue: c.queue.ID, Identity: identity}, ID: r.Name, Until: int64(r.Expires)}, nil
}

func (c *checker) fieldRecord(r *keyRecord) (*storage.Field, error) {
	switch {
	case r.Hash == nil || r.Expires != 0 || r.Database != 0:
		return nil, errors.New("a field must have a hash, and no database and no time at which it expires")
	case c.head == nil || c.head.Kind != storage.Hash || string(c.head.Name) != string(r.Hash):
		return nil, fmt.Errorf("a field of the hash %.100q: the fields of a hash follow its record", r.Hash)
	}
	if _, again := c.fields[string(r.Name)]; again {
		return nil, fmt.Errorf("two fields of the hash %.100q have the name %.100q", r.Hash, r.Name)
	}
	c.fields[string(r.Name)] = struct{}{}
	c.field = storage.Field{Name: r.Name, Value: notNil(r.Value)}
	c.keyCount++
	return &c.field, nil
}

// emptyHash says that the last record was a hash: a server makes none without a field.
func (c *checker) emptyHash() bool {
	return c.head != nil && c.head.Kind == storage.Hash && len(c.fields) == 0
}

func (c *checker) hashWithoutFields() error {
	return fmt.Errorf("the hash %.100q has no fields: leave it out", c.head.Name)
}
