package loadgen

import (
	"math"
	"testing"
	"time"
)

func TestQuantilesAreAtMostAThirtySecondTooHigh(t *testing.T) {
	for _, unit := range []time.Duration{1, 97, time.Microsecond, time.Millisecond, time.Hour} {
		var h Histogram
		for i := range 1000 {
			h.Add(time.Duration(i+1)*unit, 1)
		}
		for _, q := range []float64{0.001, 0.0015, 0.5, 0.99, 0.9995, 1} {
			exact := time.Duration(math.Ceil(q*1000)) * unit
			got := h.Quantile(q)
			if got < exact || float64(got) > float64(exact)*(1+1.0/32)+1 {
				t.Errorf("unit %v: quantile %v is %v, expected %v to 1/32 above", unit, q, got, exact)
			}
		}
	}
}

func TestBucketsCoverAllDurationsWithoutGap(t *testing.T) {
	if got := bucket(math.MaxInt64); got != histogramSize-1 {
		t.Errorf("the largest duration is in bucket %d, expected %d", got, histogramSize-1)
	}
	for i := range histogramSize {
		top := bucketTop(i)
		if bucket(top) != i {
			t.Errorf("bucket %d ends at %d, which is in bucket %d", i, top, bucket(top))
		}
		if i+1 < histogramSize && bucket(top+1) != i+1 {
			t.Errorf("%d is in bucket %d, expected %d", top+1, bucket(top+1), i+1)
		}
	}
}

func TestAnEmptyHistogramAndOddArgumentsGiveZero(t *testing.T) {
	var h Histogram
	if h.Quantile(0.5) != 0 {
		t.Error("the median of nothing is not 0")
	}
	h.Add(-time.Second, 2)
	if h.Quantile(0.5) != 0 || h.Count() != 2 {
		t.Errorf("a negative duration counts as %v, %d times", h.Quantile(0.5), h.Count())
	}
}

func TestMergeAddsCounts(t *testing.T) {
	var a, b Histogram
	a.Add(10, 99)
	b.Add(20, 1)
	a.Merge(&b)
	if a.Count() != 100 || a.Quantile(0.99) != 10 || a.Quantile(1) != 20 {
		t.Errorf("merged: %d durations, p99 %d, max %d", a.Count(), a.Quantile(0.99), a.Quantile(1))
	}
}
