package daemon

import (
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/holdfast-queue/holdfast/netproto"
)

// defaultBuffers bounds what all connections may hold: a quarter of the memory, or more on a small
// machine.
func defaultBuffers() int64 { return max(netproto.DefaultMaxBuffers, Memory()/4) }

// Memory returns how many bytes of memory the machine or container has, 0 if that is not known.
func Memory() int64 {
	memory := machineMemory()
	text, _ := os.ReadFile("/sys/fs/cgroup/memory.max") // "max", or none, if there is no limit
	if limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil {
		memory = min(memory, limit)
	}
	return memory
}

// offlineHeap is how many bytes the Go runtime may take for a command that works on a whole folder.
// With a lower one the collector of garbage never stops. Mapped files come on top.
const offlineHeap = 192 << 20

// LimitHeap makes the collector work harder, and give memory back at once, before the heap grows
// beyond what an offline command needs. It is a soft limit: what is in use stays. A lower limit in
// the environment (GOMEMLIMIT) stands. The returned function restores the limit of before.
func LimitHeap() (undo func()) {
	before := debug.SetMemoryLimit(-1)
	debug.SetMemoryLimit(min(before, offlineHeap))
	return func() { debug.SetMemoryLimit(before) }
}
