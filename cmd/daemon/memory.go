package daemon

import (
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"

	"github.com/holdfast-queue/holdfast/netproto"
)

// defaultBuffers is what all connections may hold: a quarter of the memory of the machine or
// container, and enough for a small one.
func defaultBuffers() int64 {
	var machine syscall.Sysinfo_t
	_ = syscall.Sysinfo(&machine)
	memory := int64(machine.Totalram) * int64(machine.Unit)
	text, _ := os.ReadFile("/sys/fs/cgroup/memory.max") // "max", or none, if there is no limit
	if limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil {
		memory = min(memory, limit)
	}
	return max(netproto.DefaultMaxBuffers, memory/4)
}

// offlineHeap is how many bytes the Go runtime may take for a command that works on a whole folder.
// A lower limit costs more processor time for collecting garbage. Mapped files come on top.
const offlineHeap = 112 << 20

// LimitHeap makes the collector work harder, and give memory back at once, before the heap grows
// beyond what an offline command needs. It is a soft limit: what is in use stays. A lower limit in
// the environment (GOMEMLIMIT) stands. The returned function restores the limit of before.
func LimitHeap() (undo func()) {
	before := debug.SetMemoryLimit(-1)
	debug.SetMemoryLimit(min(before, offlineHeap))
	return func() { debug.SetMemoryLimit(before) }
}
