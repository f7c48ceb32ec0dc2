//go:build !linux

package tables

import "github.com/holdfast-queue/holdfast/storage/disk"

func startWrite(*disk.File, int64, int64) error { return nil }

func forget(*disk.File) error { return nil }
