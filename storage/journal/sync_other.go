//go:build !linux

package journal

import (
	"os"
	"time"
)

type syncer struct {
	took time.Duration // the last one
}

func (s *syncer) datasync(f *os.File) error {
	start := time.Now()
	err := f.Sync()
	s.took = time.Since(start)
	return err
}

func allocate(f *os.File, size int64) error { return f.Truncate(size) }
