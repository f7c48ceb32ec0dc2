package keyspace

import "github.com/holdfast-queue/holdfast/index"

// Kind is what a name stands for.
type Kind uint8

// The kinds. String and Hash have the numbers that the store has for them.
const (
	None Kind = iota // nothing: a queue of that name is empty
	String
	Hash
	Queue
)

// String returns the word that the Redis command TYPE answers.
func (k Kind) String() string { return [...]string{"none", "string", "hash", "list"}[k] }

// Value is a string or the value of a field.
type Value struct {
	Version uint64 // the caller's: of the record that holds the value
	Small   []byte // the value; nil if it is large
	Size    uint32 // of a large value, in bytes
	Ref     uint32 // of a large value: the caller's own
}

// Len returns the size in bytes.
func (v *Value) Len() int {
	if v.Small != nil {
		return len(v.Small)
	}
	return int(v.Size)
}

// Large says that only the caller has the value.
func (v *Value) Large() bool { return v.Small == nil }

// Entry is a name of a database and what it stands for. It stays the same while the name stands for
// something or has a queue. The caller sets ID and Value as it likes.
type Entry struct {
	Value  // of a string; of a hash only its version means something
	ID     uint64
	name   string
	fields *fields       // of a hash
	expiry int64         // Unix milliseconds; 0: never
	place  int32         // in the heap of those that expire
	slot   uint32        // while it stands for something
	queue  index.QueueID // 0: the name has none
	kind   Kind
	db     uint8
}

// Name returns the name.
func (e *Entry) Name() string { return e.name }

// Database returns the number of the database.
func (e *Entry) Database() uint8 { return e.db }

// Kind returns what the name stands for; None of a nil entry.
func (e *Entry) Kind() Kind {
	if e == nil {
		return None
	}
	return e.kind
}

// IsValue says whether a string or hash has the name.
func (e *Entry) IsValue() bool { return e.kind == String || e.kind == Hash }

// Queue returns the queue that has the name, or will have it when it holds something; 0 is none.
func (e *Entry) Queue() index.QueueID { return e.queue }

// Expiry is when the entry expires in Unix milliseconds, 0 for never.
func (e *Entry) Expiry() int64 { return e.expiry }

// Directory holds names by database, what they stand for, and when that expires. Small values are
// in it; large ones and the packets of queues are the caller's. A name stands for one thing. Beside
// a string or hash it may have a queue that is empty.
type Directory struct {
	databases []*database // those above were never asked for
}

// database is the names of one database. Each that stands for something has a slot, which it keeps,
// so a scan over the slots finds all that stays.
type database struct {
	names    map[string]*Entry
	peak     int // the most names since the map was made: Go's maps never shrink
	slots    slots[Entry]
	standing int    // names that stand for something
	expiring alarms // those that expire
}

// New returns an empty directory.
func New() *Directory { return new(Directory) }

// in returns a database, which is made if it was never asked for.
func (d *Directory) in(db uint8) *database {
	for int(db) >= len(d.databases) {
		d.databases = append(d.databases, &database{names: make(map[string]*Entry)})
	}
	return d.databases[db]
}

// Find returns the entry of a name, nil if it stands for nothing and has no queue.
func (d *Directory) Find(db uint8, name []byte) *Entry { return d.in(db).names[string(name)] }

// Has says that e is in the directory.
func (d *Directory) Has(e *Entry) bool { return d.in(e.db).names[e.name] == e }

// Make returns the entry of a name. A new one is removed again by Set, unless it comes to stand for
// something or gets a queue. The name is copied.
func (d *Directory) Make(db uint8, name []byte) *Entry {
	in := d.in(db)
	e := in.names[string(name)]
	if e == nil {
		e = &Entry{name: string(name), db: db}
		in.names[e.name] = e
		in.peak = max(in.peak, len(in.names))
	}
	return e
}

// Set says what an entry stands for from now on. A string and a hash begin without a value, and
// without an expiry. An entry for nothing that has no queue is removed.
func (d *Directory) Set(e *Entry, k Kind) {
	in := d.databases[e.db]
	switch {
	case e.kind == None && k != None:
		e.slot = in.slots.add(e)
		in.standing++
	case e.kind != None && k == None:
		in.slots.remove(e.slot)
		in.standing--
	}
	if e.kind != k {
		d.SetExpiry(e, 0)
		e.Value, e.ID, e.fields, e.kind = Value{}, 0, nil, k
		if k == Hash {
			e.fields, e.Small = new(fields), []byte{} // its own value is an empty one, which is not large
		}
	}
	if k == None && e.queue == 0 && d.Has(e) {
		delete(in.names, e.name)
		in.shrink()
	}
}

// SetQueue gives a name a queue, 0 for none. What it stands for stays.
func (d *Directory) SetQueue(e *Entry, q index.QueueID) {
	e.queue = q
	d.Set(e, e.kind)
}

// Detach returns the string or hash that an entry stands for, as an entry of no directory. The name
// stands for nothing then.
func (d *Directory) Detach(e *Entry) *Entry {
	value := &Entry{Value: e.Value, ID: e.ID, kind: e.kind, fields: e.fields, expiry: e.expiry}
	d.Set(e, None)
	return value
}

// Attach lets a name that stands for nothing stand for what Detach has returned.
func (d *Directory) Attach(e, value *Entry) {
	d.Set(e, value.kind)
	e.Value, e.ID, e.fields = value.Value, value.ID, value.fields
	d.SetExpiry(e, value.expiry)
}

// NewHash returns a hash that is in no directory.
func NewHash(id uint64) *Entry {
	return &Entry{ID: id, kind: Hash, fields: new(fields), Value: Value{Small: []byte{}}}
}

// Flush empties a database. It returns the entries that stood for something, with nils among them.
func (d *Directory) Flush(db uint8) []*Entry {
	all := d.in(db).slots.all
	d.databases[db] = &database{names: make(map[string]*Entry)}
	return all
}

// Len returns how many names of a database stand for something, and how many of them expire.
func (d *Directory) Len(db uint8) (names, expiring int) {
	in := d.in(db)
	return in.standing, len(in.expiring)
}

// Scan calls fn with some names of a database that stand for something, about n of them, and
// returns the cursor for the next call, 0 after the last. It starts with 0. What stands for
// something from the first call to the last is given. fn must not change the directory.
func (d *Directory) Scan(db uint8, cursor uint64, n int, fn func(*Entry)) (next uint64) {
	return d.in(db).slots.scan(cursor, n, fn)
}

// The map of names is made anew when it has fallen to one in shrinkNames of its peak, if that was
// above minShrinkNames. One turn looks at the whole map and copies what is left.
const (
	shrinkNames    = 32
	minShrinkNames = 8192
)

// shrink gives back the memory of a database that has become much smaller. Slots stay as they are:
// a scan may be under way.
func (in *database) shrink() {
	if len(in.names) >= in.peak/shrinkNames || in.peak <= minShrinkNames {
		return
	}
	names := make(map[string]*Entry, len(in.names))
	for name, e := range in.names {
		names[name] = e
	}
	in.names, in.peak = names, len(names)
	in.slots.shrink()
}
