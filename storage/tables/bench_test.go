package tables

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

const (
	benchTable = 1 << 20
	benchRun   = 60   // tables of the run below level 0
	benchEach  = 6500 // entries that a table holds
)

// benchSet makes a run of tables, and some in level 0 above it. Each has a window of its own, with
// keys from all over the run.
func benchSet(b *testing.B, above int) (v *View, keys int) {
	b.Helper()
	s := open(b, b.TempDir())
	keys = benchRun * benchEach
	var all Built
	add := func(level int, version uint64, ids func(yield func(int) bool)) {
		b.Helper()
		built, err := s.Build(level, benchTable, func(yield func(Entry, error) bool) {
			value := make([]byte, 128)
			for id := range ids {
				if !yield(Entry{Key: key(id), Value: value, Version: version}, nil) {
					return
				}
			}
		})
		if err != nil {
			b.Fatal(err)
		}
		all = append(all, built...)
	}
	add(6, 1, func(yield func(int) bool) {
		for id := 0; id < keys && yield(id); id++ {
		}
	})
	r := rand.New(rand.NewPCG(1, 1))
	for n := range above {
		add(0, uint64(n)+2, func(yield func(int) bool) {
			for id := r.IntN(benchRun); id < keys && yield(id); id += 1 + r.IntN(2*benchRun-1) {
			}
		})
	}
	if err := s.Adopt(Adoption{Add: all, Window: uint64(above) + 1}); err != nil {
		b.Fatal(err)
	}
	v = s.View()
	b.Cleanup(v.Close)
	return v, keys
}

func eachHeight(b *testing.B, fn func(b *testing.B, v *View, keys int)) {
	for _, above := range []int{4, 16, 32, 64} {
		b.Run(fmt.Sprint(above), func(b *testing.B) {
			v, keys := benchSet(b, above)
			if n := len(v.List.Tables); n < benchRun+above {
				b.Fatalf("%d tables", n)
			}
			b.ResetTimer()
			fn(b, v, keys)
		})
	}
}

func BenchmarkGet(b *testing.B) {
	eachHeight(b, func(b *testing.B, v *View, keys int) {
		for b.Loop() {
			if _, ok, err := v.Get(key(rand.IntN(keys))); !ok || err != nil {
				b.Fatal(ok, err)
			}
		}
	})
}

// BenchmarkScan scans all, and gives the time for each entry.
func BenchmarkScan(b *testing.B) {
	eachHeight(b, func(b *testing.B, v *View, _ int) {
		for b.Loop() {
			if err := scan(v, func(Entry) {}); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(v.List.Entries), "ns/entry")
	})
}

func BenchmarkBuild(b *testing.B) {
	s := open(b, b.TempDir())
	value, n := make([]byte, 128), 0
	built, err := s.Build(0, 16<<20, func(yield func(Entry, error) bool) {
		for b.Loop() {
			if n++; !yield(Entry{Key: key(n), Value: value, Version: 1}, nil) {
				return
			}
		}
	})
	if err != nil {
		b.Fatal(err)
	}
	built.discard()
}
