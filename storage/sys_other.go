//go:build unix && !linux

package storage

import (
	"errors"
	"os"
)

// ownSync is off where nothing says that fdatasync covers mapped pages:
// Badger syncs by itself there.
const ownSync = false

func fdatasync(f *os.File) error { return f.Sync() }

func adviseLogs(string) {}

func allocate(*os.File, int64) error { return errors.ErrUnsupported }

func dropMappings(string, func(uint64) bool) {}

func evictMappings(string, func(uint64) bool) {}

func lockHolders(*os.File) []int { return nil }
