package daemon

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// machineMemory is in bytes, 0 if it is not known.
func machineMemory() int64 {
	var machine syscall.Sysinfo_t
	_ = syscall.Sysinfo(&machine)
	return int64(machine.Totalram) * int64(machine.Unit)
}

// residentMemory returns how many bytes of memory the process has; 0 if that is not known.
func residentMemory() int64 {
	text, _ := os.ReadFile("/proc/self/statm") // the second number, in pages
	if fields := bytes.Fields(text); len(fields) > 1 {
		pages, _ := strconv.ParseInt(string(fields[1]), 10, 64)
		return pages * int64(os.Getpagesize())
	}
	return 0
}
