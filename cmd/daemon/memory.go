package daemon

import "runtime/debug"

// offlineHeap is what the Go runtime may take for a command that works on a whole folder, in bytes.
// The tables that one compaction builds at a time take some 100 MB of it. With a lower
// limit much of the processor's time would go into collecting garbage. Mapped files come on top: together
// they stay below 300 MB.
const offlineHeap = 192 << 20

// LimitHeap makes the collector work harder, and give memory back at once, before the heap grows
// beyond what an offline command needs. It is no hard limit: what is in use stays. A lower limit in the
// environment (GOMEMLIMIT) stands. The returned function puts the limit back that was there before.
func LimitHeap() (undo func()) {
	before := debug.SetMemoryLimit(-1)
	debug.SetMemoryLimit(min(before, offlineHeap))
	return func() { debug.SetMemoryLimit(before) }
}
