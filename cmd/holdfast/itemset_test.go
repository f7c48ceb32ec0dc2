package main

import (
	"math/rand/v2"
	"testing"
)

func TestAnItemSetKnowsWhatIsIn(t *testing.T) {
	for name, draw := range map[string]func(r *rand.Rand) uint32{
		"items of one page":   func(r *rand.Rand) uint32 { return 7<<16 + r.Uint32N(1<<16) },
		"items of some pages": func(r *rand.Rand) uint32 { return 1<<32 - 1 - r.Uint32N(1<<18) },
		"items of any number": func(r *rand.Rand) uint32 { return r.Uint32() },
	} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			var s itemSet
			in := map[uint32]bool{}
			for range 200_000 {
				item := draw(r)
				if s.add(item) == in[item] {
					t.Fatalf("add(%d) = %v after %d items, want the opposite", item, in[item], len(in))
				}
				in[item] = true
			}
			for item := range in {
				if s.add(item) {
					t.Fatalf("item %d was forgotten", item)
				}
			}
		})
	}
}
