//go:build !linux

package tables

import "os"

func startWrite(*os.File, int64, int64) error { return nil }

func forget(*os.File) error { return nil }
