package daemon

import (
	"math"
	"runtime/debug"
	"testing"
)

func TestTheHeapIsLimitedUntilACommandEnds(t *testing.T) {
	for name, row := range map[string]struct{ before, want int64 }{
		"no limit":      {math.MaxInt64, offlineHeap},
		"a higher one":  {offlineHeap + 1, offlineHeap},
		"a lower stays": {offlineHeap - 1, offlineHeap - 1},
	} {
		t.Run(name, func(t *testing.T) {
			defer debug.SetMemoryLimit(debug.SetMemoryLimit(row.before))
			undo := LimitHeap()
			if got := debug.SetMemoryLimit(-1); got != row.want {
				t.Errorf("the limit is %d, want %d", got, row.want)
			}
			undo()
			if got := debug.SetMemoryLimit(-1); got != row.before {
				t.Errorf("the limit is %d after the command, want %d", got, row.before)
			}
		})
	}
}
