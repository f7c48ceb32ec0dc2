//go:build !linux

package daemon

// machineMemory is in bytes, 0 if it is not known.
func machineMemory() int64 { return 0 }

// residentMemory returns how many bytes of memory the process has; 0 if that is not known.
func residentMemory() int64 { return 0 }
