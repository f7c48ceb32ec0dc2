package recovery

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestSequencesThatAreThereTwiceAreFoundInAnyRoom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// By rising priority, and by rising sequence within one.
		runs := rapid.SliceOfN(rapid.SliceOf(rapid.OneOf(
			rapid.Uint64Range(1<<63, 1<<63+50),
			rapid.Uint64Range(1<<63, 1<<63+1<<20),
			rapid.SampledFrom([]uint64{0, 1, 1<<16 - 1, 1 << 16, 1<<64 - 1}),
		)), 0, 8).Draw(t, "runs")
		times := make(map[uint64]int)
		for i := range runs {
			slices.Sort(runs[i])
			runs[i] = slices.Compact(runs[i])
			for _, seq := range runs[i] {
				times[seq]++
			}
		}
		maps.DeleteFunc(times, func(_ uint64, n int) bool { return n == 1 })
		want := slices.Sorted(maps.Keys(times))

		found := make(map[uint64]bool)
		s := newSequences(func(seq uint64) { found[seq] = true })
		s.room = rapid.SampledFrom([]int{maxSequenceBytes, 8 * runOverhead, 12 * runOverhead}).Draw(t, "room")
		passes := 0
		for ; s.share < s.shares; s.share++ {
			for priority, run := range runs {
				for _, seq := range run {
					s.add(uint32(priority), seq)
				}
			}
			s.flush()
			passes++
		}
		if got := slices.Sorted(maps.Keys(found)); !slices.Equal(got, want) {
			t.Fatalf("found %d in %d passes, want %d", got, passes, want)
		}
	})
}
