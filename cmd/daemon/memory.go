package daemon

import "runtime/debug"

// offlineHeap is how many bytes the Go runtime may take for a command that works on a whole folder.
// The tables that a compaction builds at a time take some 80 MB of it. A lower limit costs more
// processor time for collecting garbage. Mapped files come on top, some 100 MB.
const offlineHeap = 112 << 20

// LimitHeap makes the collector work harder, and give memory back at once, before the heap grows
// beyond what an offline command needs. It is a soft limit: what is in use stays. A lower limit in
// the environment (GOMEMLIMIT) stands. The returned function restores the limit of before.
func LimitHeap() (undo func()) {
	before := debug.SetMemoryLimit(-1)
	debug.SetMemoryLimit(min(before, offlineHeap))
	return func() { debug.SetMemoryLimit(before) }
}
