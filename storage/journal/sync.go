package journal

import (
	"os"
	"time"
)

// syncer brings a file's data to the device. While that is quick, it is a system call that the
// runtime does not hear of: telling it costs up to a fifth of the processor time at one record a
// sync. A slow one would hold up the collector, so then the runtime is told.
type syncer struct {
	mean  time.Duration // moving, over about 16 syncs
	since int           // syncs since one was slow
}

const (
	quickSync = 2 * time.Millisecond  // the mean below which a sync is quick
	slowSync  = 20 * time.Millisecond // one of these is slow
	calmSyncs = 1000                  // so many must follow a slow one
)

func (s *syncer) datasync(f *os.File) error {
	start := time.Now()
	err := datasync(f, s.mean < quickSync && s.since >= calmSyncs)
	took := time.Since(start)
	s.mean += (took - s.mean) / 16
	if s.since++; took >= slowSync {
		s.since = 0
	}
	return err
}
