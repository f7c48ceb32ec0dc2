package broker_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/storage"
)

// thing is what a name stands for in the naive model.
type thing struct {
	kind   broker.Type
	text   string
	fields map[string]string
	list   []string // from the left
	expiry int64
}

// keyModel drives a broker on a real store and plain maps with the same calls.
type keyModel struct {
	*harness
	real  *storage.Store
	names map[string]*thing
	tx    *broker.Tx
	box   *inbox
	c     *broker.Conn
	want  []string // what each reply to c has
	seed  byte
	watch map[string]bool // the names that c watches; broken or not
	broke bool
}

var keyNames = []string{"", "a", "b", "c", "d"}

func drawKey(t *rapid.T) string { return rapid.SampledFrom(keyNames).Draw(t, "name") }

// drawValue draws a value: mostly small, else large, and then one that the cache takes or not.
func (m *keyModel) drawValue(t *rapid.T) string {
	m.seed++
	return bytesOf(m.seed, rapid.SampledFrom([]int{0, 1, 5, 1024, 1025, 5000, 20_000}).Draw(t, "size"))
}

// check ends the test if a call failed.
func (m *keyModel) check(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatalf("call failed: %v", err)
	}
}

// expire drops what has expired.
func (m *keyModel) expire() {
	for name, x := range m.names {
		if x.expiry != 0 && x.expiry <= m.now.Load() {
			m.drop(name)
		}
	}
}

func (m *keyModel) touch(name string) { m.broke = m.broke || m.watch[name] }

func (m *keyModel) drop(name string) {
	delete(m.names, name)
	m.touch(name)
}

// of returns what the name stands for if it is of the kind or nothing; false if it is another.
func (m *keyModel) of(name string, kind broker.Type) (*thing, bool) {
	x := m.names[name]
	return x, x == nil || x.kind == kind
}

func (m *keyModel) make(name string, kind broker.Type) *thing {
	if m.names[name] == nil {
		m.names[name] = &thing{kind: kind, fields: map[string]string{}}
	}
	m.touch(name)
	return m.names[name]
}

// step makes one call, and the same in the model.
func (m *keyModel) step(t *rapid.T) {
	name := drawKey(t)
	key := []byte(name)
	switch op := rapid.SampledFrom(strings.Fields(
		"set set set get get get patch patch patch delete rename rename expire persist "+
			"field field field hget hget hdel push push pop watch unwatch broken")).Draw(t, "call"); op {
	case "set":
		value, expiry := m.drawValue(t), m.drawExpiry(t)
		m.check(m.tx.SetString(key, []byte(value), expiry))
		delete(m.names, name)
		m.make(name, broker.TypeString).text = value
		m.names[name].expiry = expiry
		m.expire()
	case "get":
		m.get(t, name)
	case "patch":
		m.patch(t, name)
	case "delete":
		existed, err := m.tx.Delete(key)
		m.check(err)
		m.same(t, existed, m.names[name] != nil)
		if existed {
			m.drop(name)
		}
	case "rename":
		m.rename(t, name)
	case "expire", "persist":
		at := int64(0)
		if op == "expire" {
			at = m.drawExpiry(t)
		}
		ok, err := m.tx.SetExpiry(key, at)
		m.check(err)
		m.same(t, ok, m.names[name] != nil)
		if ok {
			if at != 0 || m.names[name].expiry != 0 {
				m.touch(name)
			}
			m.names[name].expiry = at
			m.expire()
		}
	case "field", "hget", "hdel":
		m.hash(t, op, name)
	case "push", "pop":
		m.list(t, op, name)
	case "watch":
		m.tx.Watch(m.c, key)
		m.watch[name] = true
	case "unwatch":
		m.tx.Unwatch(m.c)
		m.watch, m.broke = map[string]bool{}, false
	case "broken":
		m.same(t, m.tx.WatchBroken(m.c), m.broke)
	}
}

func (m *keyModel) same(t *rapid.T, got, want any) {
	t.Helper()
	if got != want {
		t.Fatalf("got %v, want %v", got, want)
	}
}

func (m *keyModel) drawExpiry(t *rapid.T) int64 {
	if !rapid.Bool().Draw(t, "expires") {
		return 0
	}
	return m.now.Load() + rapid.Int64Range(-1, 60).Draw(t, "ttl")
}

func (m *keyModel) get(t *rapid.T, name string) {
	x, ok := m.of(name, broker.TypeString)
	v, exists, err := m.tx.String([]byte(name))
	if !ok {
		m.same(t, err, broker.ErrWrongType)
		return
	}
	m.check(err)
	m.same(t, exists, x != nil)
	text, from, to := "", 0, 1<<20
	if x != nil {
		m.same(t, v.Size, len(x.text))
		if value, err := m.tx.Bytes(v); err != nil || string(value) != x.text {
			t.Fatalf("%q is %.20q, want %.20q, %v", name, value, x.text, err)
		}
		if rapid.Bool().Draw(t, "part") {
			from = rapid.IntRange(0, len(x.text)).Draw(t, "from")
			to = rapid.IntRange(from, len(x.text)).Draw(t, "to")
		}
		text = x.text[from:min(to, len(x.text))]
	}
	m.check(sendPart(m.tx, m.c, name, from, to))
	m.want = append(m.want, text)
}

func (m *keyModel) patch(t *rapid.T, name string) {
	x, ok := m.of(name, broker.TypeString)
	at, data := rapid.SampledFrom([]int{0, 3, 1022, 6000}).Draw(t, "at"), m.drawValue(t)
	if x != nil && ok && rapid.Bool().Draw(t, "append") {
		at = len(x.text)
	}
	size, err := m.tx.PatchString([]byte(name), at, []byte(data))
	if !ok {
		m.same(t, err, broker.ErrWrongType)
		return
	}
	m.check(err)
	x = m.make(name, broker.TypeString)
	text := []byte(x.text)
	if len(text) < at {
		text = append(text, make([]byte, at-len(text))...)
	}
	end := min(len(text), at+len(data))
	x.text = string(text[:at]) + data + string(text[end:])
	m.same(t, size, len(x.text))
}

func (m *keyModel) rename(t *rapid.T, from string) {
	to := drawKey(t)
	ok, err := m.tx.Rename([]byte(from), []byte(to))
	m.check(err)
	x := m.names[from]
	m.same(t, ok, x != nil)
	if !ok || from == to {
		return
	}
	m.drop(from)
	m.names[to] = x
	m.touch(to)
}

func (m *keyModel) hash(t *rapid.T, op, name string) {
	field := rapid.SampledFrom([]string{"", "f", "g", "h"}).Draw(t, "field")
	x, ok := m.of(name, broker.TypeHash)
	had, value := false, ""
	if ok && x != nil {
		value, had = x.fields[field]
	}
	var got bool
	var err error
	switch op {
	case "field":
		value = m.drawValue(t)
		got, err = m.tx.SetField([]byte(name), []byte(field), []byte(value))
		got = !got
	case "hget":
		_, got, err = m.tx.Field([]byte(name), []byte(field))
	case "hdel":
		got, err = m.tx.DeleteField([]byte(name), []byte(field))
	}
	if !ok {
		m.same(t, err, broker.ErrWrongType)
		return
	}
	m.check(err)
	m.same(t, got, had)
	switch {
	case op == "field":
		m.make(name, broker.TypeHash).fields[field] = value
	case op == "hget":
		m.check(sendField(name, field)(m.tx, m.c))
		m.want = append(m.want, value)
	case had:
		m.touch(name)
		if delete(x.fields, field); len(x.fields) == 0 {
			m.drop(name)
		}
	}
}

func (m *keyModel) list(t *rapid.T, op, name string) {
	x, ok := m.of(name, broker.TypeList)
	var err error
	value := ""
	if op == "push" {
		value = m.drawValue(t)
		_, err = m.tx.PushEnd([]byte(name), broker.Newest, [][]byte{[]byte(value)})
	} else if ok {
		m.check(reply(m.c)(m.tx.Pop([]byte(name), broker.Selection{End: broker.Newest})))
	}
	switch {
	case !ok:
		if op == "push" {
			m.same(t, err, broker.ErrWrongType)
		}
	case op == "push":
		m.check(err)
		x = m.make(name, broker.TypeList)
		x.list = slices.Insert(x.list, 0, value)
	case x == nil:
		m.want = append(m.want, "")
	default:
		m.touch(name)
		m.want = append(m.want, x.list[0])
		if x.list = x.list[1:]; len(x.list) == 0 {
			m.drop(name)
		}
	}
}

// compare looks at every name, and at all replies so far.
func (m *keyModel) compare() {
	m.t.Helper()
	m.expire()
	m.together(func(tx *broker.Tx) error {
		m.compareNames(tx)
		for _, name := range keyNames {
			x := m.names[name]
			if x == nil {
				x = &thing{}
			}
			at, ok := tx.Expiry([]byte(name))
			if got := tx.Type([]byte(name)); got != x.kind || ok != (x.kind != 0) || at != x.expiry {
				m.t.Fatalf("%q is a %v that expires at %d, want a %v and %d", name, got, at, x.kind, x.expiry)
			}
			m.compareThing(tx, []byte(name), x)
		}
		return nil
	})
	var got []string
	for _, reply := range m.box.got {
		got = append(got, strings.Join(reply, "|"))
	}
	if !slices.Equal(got, m.want) {
		for i := range min(len(got), len(m.want)) {
			if got[i] != m.want[i] {
				m.t.Fatalf("reply %d of %d has %d bytes %.20q, want %d bytes %.20q", i, len(got), len(got[i]), got[i], len(m.want[i]), m.want[i])
			}
		}
		m.t.Fatalf("%d replies, want %d", len(got), len(m.want))
	}
	m.box.got, m.want = nil, nil
}

func (m *keyModel) compareThing(tx *broker.Tx, name []byte, x *thing) {
	switch x.kind {
	case broker.TypeString:
		m.check(sendPart(tx, m.c, string(name), 0, 1<<20))
		m.want = append(m.want, x.text)
	case broker.TypeHash:
		n, err := tx.HashLen(name)
		m.check(err)
		if n != len(x.fields) {
			m.t.Fatalf("%q has %d fields, want %d", name, n, len(x.fields))
		}
		m.check(tx.Fields(name, func(field []byte, v broker.Value) bool {
			if v.Size != len(x.fields[string(field)]) {
				m.t.Fatalf("field %q of %q has %d bytes, want %q", field, name, v.Size, x.fields)
			}
			return true
		}))
		for field, value := range x.fields {
			m.check(sendField(string(name), field)(tx, m.c))
			m.want = append(m.want, value)
		}
	case broker.TypeList:
		m.check(reply(m.c)(tx.Range(name, 0, len(x.list))))
		m.want = append(m.want, strings.Join(x.list, "|"))
	}
}

// compareNames scans, and counts.
func (m *keyModel) compareNames(tx *broker.Tx) {
	m.check(tx.CheckNames())
	expiring, seen := 0, map[string]bool{}
	for _, x := range m.names {
		if x.expiry != 0 {
			expiring++
		}
	}
	for cursor := uint64(0); ; {
		cursor = tx.Scan(cursor, 1, func(name []byte, kind broker.Type) {
			if x := m.names[string(name)]; x == nil || x.kind != kind || seen[string(name)] {
				m.t.Fatalf("a scan gives the %v %q", kind, name)
			}
			seen[string(name)] = true
		})
		if cursor == 0 {
			break
		}
	}
	if n, e := tx.NameCount(0); n != len(m.names) || e != expiring || len(seen) != n {
		m.t.Fatalf("%d names, %d of them expire, %d were scanned: want %d and %d", n, e, len(seen), len(m.names), expiring)
	}
}

func (m *keyModel) attach() {
	m.box = &inbox{}
	m.c = m.b.Attach(m.box, groups)
	m.watch, m.broke = map[string]bool{}, false
}

// reopen closes and opens the broker, and its store if that is on disk.
func (m *keyModel) reopen(dir string) {
	m.compare()
	if dir == "" {
		m.restart()
		m.attach()
		return
	}
	m.check(m.b.Close())
	m.check(m.real.Close())
	m.open(dir)
}

// open starts a broker on the store in a folder.
func (m *keyModel) open(dir string) {
	store, err := storage.Open(dir, storage.Options{Sync: storage.SyncNever()})
	m.check(err)
	state, err := recovery.Restore(store, recovery.Options{Now: m.now.Load()})
	m.check(err)
	if f := state.Report.Findings; len(f) > 0 {
		m.t.Fatalf("recovery found: %v", f)
	}
	m.real = store
	m.b = newDriver(store, state, broker.Options{Cache: 1 << 16}, m.clocks)
	m.attach()
}

func TestKeyspaceDoesWhatMapsDo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir := ""
		if rapid.IntRange(0, 9).Draw(t, "on disk") == 9 {
			var err error
			if dir, err = os.MkdirTemp("", "keyspace"); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = os.RemoveAll(dir) }()
		}
		keyspaceDoesWhatMapsDo(t, dir)
	})
}

// keyspaceDoesWhatMapsDo makes calls of a broker on a store in a folder, or in memory if that has
// no name.
func keyspaceDoesWhatMapsDo(t *rapid.T, dir string) {
	m := &keyModel{harness: &harness{t: t}, names: map[string]*thing{}}
	if dir == "" {
		m.harness = newHarness(t)
		m.attach()
	} else {
		m.now.Store(startTime)
		m.open(dir)
		defer func() { _ = m.real.Close() }()
	}
	defer func() { _ = m.b.Close() }()
	t.Repeat(map[string]func(*rapid.T){
		"calls": func(t *rapid.T) {
			n := rapid.IntRange(1, 8).Draw(t, "n")
			m.expire()
			m.together(func(tx *broker.Tx) error {
				m.tx = tx
				for range n {
					m.step(t)
				}
				return nil
			})
		},
		"time passes": func(t *rapid.T) { m.now.Add(rapid.Int64Range(1, 40).Draw(t, "ms")) },
		"flush": func(t *rapid.T) {
			if rapid.IntRange(0, 5).Draw(t, "really") > 0 {
				t.Skip("not now")
			}
			m.expire()
			m.together(func(tx *broker.Tx) error { return tx.Flush(true) })
			for name := range m.names {
				m.drop(name)
			}
		},
		"restart": func(t *rapid.T) {
			if rapid.IntRange(0, 5).Draw(t, "really") > 0 {
				t.Skip("not now")
			}
			m.reopen(dir)
		},
		"compare": func(*rapid.T) { m.compare() },
	})
	m.reopen(dir)
	m.compare()
}
