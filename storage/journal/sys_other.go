//go:build !linux

package journal

import "os"

func datasync(f *os.File, _ bool) error { return f.Sync() }

func allocate(f *os.File, size int64) error { return f.Truncate(size) }
