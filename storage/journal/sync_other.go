//go:build !linux

package journal

import "os"

type syncer struct{}

func (syncer) datasync(f *os.File) error { return f.Sync() }

func allocate(f *os.File, size int64) error { return f.Truncate(size) }
