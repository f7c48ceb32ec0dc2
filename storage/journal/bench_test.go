package journal

import (
	"slices"
	"testing"
	"time"
)

// BenchmarkAppend appends records of 4 KiB to files that were used before, that were prepared, and
// that are made when they are needed.
func BenchmarkAppend(b *testing.B) {
	const size, segments = 16 << 20, 4
	c := Content{Control: make([]byte, 100), Entries: 20, Body: [][]byte{make([]byte, page-headSize-100)}}
	for name, ready := range map[string]func(j *Journal) error{
		"used": func(j *Journal) error {
			for len(j.begun) <= segments {
				c.Batch++
				if _, _, err := j.Append(c); err != nil {
					return err
				}
			}
			return j.Release(j.end)
		},
		"prepared": func(j *Journal) error { return j.SetSpares(segments - 1) },
		"made":     func(*Journal) error { return nil },
	} {
		b.Run(name, func(b *testing.B) {
			j, err := Open(b.TempDir(), Options{SegmentSize: size, Spares: segments})
			if err != nil {
				b.Fatal(err)
			}
			defer j.Close()
			c.Batch = 0
			if err := ready(j); err != nil {
				b.Fatal(err)
			}
			took := make([]time.Duration, 0, b.N)
			b.ResetTimer()
			for range b.N {
				start := time.Now()
				c.Batch++
				if _, _, err := j.Append(c); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(start))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2])/1e3, "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100])/1e3, "p99-µs")
		})
	}
}
