package cache

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// A record that is partly overwritten must never be found again, whatever is left of its head.
func TestCacheGivesARecordWholeOrNotAtAll(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	c := New(1 << 16)
	type kept struct {
		seq    uint64
		ref    uint32
		record []byte
	}
	var recent []kept
	found := 0
	for seq := uint64(1); seq <= 300_000; seq++ {
		k := kept{seq: seq, record: make([]byte, rng.IntN(200))}
		for i := range k.record {
			k.record[i] = byte(rng.Uint32())
		}
		k.ref = c.Add(seq, k.record)
		recent = append(recent, k)
		if len(recent) > 1000 { // twice what fits
			recent = recent[500:]
		}
		for range 4 {
			k := recent[rng.IntN(len(recent))]
			got := c.Get(k.ref, k.seq)
			if got == nil {
				continue
			}
			if found++; !bytes.Equal(got, k.record) {
				t.Fatalf("after %d records, record %d came back as % x instead of % x", seq, k.seq, got, k.record)
			}
		}
	}
	if found < 100_000 {
		t.Errorf("only %d records were found: the test looks past what is kept", found)
	}
}
