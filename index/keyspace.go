package index

// KeyKind is the type of a key.
type KeyKind uint8

// The kinds, with the numbers that the store has for them.
const (
	StringKey KeyKind = iota + 1
	HashKey
)

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

// Key is a string or a hash of a [Keyspace]. The caller sets ID and Value as it likes.
type Key struct {
	Value  // of a string; of a hash only its version means something
	ID     uint64
	name   string
	slot   uint32
	kind   KeyKind
	alarm  *alarm  // nil: never expires
	fields *fields // of a hash
}

// NewHash returns a hash that is in no keyspace.
func NewHash(id uint64) *Key {
	// Its own value is an empty one, which is not large.
	return &Key{ID: id, kind: HashKey, fields: new(fields), Value: Value{Small: []byte{}}}
}

// Name returns the name.
func (k *Key) Name() string { return k.name }

// Kind returns the type.
func (k *Key) Kind() KeyKind { return k.kind }

// Expiry is when the key expires in Unix milliseconds, 0 for never.
func (k *Key) Expiry() int64 { return k.alarm.moment() }

// Keyspace holds strings and hashes by name, and when they and queues expire. Small values are in
// it; large ones are the caller's. It is pure like [Index].
//
// Each key has a slot that it keeps while it has its name, so a scan over the slots finds every key
// that stays. Another key that takes the name takes the slot, too.
type Keyspace struct {
	names  map[string]*Key
	peak   int // the most names since the map was made: Go's maps never shrink
	slots  slots[Key]
	alarms alarms
	queues map[QueueID]*alarm // of queues that expire
}

// NewKeyspace returns an empty keyspace.
func NewKeyspace() *Keyspace {
	return &Keyspace{names: make(map[string]*Key), queues: make(map[QueueID]*alarm)}
}

// Find returns the key with a name, nil if there is none.
func (s *Keyspace) Find(name []byte) *Key { return s.names[string(name)] }

// Has says that k is in the keyspace.
func (s *Keyspace) Has(k *Key) bool { return s.names[k.name] == k }

// Len returns how many keys there are.
func (s *Keyspace) Len() int { return len(s.names) }

// Expiring returns how many keys and queues expire.
func (s *Keyspace) Expiring() int { return len(s.alarms.heap) }

// Add makes a key, in place of the one that has the name. The name is copied.
func (s *Keyspace) Add(name []byte, kind KeyKind, id uint64) *Key {
	k := &Key{ID: id, kind: kind}
	if kind == HashKey {
		k = NewHash(id)
	}
	s.link(k, string(name))
	return k
}

// Rename gives a key another name, in place of the key that has it.
func (s *Keyspace) Rename(k *Key, name []byte) {
	if k.name == string(name) {
		return
	}
	s.unlink(k)
	s.link(k, string(name))
}

// Remove takes a key out. Its fields stay with it.
func (s *Keyspace) Remove(k *Key) {
	s.alarms.set(&k.alarm, alarm{})
	s.unlink(k)
	if n := len(s.names); n < s.peak/shrinkNames && s.peak > minShrinkNames {
		s.shrink()
	}
}

// link gives k a name and the slot of the key that had it, or a free one.
func (s *Keyspace) link(k *Key, name string) {
	if old := s.names[name]; old != nil {
		s.alarms.set(&old.alarm, alarm{})
		k.name, k.slot = old.name, old.slot // the map keeps the old one's string
		s.slots.all[k.slot] = k
	} else {
		k.name, k.slot = name, s.slots.add(k)
	}
	s.names[k.name] = k
	s.peak = max(s.peak, len(s.names))
}

func (s *Keyspace) unlink(k *Key) {
	delete(s.names, k.name)
	s.slots.remove(k.slot)
}

// The map of names is made anew when it has fallen to one in shrinkNames of its peak, if that was
// above minShrinkNames.
const (
	shrinkNames    = 8
	minShrinkNames = 8192
)

// shrink gives back the memory of a keyspace that has become much smaller. Slots stay as they are:
// a scan may be under way.
func (s *Keyspace) shrink() {
	names := make(map[string]*Key, len(s.names))
	for name, k := range s.names {
		names[name] = k
	}
	s.names, s.peak = names, len(names)
	s.slots.shrink()
}

// Scan calls fn with the keys of some slots, about n of them, and returns the slot to go on with.
// done says that there are no more. fn must not change the keyspace.
func (s *Keyspace) Scan(slot uint32, n int, fn func(*Key)) (next uint32, done bool) {
	return s.slots.scan(slot, n, fn)
}

// All returns all keys, with nils among them. The keyspace must not be used afterwards.
func (s *Keyspace) All() []*Key { return s.slots.all }

// Pick returns any key, nil if there is none. random returns a number from 0 to below n.
func (s *Keyspace) Pick(random func(n int) int) *Key { return s.slots.pick(random) }

// SetExpiry lets a key expire at a moment in Unix milliseconds, 0 for never.
func (s *Keyspace) SetExpiry(k *Key, at int64) {
	s.alarms.set(&k.alarm, alarm{at: at, key: k})
}

// SetQueueExpiry lets a queue expire at a moment in Unix milliseconds, 0 for never.
func (s *Keyspace) SetQueueExpiry(q QueueID, at int64) {
	a := s.queues[q]
	s.alarms.set(&a, alarm{at: at, queue: q})
	if a == nil {
		delete(s.queues, q)
	} else {
		s.queues[q] = a
	}
}

// QueueExpiry is when a queue expires, 0 for never.
func (s *Keyspace) QueueExpiry(q QueueID) int64 { return s.queues[q].moment() }

// Deadline is the earliest moment at which a key or queue expires; false when there is none.
func (s *Keyspace) Deadline() (at int64, ok bool) {
	if len(s.alarms.heap) == 0 {
		return 0, false
	}
	return s.alarms.heap[0].at, true
}

// Due returns the key or the queue that expires first, if that is by now; nil and 0 if nothing is
// due. It stays until the caller removes it or sets its expiry.
func (s *Keyspace) Due(now int64) (*Key, QueueID) {
	if at, ok := s.Deadline(); !ok || at > now {
		return nil, 0
	}
	first := s.alarms.heap[0]
	return first.key, first.queue
}
