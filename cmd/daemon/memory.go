package daemon

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto"
)

// defaultBuffers bounds what all connections may hold: a quarter of the memory, and no less than
// the longest payload needs.
func (c *Config) defaultBuffers() int64 {
	memory, _ := memoryLimit(c.MaxMemory)
	if memory == 0 {
		return netproto.DefaultMaxBuffers
	}
	return max(memory/4, leastBuffers, netproto.ReservedParts*c.MaxPayload)
}

const leastBuffers = 16 << 20

// defaultCache takes a sixty-fourth of the memory. With less than 16 MiB a consumer that keeps up
// would read the disk now and then. More than 256 MiB helps only where a backlog takes more.
func defaultCache(memory int64) int64 { return min(max(memory/64, broker.DefaultCache), 256<<20) }

// maxWindow has what waits to become tables take a small part of the memory: there are three of
// such windows, and what is in one is in memory about twice.
func (c *Config) maxWindow() int64 {
	memory, _ := memoryLimit(c.MaxMemory)
	return memory / 32
}

// Memory returns how many bytes of memory the machine or container has, 0 if that is not known.
func Memory() int64 {
	memory, _ := memoryLimit(0)
	return memory
}

// memoryLimit is the least of the given bytes, unless these are 0, and of what the machine and the
// control groups of the process have, and where that was found. 0 if nothing is known.
func memoryLimit(given int64) (limit int64, found string) {
	limit, found = cgroupLimit("/proc/self/cgroup", "/sys/fs/cgroup")
	if machine := machineMemory(); machine != 0 && (limit == 0 || machine < limit) {
		limit, found = machine, "the machine"
	}
	if given != 0 && (limit == 0 || given < limit) {
		limit, found = given, "the settings"
	}
	return limit, found
}

// cgroupLimit is the least limit of memory of the control groups that a process is in, and the file
// that says so; 0 without one. groups is its /proc/self/cgroup, and root where their file systems
// are. A group has what those above it have, too. In a container its path may be one of outside:
// what is not there is passed over.
func cgroupLimit(groups, root string) (limit int64, found string) {
	text, _ := os.ReadFile(groups)
	for line := range strings.Lines(string(text)) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(part) < 3 {
			continue
		}
		at, name := root, "memory.max" // version 2
		if part[1] != "" {
			if !slices.Contains(strings.Split(part[1], ","), "memory") {
				continue
			}
			at, name = filepath.Join(root, "memory"), "memory.limit_in_bytes"
		}
		for dir := filepath.Clean("/" + part[2]); ; dir = filepath.Dir(dir) {
			file := filepath.Join(at, dir, name)
			text, _ := os.ReadFile(file) // "max", or none, if there is no limit
			if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && n > 0 && (limit == 0 || n < limit) {
				limit, found = n, file
			}
			if dir == "/" {
				break
			}
		}
	}
	return limit, found
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
