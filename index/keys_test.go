package index

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestKeyTableDoesWhatAMapDoes(t *testing.T) {
	type owner struct {
		queue QueueID
		key   string
	}
	rapid.Check(t, func(t *rapid.T) {
		kt := newKeyTable()
		want := map[owner]uint32{}
		draw := func(t *rapid.T) (from int, n int, long string, q QueueID) {
			return rapid.IntRange(0, 1000).Draw(t, "from"), rapid.IntRange(1, 400).Draw(t, "n"),
				rapid.SampledFrom([]string{"", "123456789", "a key that needs more than one block "}).Draw(t, "start"),
				QueueID(rapid.IntRange(1, 2).Draw(t, "queue"))
		}
		t.Repeat(map[string]func(*rapid.T){
			"obtain": func(t *rapid.T) {
				from, n, start, q := draw(t)
				for i := range n {
					o := owner{q, fmt.Sprint(start, from+i)}
					id := kt.obtain(q, []byte(o.key))
					if had, ok := want[o]; ok && had != id {
						t.Fatalf("obtain of %v = %d, want %d", o, id, had)
					}
					want[o] = id
				}
			},
			"remove": func(t *rapid.T) {
				from, n, start, q := draw(t)
				for i := range n {
					o := owner{q, fmt.Sprint(start, from+i)}
					if id, ok := want[o]; ok {
						kt.remove(id)
						delete(want, o)
					}
				}
			},
			"remove nearly all": func(t *rapid.T) {
				for o, id := range want {
					if len(want) <= 10 {
						break
					}
					kt.remove(id)
					delete(want, o)
				}
			},
			"find what is not there": func(t *rapid.T) {
				from, _, start, q := draw(t)
				o := owner{q, fmt.Sprint(start, from)}
				if id := kt.find(q, []byte(o.key)); id != want[o] {
					t.Fatalf("find of %v = %d, want %d", o, id, want[o])
				}
			},
			"": func(t *rapid.T) {
				var key []byte
				for o, id := range want {
					if found := kt.find(o.queue, []byte(o.key)); found != id {
						t.Fatalf("find of %v = %d, want %d", o, found, id)
					}
					if key = kt.appendKey(key[:0], id); string(key) != o.key {
						t.Fatalf("the key of group %d is %q, want %q", id, key, o.key)
					}
				}
				if kt.groups.live != uint32(len(want)) || kt.size < kt.groups.live || kt.size > 8*max(kt.groups.live, minBuckets) {
					t.Fatalf("%d groups in %d buckets, want %d", kt.groups.live, kt.size, len(want))
				}
			},
		})
		for _, id := range want {
			kt.remove(id)
		}
		if kt.groups.live != 0 || kt.blocks.live != 0 {
			t.Fatalf("%d groups and %d blocks leaked", kt.groups.live, kt.blocks.live)
		}
	})
}

// Whatever two keys share, a difference anywhere tells them apart.
func TestKeysAreComparedByteForByte(t *testing.T) {
	for _, n := range []int{1, 7, 8, 9, 12, 13, 20, 21, 32, 33, 65535} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			kt := newKeyTable()
			key := bytes.Repeat([]byte{0xff}, n)
			id := kt.obtain(1, key)
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
