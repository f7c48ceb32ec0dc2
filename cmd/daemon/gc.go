package daemon

import (
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// garbage is how much may pile up between two collections. The index is large and holds no
	// pointers, so a collection costs the same however much is queued; the default of 100 % would
	// let resident memory double for nothing.
	garbage = 24 << 20

	minPercent, maxPercent = 5, 400
	tunePause              = 500 * time.Millisecond
)

// tuneGC keeps the collector's target at live memory plus garbage. The returned function stops it.
func tuneGC() (stop func()) {
	done := make(chan struct{})
	go func() { // ends when stop is called
		tick := time.NewTicker(tunePause)
		defer tick.Stop()
		set := 0
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		for {
			metrics.Read(live)
			percent := maxPercent
			if n := live[0].Value.Uint64(); n > 0 {
				percent = int(min(max(garbage*100/n, minPercent), maxPercent))
			}
			if percent != set { // setting it stops the world
				set = percent
				debug.SetGCPercent(percent)
			}
			select {
			case <-tick.C:
			case <-done:
				return
			}
		}
	}()
	return func() { close(done) }
}
