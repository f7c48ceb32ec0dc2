package loadgen

import (
	"math"
	"math/bits"
	"time"
)

// Histogram counts durations in buckets whose width is 1/32 of their value at
// most, so a percentile is at most 3.2 % too high. The zero value is empty. It
// has a fixed size and is used by one goroutine at a time.
//
// Durations below 64 ns have a bucket each; from there every power of two is
// divided into 32 buckets.
type Histogram struct {
	counts [histogramSize]uint64
	total  uint64
}

// The size is that of non-negative durations: their highest bit is 62, so the
// largest shift of bucket is 57.
const (
	subBits       = 5
	subBuckets    = 1 << subBits
	histogramSize = subBuckets * (64 - subBits)
)

// Add counts n durations of d; a negative d counts as 0.
func (h *Histogram) Add(d time.Duration, n uint64) {
	h.counts[bucket(uint64(max(d, 0)))] += n
	h.total += n
}

// Merge adds what o has counted.
func (h *Histogram) Merge(o *Histogram) {
	for i, n := range o.counts {
		h.counts[i] += n
	}
	h.total += o.total
}

// Count is the number of durations counted.
func (h *Histogram) Count() uint64 { return h.total }

// Quantile is the duration that a share q of all counted ones does not exceed,
// q being 0 to 1; it is 0 for an empty histogram.
func (h *Histogram) Quantile(q float64) time.Duration {
	if h.total == 0 {
		return 0
	}
	rank := uint64(math.Ceil(q * float64(h.total)))
	rank = min(max(rank, 1), h.total)
	var seen uint64
	for i, n := range h.counts {
		seen += n
		if seen >= rank {
			return time.Duration(bucketTop(i))
		}
	}
	return time.Duration(bucketTop(histogramSize - 1))
}

func bucket(v uint64) int {
	if v < 2*subBuckets {
		return int(v)
	}
	shift := bits.Len64(v) - subBits - 1
	return shift*subBuckets + int(v>>shift)
}

// bucketTop is the largest value that falls into bucket i.
func bucketTop(i int) uint64 {
	if i < 2*subBuckets {
		return uint64(i)
	}
	shift := i/subBuckets - 1
	return (uint64(i%subBuckets)+subBuckets+1)<<shift - 1
}
