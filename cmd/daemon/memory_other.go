//go:build !linux

package daemon

// machineMemory is in bytes, 0 if it is not known.
func machineMemory() int64 { return 0 }

// residentMemory is what the process has of it, in bytes, 0 if it is not known.
func residentMemory() int64 { return 0 }
