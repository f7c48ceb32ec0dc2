//go:build !linux

package journal

import (
	"time"

	"github.com/holdfast-queue/holdfast/storage/disk"
)

type syncer struct {
	took time.Duration // the last one
}

func (s *syncer) datasync(f *disk.File) error {
	start := time.Now()
	err := f.Sync()
	s.took = time.Since(start)
	return err
}

func allocate(f *disk.File, size int64) error { return f.Truncate(size) }
