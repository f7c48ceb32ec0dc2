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

	minPercent, maxPercent = 2, 400

	tunePause = 500 * time.Millisecond
	// A server that allocates less than quiet a pause gives its free memory back after every
	// releasePauses of that, releases times: the database lets go of its buffers one by one.
	quiet         = 1 << 20
	releasePauses = 8
	releases      = 6
)

// collector keeps the garbage collector's target at live memory plus garbage, and returns memory
// to the system when the server has nothing to do.
type collector struct {
	samples []metrics.Sample // live heap, bytes allocated so far
	percent int              // as set last
	before  uint64           // bytes allocated at the last look
	idle    int              // looks since the server did something
}

// TuneGC keeps the memory that waits to be collected small, for a process whose live memory is large
// and holds few pointers: a server, or a command that works on a whole folder. The returned function
// ends that.
func TuneGC() (stop func()) {
	done := make(chan struct{})
	go func() { // ends when stop is called
		c := collector{samples: []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/heap/allocs:bytes"}}}
		tick := time.NewTicker(tunePause)
		defer tick.Stop()
		for {
			c.look()
			select {
			case <-tick.C:
			case <-done:
				return
			}
		}
	}()
	return func() { close(done) }
}

func (c *collector) look() {
	metrics.Read(c.samples)
	live, allocated := c.samples[0].Value.Uint64(), c.samples[1].Value.Uint64()
	c.target(live)
	if allocated-c.before > quiet {
		c.idle = 0
	} else if c.idle++; c.idle%releasePauses == 0 && c.idle <= releases*releasePauses {
		debug.FreeOSMemory()
	}
	c.before = allocated
}

// target sets the collector's percentage, but only when it changes: setting it stops the world.
func (c *collector) target(live uint64) {
	percent := maxPercent
	if live > 0 {
		percent = int(min(max(garbage*100/live, minPercent), maxPercent))
	}
	if percent != c.percent {
		c.percent = percent
		debug.SetGCPercent(percent)
	}
}
