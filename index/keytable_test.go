package index

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// keyOwner is what a group belongs to.
type keyOwner struct {
	queue QueueID
	key   string
}

// keyModel drives a key table and a map with the same calls.
type keyModel struct {
	kt   keyTable
	want map[keyOwner]uint32
}

// each calls f for a run of keys of one queue.
func (m *keyModel) each(t *rapid.T, f func(keyOwner)) {
	q := QueueID(rapid.IntRange(1, 2).Draw(t, "queue"))
	start := rapid.SampledFrom([]string{"", "123456789", "a key that needs more than one block "}).Draw(t, "start")
	from := rapid.IntRange(0, 1000).Draw(t, "from")
	for i := range rapid.IntRange(1, 400).Draw(t, "n") {
		f(keyOwner{q, fmt.Sprint(start, from+i)})
	}
}

func (m *keyModel) Obtain(t *rapid.T) {
	m.each(t, func(o keyOwner) {
		id := m.kt.findOrAdd(o.queue, []byte(o.key))
		if had, ok := m.want[o]; ok && had != id {
			t.Fatalf("obtain of %v = %d, want %d", o, id, had)
		}
		m.want[o] = id
	})
}

func (m *keyModel) Remove(t *rapid.T) {
	m.each(t, func(o keyOwner) {
		if id, ok := m.want[o]; ok {
			m.kt.remove(id)
			delete(m.want, o)
		}
	})
}

func (m *keyModel) RemoveNearlyAll(t *rapid.T) {
	for o, id := range m.want {
		if len(m.want) <= 10 {
			break
		}
		m.kt.remove(id)
		delete(m.want, o)
	}
}

func (m *keyModel) Find(t *rapid.T) {
	m.each(t, func(o keyOwner) {
		if id := m.kt.find(o.queue, []byte(o.key)); id != m.want[o] {
			t.Fatalf("find of %v = %d, want %d", o, id, m.want[o])
		}
	})
}

func (m *keyModel) verify(t *rapid.T) {
	var key []byte
	for o, id := range m.want {
		if found := m.kt.find(o.queue, []byte(o.key)); found != id {
			t.Fatalf("find of %v = %d, want %d", o, found, id)
		}
		if key = m.kt.appendKey(key[:0], id); string(key) != o.key {
			t.Fatalf("the key of group %d is %q, want %q", id, key, o.key)
		}
	}
	live := m.kt.groups.Live
	if live != uint32(len(m.want)) || m.kt.buckets.size < live || m.kt.buckets.size > 8*max(live, minBuckets) {
		t.Fatalf("%d groups in %d buckets, want %d", live, m.kt.buckets.size, len(m.want))
	}
}

func TestKeyTableDoesWhatAMapDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &keyModel{kt: newKeyTable(), want: map[keyOwner]uint32{}}
		t.Repeat(map[string]func(*rapid.T){
			"Obtain": m.Obtain, "Remove": m.Remove, "RemoveNearlyAll": m.RemoveNearlyAll, "Find": m.Find, "": m.verify,
		})
		for _, id := range m.want {
			m.kt.remove(id)
		}
		if m.kt.groups.Live != 0 || m.kt.blocks.Live != 0 {
			t.Fatalf("%d groups and %d blocks leaked", m.kt.groups.Live, m.kt.blocks.Live)
		}
	})
}

// Whatever two keys share, a difference anywhere tells them apart.
func TestKeysAreComparedByteForByte(t *testing.T) {
	for _, n := range []int{1, 7, 8, 9, 12, 13, 20, 21, 32, 33, 65535} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			kt := newKeyTable()
			key := bytes.Repeat([]byte{0xff}, n)
			id := kt.findOrAdd(1, key)
			for _, i := range []int{0, n / 2, n - 1} {
				other := slices.Clone(key)
				other[i] = 0
				// The chain is given, so that the comparison alone decides, whatever the hash.
				if kt.findIn(id, 1, other) != 0 {
					t.Errorf("a key that differs at byte %d is found", i)
				}
			}
			if kt.findIn(id, 1, key[:n-1]) != 0 || kt.findIn(id, 1, append(slices.Clone(key), 0)) != 0 {
				t.Error("a shorter or a longer key is found")
			}
			if kt.findIn(id, 2, key) != 0 {
				t.Error("the key of another queue is found")
			}
			if kt.findIn(id, 1, slices.Clone(key)) != id {
				t.Error("the key itself is not found")
			}
		})
	}
}

// Keys of a MiB would hold others up if a table that grows, or a group that goes, read them again.
func TestAKeyIsReadOnlyWhereItIsAskedFor(t *testing.T) {
	kt := newKeyTable()
	key := func(i int) []byte { return fmt.Appendf(nil, "%1000d", i) }
	ids, hashes := make([]uint32, 50), make([]uint64, 50)
	for i := range ids {
		ids[i], hashes[i] = kt.findOrAdd(1, key(i)), kt.hash(1, key(i))
	}
	for _, id := range ids { // who reads its key finds another, or no block at all
		first := kt.blocks.At(kt.blocks.At(kt.groups.At(id).lastBlock()).next)
		first.data = [blockKey]byte{}
		kt.blocks.At(first.next).next = ^uint32(0)
	}
	for i := range 1000 {
		kt.findOrAdd(1, fmt.Append(nil, i))
	}
	for i, id := range ids {
		at := *kt.buckets.of(hashes[i])
		for at != id {
			if at == 0 {
				t.Fatalf("key %d is in another bucket now that the table has grown", i)
			}
			at = kt.groups.At(at).next
		}
	}
	for _, id := range ids {
		kt.remove(id)
	}
	if kt.groups.Live != 1000 || kt.blocks.Live != 0 {
		t.Errorf("%d groups and %d blocks are left", kt.groups.Live, kt.blocks.Live)
	}
}
