package keyspace

import (
	"fmt"
	"runtime"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdfast-queue/holdfast/index"
)

// modelKey is a name in the naive model of a directory.
type modelKey struct {
	entry  *Entry
	kind   Kind
	queue  index.QueueID
	expiry int64
	fields map[string]*Field
}

// name is a name of a database.
type name struct {
	db   uint8
	name string
}

// directoryModel drives a directory and plain maps with the same calls. Scans are under way all the
// time: toSee holds the names that were there when the scan began and still are.
type directoryModel struct {
	d      *Directory
	keys   map[name]*modelKey
	number uint64

	scanned uint8 // the database
	cursor  uint64
	toSee   map[string]bool
	fCursor uint64
	fKey    *modelKey
	fToSee  map[string]bool
}

func drawName(t *rapid.T) string { return fmt.Sprint("n", rapid.IntRange(0, 40).Draw(t, "name")) }

func draw(t *rapid.T) name {
	return name{uint8(rapid.IntRange(0, 2).Draw(t, "db")), drawName(t)}
}

// make returns a name, which stands for nothing if it is new.
func (m *directoryModel) make(n name) *modelKey {
	e := m.d.Make(n.db, []byte(n.name))
	k := m.keys[n]
	if k == nil {
		k = &modelKey{entry: e}
		m.keys[n] = k
	}
	return k
}

// any draws a name that stands for something.
func (m *directoryModel) any(t *rapid.T) (name, *modelKey) {
	n := draw(t)
	if k := m.keys[n]; k != nil && k.kind != None {
		return n, k
	}
	t.Skip("no such key")
	return n, nil
}

func (m *directoryModel) hash(t *rapid.T) *modelKey {
	_, k := m.any(t)
	if k.kind != Hash {
		t.Skip("no hash")
	}
	return k
}

// set lets a name stand for something else.
func (m *directoryModel) set(n name, kind Kind) {
	k := m.keys[n]
	if m.fKey == k {
		m.fKey, m.fCursor = nil, 0
	}
	k.kind, k.expiry, k.fields = kind, 0, map[string]*Field{}
	if kind == None {
		if n.db == m.scanned {
			delete(m.toSee, n.name)
		}
		if k.queue == 0 {
			delete(m.keys, n)
		}
	}
}

func (m *directoryModel) Set(t *rapid.T) {
	n := draw(t)
	k, kind := m.make(n), Kind(rapid.IntRange(0, 3).Draw(t, "kind"))
	was := k.kind
	if m.d.Set(k.entry, kind); was == kind && kind != None {
		return
	}
	if k.entry.Kind() != kind || k.entry.Expiry() != 0 || k.entry.Version != 0 {
		t.Fatalf("Set gave %+v", k.entry)
	}
	m.set(n, kind)
}

func (m *directoryModel) SetQueue(t *rapid.T) {
	n := draw(t)
	k := m.make(n)
	k.queue = index.QueueID(rapid.IntRange(0, 2).Draw(t, "queue"))
	if m.d.SetQueue(k.entry, k.queue); k.kind == None {
		m.set(n, None)
	}
}

func (m *directoryModel) Rename(t *rapid.T) {
	from, k := m.any(t)
	to := draw(t)
	if k.kind == Queue || from == to {
		t.Skip("nothing to rename")
	}
	if old := m.keys[to]; old != nil {
		m.d.Set(old.entry, None)
		m.set(to, None)
	}
	kind, expiry, fields := k.kind, k.expiry, k.fields
	value := m.d.Detach(k.entry)
	m.set(from, None)
	moved := m.make(to)
	m.d.Attach(moved.entry, value)
	moved.kind, moved.expiry, moved.fields = kind, expiry, fields
}

func (m *directoryModel) SetExpiry(t *rapid.T) {
	_, k := m.any(t)
	k.expiry = rapid.Int64Range(0, 9).Draw(t, "expiry")
	m.d.SetExpiry(k.entry, k.expiry)
}

func (m *directoryModel) Due(t *rapid.T) {
	now := rapid.Int64Range(0, 9).Draw(t, "now")
	first := int64(0)
	for _, k := range m.keys {
		if k.expiry != 0 && (first == 0 || k.expiry < first) {
			first = k.expiry
		}
	}
	if at, ok := m.d.Deadline(); ok != (first != 0) || at != first {
		t.Fatalf("Deadline = %d, %v, want %d", at, ok, first)
	}
	e := m.d.Due(now)
	if (e != nil) != (first != 0 && first <= now) || e != nil && e.Expiry() != first {
		t.Fatalf("%v is due at %d, want something of %d", e, now, first)
	}
	if e != nil {
		m.d.Set(e, None)
		m.set(name{e.Database(), e.Name()}, None)
	}
}

func (m *directoryModel) AddFields(t *rapid.T) {
	k := m.hash(t)
	for range rapid.SampledFrom([]int{1, 20}).Draw(t, "burst") {
		name := drawName(t)
		if k.fields[name] == nil {
			m.number++
			k.fields[name] = k.entry.AddField([]byte(name), m.number)
		}
	}
}

func (m *directoryModel) RemoveField(t *rapid.T) {
	k := m.hash(t)
	if f := k.fields[drawName(t)]; f != nil {
		k.entry.RemoveField(f)
		delete(k.fields, f.Name())
		if k == m.fKey {
			delete(m.fToSee, f.Name())
		}
	}
}

func (m *directoryModel) Scan(t *rapid.T) {
	n := rapid.IntRange(0, 9).Draw(t, "n")
	if m.toSee == nil {
		m.scanned, m.toSee = uint8(rapid.IntRange(0, 2).Draw(t, "db")), map[string]bool{}
		for n, k := range m.keys {
			if n.db == m.scanned && k.kind != None {
				m.toSee[n.name] = true
			}
		}
	}
	calls := 0
	m.cursor = m.d.Scan(m.scanned, m.cursor, n, func(e *Entry) {
		calls++
		delete(m.toSee, e.Name())
	})
	if calls > max(n, 1) {
		t.Fatalf("a scan of %d slots gave %d names", n, calls)
	}
	if m.cursor == 0 {
		if len(m.toSee) > 0 {
			t.Fatalf("a scan did not give %v", m.toSee)
		}
		m.toSee = nil
	}
}

func (m *directoryModel) ScanFields(t *rapid.T) {
	if m.fKey == nil {
		m.fKey, m.fToSee = m.hash(t), map[string]bool{}
		for name := range m.fKey.fields {
			m.fToSee[name] = true
		}
	}
	m.fCursor = m.fKey.entry.ScanFields(m.fCursor, 3, func(f *Field) { delete(m.fToSee, f.Name()) })
	if m.fCursor == 0 {
		if len(m.fToSee) > 0 {
			t.Fatalf("a scan did not give the fields %v", m.fToSee)
		}
		m.fKey = nil
	}
}

// Flush gives what stood for something, and empties one database only.
func (m *directoryModel) Flush(t *rapid.T) {
	if rapid.IntRange(0, 9).Draw(t, "really") > 0 {
		t.Skip("not now")
	}
	db := uint8(rapid.IntRange(0, 2).Draw(t, "db"))
	want, _ := m.d.Len(db)
	for _, e := range m.d.Flush(db) {
		if e != nil {
			if want--; m.keys[name{db, e.Name()}].entry != e || m.d.Has(e) {
				t.Fatalf("%v was no name", e)
			}
		}
	}
	if want != 0 {
		t.Fatalf("%d names too few in all", want)
	}
	for n, k := range m.keys {
		if n.db == db {
			k.queue = 0
			m.set(n, None)
		}
	}
}

// Check compares everything.
func (m *directoryModel) Check(t *rapid.T) {
	var names, expiring [3]int
	for db := range uint8(3) {
		for i := range 41 {
			n := name{db, fmt.Sprint("n", i)}
			want, got := m.keys[n], m.d.Find(db, []byte(n.name))
			if (want == nil) != (got == nil) || want != nil && (want.entry != got || !m.d.Has(got) || got.Expiry() != want.expiry ||
				got.Name() != n.name || got.Database() != db || got.Kind() != want.kind || got.Queue() != want.queue) {
				t.Fatalf("%v is %+v, want %+v", n, got, want)
			}
			if want == nil || want.kind == None {
				continue
			}
			if names[db]++; want.expiry != 0 {
				expiring[db]++
			}
			if want.kind == Hash {
				want.check(t)
			}
		}
		if n, e := m.d.Len(db); n != names[db] || e != expiring[db] {
			t.Fatalf("%d names, %d expire, want %d and %d", n, e, names[db], expiring[db])
		}
	}
}

// check compares the fields of a hash.
func (k *modelKey) check(t *rapid.T) {
	for i := range 41 {
		name := fmt.Sprint("n", i)
		if k.entry.Field([]byte(name)) != k.fields[name] {
			t.Fatalf("field %s is %v, want %v", name, k.entry.Field([]byte(name)), k.fields[name])
		}
	}
	seen := 0
	k.entry.ScanFields(0, 1<<20, func(f *Field) {
		if k.fields[f.Name()] == f {
			seen++
		}
	})
	if seen != len(k.fields) || k.entry.Fields() != seen || (k.entry.LastField() == nil) != (seen == 0) {
		t.Fatalf("%d fields, %d of them seen, want %d", k.entry.Fields(), seen, len(k.fields))
	}
}

func TestADirectoryDoesWhatMapsDo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &directoryModel{d: New(), keys: map[name]*modelKey{}}
		t.Repeat(rapid.StateMachineActions(m))
	})
}

func addString(d *Directory, text string) *Entry {
	e := d.Make(0, []byte(text))
	d.Set(e, String)
	return e
}

func TestSystemSmallStringsTakeLittleMemory(t *testing.T) {
	const n = 200_000
	d := New()
	before := heapInUse()
	for i := range n {
		addString(d, fmt.Sprintf("key:%012d", i)).Small = []byte("0123456789abcdef")
	}
	per := (heapInUse() - before) / n
	t.Logf("%d bytes for each string, of which 32 are name and value", per)
	if per > 250 {
		t.Errorf("%d bytes for each string, want at most 250", per)
	}
	for i := range n - 1 {
		d.Set(d.Find(0, fmt.Appendf(nil, "key:%012d", i)), None)
	}
	if left := heapInUse() - before; left > n*30 {
		t.Errorf("%d bytes are left when all strings but one are gone", left)
	}
	runtime.KeepAlive(d)
}

func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
