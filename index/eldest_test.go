package index

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestEldestFindsWhatWasPushedFirst(t *testing.T) {
	const middle = 1 << 40
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		x := New()
		q := x.AddQueue()
		high, low := uint64(middle), uint64(middle-1)
		pushed := make(map[uint64]int) // at which turn, by identity
		var ids []ID
		for turn := range 1 + r.IntN(400) {
			seq := high
			if r.IntN(3) == 0 {
				seq, low = low, low-1
			} else {
				high++
			}
			e := Entry{Queue: q, Priority: uint32(r.IntN(5)), Seq: seq, Wide: seed%4 == 0 && r.IntN(2) == 0}
			ids = append(ids, x.Push(e, 0))
			pushed[seq] = turn
		}
		for _, id := range ids {
			if r.IntN(3) > 0 {
				x.Remove(id)
			}
		}
		want, found := -1, -1
		for p := range x.Each(q, Ready, Place{}, nil, nil) {
			if turn := pushed[p.Identity]; p.Priority > 0 && (want < 0 || turn < want) {
				want = turn
			}
		}
		looked := x.Eldest(q, middle, 100, func(p Packet) {
			if turn := pushed[p.Identity]; found < 0 || turn < found {
				found = turn
			}
		})
		if found != want || looked > 8 {
			t.Fatalf("seed %d: turn %d after %d looks, want %d", seed, found, looked, want)
		}
	}
}

func TestEldestLooksAtTheWorstPrioritiesAndNoMoreThanItMay(t *testing.T) {
	x := New()
	q := x.AddQueue()
	for i := range uint32(100) {
		x.Push(Entry{Queue: q, Priority: 1 + i, Seq: 1000 + uint64(i)}, 0)
	}
	var found []uint64
	if looked := x.Eldest(q, 1000, 3, func(p Packet) { found = append(found, p.Identity) }); looked != 3 {
		t.Errorf("looked at %d priorities, want 3", looked)
	}
	if !slices.Equal(found, []uint64{1099, 1098, 1097}) {
		t.Errorf("found %v, want the three worst", found)
	}
	if looked := x.Eldest(q+1, 1000, 3, nil); looked != 0 {
		t.Errorf("an unknown queue was looked at %d times", looked)
	}
}
