package index

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// deque is a queue of one priority that grows at both ends, and what it must hold.
type deque struct {
	x         *Index
	q         QueueID
	high, low uint64
	left      []Packet // from the newest end on
	hashes    map[ID]uint64
}

// newDeque starts where the sequences of a store start: the two ends meet in the middle.
func newDeque() *deque {
	d := &deque{x: New(), high: 1 << 63, low: 1<<63 - 1, hashes: map[ID]uint64{}}
	d.q = d.x.AddQueue()
	return d
}

// push adds a packet without a key at an end.
func (d *deque) push(end End, hash uint64, wide bool) {
	e := Entry{Queue: d.q, Priority: 128, Hash: hash, Wide: wide}
	if end == Newest {
		e.Seq = d.high
		d.high++
	} else {
		e.Seq = d.low
		d.low--
	}
	p, _ := d.x.Get(d.x.Push(e, 0))
	d.hashes[p.ID] = hash
	if end == Newest {
		d.left = slices.Insert(d.left, 0, p)
	} else {
		d.left = append(d.left, p)
	}
}

// pop takes a packet from an end of the model, which must not be empty.
func (d *deque) pop(end End) Packet {
	i := 0
	if end == Oldest {
		i = len(d.left) - 1
	}
	p := d.left[i]
	d.left = slices.Delete(d.left, i, i+1)
	return p
}

func TestAQueueOfOnePriorityIsADequeAroundTheMiddleOfTheSequences(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := newDeque()
		wideToo := rapid.Bool().Draw(t, "wide too")
		push := func(t *rapid.T) {
			end, hash := drawEnd(t), rapid.Uint64Range(0, 3).Draw(t, "hash")
			for i := range rapid.SampledFrom([]int{1, 70}).Draw(t, "burst") {
				d.push(end, hash+uint64(i%3)<<32, wideToo && i%2 == 1)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"Push": push, "Push more": push,
			"Pop": func(t *rapid.T) {
				end := drawEnd(t)
				for range rapid.IntRange(1, 60).Draw(t, "n") {
					got := d.x.Pop(d.q, Selection{End: end}, nil)
					if len(d.left) == 0 {
						if len(got) > 0 {
							t.Fatalf("an empty list gave %+v", got)
						}
						return
					}
					if want := d.pop(end); len(got) != 1 || got[0] != want {
						t.Fatalf("Pop gave %+v, want %+v", got, want)
					}
				}
			},
			"FindValue": func(t *rapid.T) {
				hash, end := rapid.Uint64Range(1, 3).Draw(t, "hash")+1<<32, drawEnd(t)
				limit := rapid.SampledFrom([]int{0, 1, 20}).Draw(t, "max")
				want := slices.DeleteFunc(slices.Clone(d.left), func(p Packet) bool { return d.hashes[p.ID] != hash })
				if end == Oldest {
					slices.Reverse(want)
				}
				if limit > 0 {
					want = want[:min(limit, len(want))]
				}
				if got, _ := d.x.FindValue(d.q, hash, end, Place{}, limit, nil); !slices.Equal(got, want) {
					t.Fatalf("FindValue gave %d packets, want %d", len(got), len(want))
				}
			},
			"": func(t *rapid.T) {
				if err := d.x.Check(); err != nil {
					t.Fatal(err)
				}
				from := rapid.IntRange(0, 500).Draw(t, "from")
				n := rapid.SampledFrom([]int{1, 10, 1000}).Draw(t, "n")
				want := d.left[min(from, len(d.left)):]
				want = want[:min(n, len(want))]
				if got := d.x.Elements(d.q, from, n, nil); !slices.Equal(got, want) {
					t.Fatalf("%d packets from %d on are %d, want %d", n, from, len(got), len(want))
				}
				for i, p := range want {
					if at := d.x.Position(p.ID); at != from+i {
						t.Fatalf("the packet at %d is at %d", from+i, at)
					}
				}
			},
		})
	})
}

func TestValueRules(t *testing.T) {
	// found searches for a hash and returns the sequences.
	found := func(b *bench, hash uint64) []uint64 {
		var seqs []uint64
		packets, _ := b.FindValue(b.q, hash, Newest, Place{}, 0, nil)
		for _, p := range packets {
			seqs = append(seqs, p.Seq)
		}
		return seqs
	}
	// fill makes the queue so long that a search makes a tree.
	fill := func(b *bench) {
		for range 2 * searchedByWalk {
			b.seq++
			b.Push(Entry{Queue: b.q, Priority: 128, Seq: b.seq, Hash: 1}, 0)
		}
	}
	checkRules(t, map[string]func(b *bench){
		"a packet with a key is not found": func(b *bench) {
			b.Push(Entry{Queue: b.q, Priority: 1, Seq: 1, Hash: 7, Key: []byte{}}, 0)
			if got := found(b, 7); got != nil {
				b.t.Fatalf("found %v", got)
			}
		},
		"what is unknown has no position, and nothing is found there": func(b *bench) {
			other, _ := b.FindValue(9, 1, Newest, Place{}, 0, nil)
			worst, _ := b.FindValue(b.q, 1, Oldest+1, Place{}, 0, nil)
			if at := b.Position(9); at != -1 || other != nil || worst != nil {
				b.t.Fatalf("the position is %d", at)
			}
		},
		"a look that goes on in several lanes finds no more what has gone": func(b *bench) {
			for i := range uint64(6) {
				b.Push(Entry{Queue: b.q, Priority: 128, Seq: i + 1, Tags: []byte{'a' + byte(i%2)}}, 0)
			}
			next := b.NextBehind(b.q, Newest, Place{}, 4, nil)
			b.Remove(next[2].ID)
			if got := b.NextBehind(b.q, Newest, next[3].Place(), 1, nil); got[0].Seq != 2 {
				b.t.Fatalf("found %+v", got)
			}
			b.NextBehind(b.q, Newest, Place{}, 2, nil)
			b.Remove(next[3].ID)
			if got := b.NextBehind(b.q, Newest, next[1].Place(), 1, nil); got[0].Seq != 2 {
				b.t.Fatalf("found %+v", got)
			}
		},
		"a claimed packet is found again when it comes back": func(b *bench) {
			fill(b)
			b.seq++
			id := b.Push(Entry{Queue: b.q, Priority: 1, Seq: b.seq, Hash: 2}, 0)
			for _, want := range []int{1, 0} {
				if got := found(b, 2); len(got) != want {
					b.t.Fatalf("found %v, want %d", got, want)
				}
				b.claim(0)
			}
			b.SetState(id, Ready, 0)
			if got := found(b, 2); len(got) != 1 {
				b.t.Fatalf("found %v", got)
			}
		},
		"an emptied queue keeps no tree": func(b *bench) {
			fill(b)
			found(b, 1)
			for b.Counts(b.q).Ready > 0 {
				b.Pop(b.q, Selection{}, nil)
			}
			if err := b.DropQueue(b.q); err != nil || b.forest.Live != 0 {
				b.t.Fatalf("%v, %d nodes", err, b.forest.Live)
			}
		},
		"two packets of one sequence and value are found": func(b *bench) {
			fill(b)
			b.Push(Entry{Queue: b.q, Priority: 1, Seq: 1, Hash: 1}, 0)
			if n := len(found(b, 1)); n != 2*searchedByWalk+1 {
				b.t.Fatalf("found %d", n)
			}
			b.Pop(b.q, Selection{}, nil)
			found(b, 1)
			b.Push(Entry{Queue: b.q, Priority: 1, Seq: 1, Hash: 1}, 0)
			if n := len(found(b, 1)); n != 2*searchedByWalk+1 {
				b.t.Fatalf("found %d with a tree", n)
			}
		},
	})
}
