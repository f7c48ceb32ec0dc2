package index

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"pgregory.net/rapid"
)

// modelKey is a key in the naive model of a keyspace.
type modelKey struct {
	key    *Key
	kind   KeyKind
	expiry int64
	fields map[string]*Field
}

// keyspaceModel drives a keyspace and plain maps with the same calls. Scans are under way all the
// time: seen holds the names that were there when the scan began and still are.
type keyspaceModel struct {
	s      *Keyspace
	keys   map[string]*modelKey
	queues map[QueueID]int64
	number uint64

	slot   uint32
	toSee  map[string]bool
	fSlot  uint32
	fKey   *modelKey
	fToSee map[string]bool
}

func drawName(t *rapid.T) string { return fmt.Sprint("n", rapid.IntRange(0, 40).Draw(t, "name")) }

func (m *keyspaceModel) any(t *rapid.T) *modelKey {
	name := drawName(t)
	if m.keys[name] == nil {
		t.Skip("no such key")
	}
	return m.keys[name]
}

func (m *keyspaceModel) hash(t *rapid.T) *modelKey {
	k := m.any(t)
	if k.kind != HashKey {
		t.Skip("no hash")
	}
	return k
}

func (m *keyspaceModel) gone(name string) {
	delete(m.keys, name)
	delete(m.toSee, name)
}

func (m *keyspaceModel) Add(t *rapid.T) {
	name := drawName(t)
	kind := KeyKind(rapid.IntRange(1, 2).Draw(t, "kind"))
	m.number++
	k := m.s.Add([]byte(name), kind, m.number)
	if k.Kind() != kind || k.Name() != name || k.ID != m.number || k.Expiry() != 0 {
		t.Fatalf("Add gave %+v", k)
	}
	m.keys[name] = &modelKey{key: k, kind: kind, fields: map[string]*Field{}}
}

func (m *keyspaceModel) Remove(t *rapid.T) {
	k := m.any(t)
	m.s.Remove(k.key)
	m.gone(k.key.Name())
}

func (m *keyspaceModel) Rename(t *rapid.T) {
	k, to := m.any(t), drawName(t)
	from := k.key.Name()
	m.s.Rename(k.key, []byte(to))
	if from != to {
		m.gone(from)
		m.keys[to] = k
	}
}

func (m *keyspaceModel) SetExpiry(t *rapid.T) {
	k := m.any(t)
	k.expiry = rapid.Int64Range(0, 9).Draw(t, "expiry")
	m.s.SetExpiry(k.key, k.expiry)
}

func (m *keyspaceModel) SetQueueExpiry(t *rapid.T) {
	q, at := QueueID(rapid.IntRange(1, 9).Draw(t, "queue")), rapid.Int64Range(0, 9).Draw(t, "expiry")
	m.s.SetQueueExpiry(q, at)
	if m.queues[q] = at; at == 0 {
		delete(m.queues, q)
	}
}

func (m *keyspaceModel) Due(t *rapid.T) {
	now := rapid.Int64Range(0, 9).Draw(t, "now")
	first := int64(0)
	for _, k := range m.keys {
		if k.expiry != 0 && (first == 0 || k.expiry < first) {
			first = k.expiry
		}
	}
	for _, at := range m.queues {
		if first == 0 || at < first {
			first = at
		}
	}
	if at, ok := m.s.Deadline(); ok != (first != 0) || at != first {
		t.Fatalf("Deadline = %d, %v, want %d", at, ok, first)
	}
	k, q := m.s.Due(now)
	switch {
	case first == 0 || first > now:
		if k != nil || q != 0 {
			t.Fatalf("%v and queue %d are due, want nothing", k, q)
		}
	case k != nil:
		if q != 0 || m.keys[k.Name()].expiry != first {
			t.Fatalf("%v is due, want something of %d", k, first)
		}
		m.s.Remove(k)
		m.gone(k.Name())
	default:
		if m.queues[q] != first {
			t.Fatalf("queue %d is due, want something of %d", q, first)
		}
		m.s.SetQueueExpiry(q, 0)
		delete(m.queues, q)
	}
}

func (m *keyspaceModel) AddFields(t *rapid.T) {
	k := m.hash(t)
	for range rapid.SampledFrom([]int{1, 20}).Draw(t, "burst") {
		name := drawName(t)
		if k.fields[name] == nil {
			m.number++
			k.fields[name] = k.key.AddField([]byte(name), m.number)
		}
	}
}

func (m *keyspaceModel) RemoveField(t *rapid.T) {
	k := m.hash(t)
	if f := k.fields[drawName(t)]; f != nil {
		k.key.RemoveField(f)
		delete(k.fields, f.Name())
		if k == m.fKey {
			delete(m.fToSee, f.Name())
		}
	}
}

func (m *keyspaceModel) Scan(t *rapid.T) {
	n := rapid.IntRange(0, 9).Draw(t, "n")
	if m.toSee == nil {
		m.toSee = map[string]bool{}
		for name := range m.keys {
			m.toSee[name] = true
		}
	}
	calls, done := 0, false
	m.slot, done = m.s.Scan(m.slot, n, func(k *Key) {
		calls++
		delete(m.toSee, k.Name())
	})
	if calls > max(n, 1) {
		t.Fatalf("a scan of %d slots gave %d keys", n, calls)
	}
	if done {
		if len(m.toSee) > 0 {
			t.Fatalf("a scan did not give %v", m.toSee)
		}
		m.slot, m.toSee = 0, nil
	}
}

func (m *keyspaceModel) ScanFields(t *rapid.T) {
	if m.fKey == nil {
		m.fKey, m.fToSee = m.hash(t), map[string]bool{}
		for name := range m.fKey.fields {
			m.fToSee[name] = true
		}
	}
	done := false
	m.fSlot, done = m.fKey.key.ScanFields(m.fSlot, 3, func(f *Field) { delete(m.fToSee, f.Name()) })
	if done {
		if len(m.fToSee) > 0 {
			t.Fatalf("a scan did not give the fields %v", m.fToSee)
		}
		m.fKey, m.fSlot = nil, 0
	}
}

func (m *keyspaceModel) Pick(t *rapid.T) {
	k := m.s.Pick(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "random") })
	if (k == nil) != (len(m.keys) == 0) || k != nil && m.keys[k.Name()].key != k {
		t.Fatalf("picked %v of %d keys", k, len(m.keys))
	}
}

// Check compares everything.
func (m *keyspaceModel) Check(t *rapid.T) {
	expiring := len(m.queues)
	for i := range 41 {
		name := fmt.Sprint("n", i)
		want, got := m.keys[name], m.s.Find([]byte(name))
		if (want == nil) != (got == nil) || want != nil && (want.key != got || !m.s.Has(got) || got.Expiry() != want.expiry || got.Name() != name) {
			t.Fatalf("%s is %+v, want %+v", name, got, want)
		}
		if want == nil {
			continue
		}
		if want.expiry != 0 {
			expiring++
		}
		if want.kind == HashKey {
			want.check(t)
		}
	}
	for q := range QueueID(10) {
		if m.s.QueueExpiry(q) != m.queues[q] {
			t.Fatalf("queue %d expires at %d, want %d", q, m.s.QueueExpiry(q), m.queues[q])
		}
	}
	if m.s.Len() != len(m.keys) || m.s.Expiring() != expiring {
		t.Fatalf("%d keys, %d expire, want %d and %d", m.s.Len(), m.s.Expiring(), len(m.keys), expiring)
	}
}

// All is what a new keyspace takes over from the old one.
func (m *keyspaceModel) All(t *rapid.T) {
	keys := 0
	for _, k := range m.s.All() {
		if k != nil {
			if keys++; m.keys[k.Name()].key != k {
				t.Fatalf("%v is no key", k)
			}
		}
	}
	if keys != len(m.keys) {
		t.Fatalf("%d keys in all, want %d", keys, len(m.keys))
	}
}

// check compares the fields of a hash.
func (k *modelKey) check(t *rapid.T) {
	for i := range 41 {
		name := fmt.Sprint("n", i)
		if k.key.Field([]byte(name)) != k.fields[name] {
			t.Fatalf("field %s is %v, want %v", name, k.key.Field([]byte(name)), k.fields[name])
		}
	}
	seen := 0
	k.key.EachField(func(f *Field) bool {
		seen++
		return k.fields[f.Name()] == f
	})
	if seen != len(k.fields) || k.key.Fields() != seen || (k.key.LastField() == nil) != (seen == 0) {
		t.Fatalf("%d fields, %d of them seen, want %d", k.key.Fields(), seen, len(k.fields))
	}
}

func TestKeyspaceDoesWhatMapsDo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &keyspaceModel{s: NewKeyspace(), keys: map[string]*modelKey{}, queues: map[QueueID]int64{}}
		t.Repeat(rapid.StateMachineActions(m))
	})
}

func TestSmallStringsTakeLittleMemory(t *testing.T) {
	const n = 200_000
	s := NewKeyspace()
	before := heapInUse()
	for i := range n {
		k := s.Add(fmt.Appendf(nil, "key:%012d", i), StringKey, uint64(i))
		k.Small = []byte("0123456789abcdef")
	}
	per := (heapInUse() - before) / n
	t.Logf("%d bytes for each string, of which 32 are name and value", per)
	if per > 250 {
		t.Errorf("%d bytes for each string, want at most 250", per)
	}
	for i := range n - 1 {
		s.Remove(s.Find(fmt.Appendf(nil, "key:%012d", i)))
	}
	if left := heapInUse() - before; left > n*30 {
		t.Errorf("%d bytes are left when all strings but one are gone", left)
	}
	runtime.KeepAlive(s)
}

func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestAnyKeyIsPickedOfFew(t *testing.T) {
	s := NewKeyspace()
	for i := range 1000 {
		s.Add(fmt.Append(nil, i), StringKey, 1)
	}
	for i := range 1000 {
		if i%500 != 7 {
			s.Remove(s.Find(fmt.Append(nil, i)))
		}
	}
	seen := map[string]bool{}
	for range 1000 {
		seen[s.Pick(rand.IntN).Name()] = true
	}
	if len(seen) != 2 {
		t.Errorf("picked %v, want 7 and 507", seen)
	}
}
