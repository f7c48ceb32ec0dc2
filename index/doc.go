// Package index decides, in memory, which packet is next.
//
// An [Index] holds what selection needs of every queued packet and nothing else: its place in the order, its key,
// its lane, its times and its state. Payloads live elsewhere. A [Dispatch] holds who waits for packets.
// Both are pure: they read no clock, start no goroutine and do no I/O. Time is an argument, in Unix milliseconds.
// Neither is safe for concurrent use; one owner calls them under its own lock.
//
// # Order
//
// Packets of a queue are ordered by (priority ascending, sequence). Priority 1 is the best; a packet with priority 0
// is never selected and leaves only together with a selected packet of its key. Of equal priority the consumer
// chooses the [End] it takes: the newest (highest sequence) or the oldest.
//
// # States
//
//	Push ──────────────► Ready ──Pop, Remove, expiry──► gone
//	  │                  ▲ │  ▲
//	  │ not before       │ │  └──Release, lease end──┐
//	  ▼                  │ └──Claim──────────────► Claimed ──Remove──► gone
//	Delayed ──due────────┘                            │
//	  ▲ └──expiry, Remove──► gone                     │
//	  └──────────────────────Release with a delay─────┘
//
// Expiry ends a packet that is Ready or Delayed. A Claimed packet that expires stays claimed, so that its consumer
// can still acknowledge it; when its lease ends it expires instead of coming back.
//
// # Structure
//
// Everything about one packet is a fixed-size record without pointers in a paged slab, addressed by a 32-bit number,
// so that the garbage collector has nothing to follow and growing copies nothing. Per lane a B+tree orders the ready
// packets; a linear-hashing table finds the group of a key; a 4-ary heap orders the deadlines. Every operation on
// one packet is O(log n); nothing depends on the number of queues.
package index
