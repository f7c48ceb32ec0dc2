// Package index decides, in memory, which packet is next.
//
// An [Index] holds what selection needs of every queued packet and nothing else: its place in the
// order, its key, its lane, its times and its state. Payloads live elsewhere. A [Dispatch] holds
// who waits for packets. Both are pure: they read no clock, start no goroutine and do no I/O. Time
// is an argument, in Unix milliseconds. Neither is safe for concurrent use: one owner calls them,
// from one goroutine at a time.
//
// # Order
//
// Packets of a queue are ordered by (priority ascending, sequence). Priority 1 is the best. A
// packet with priority 0 is never selected; it leaves only together with a selected packet of its
// key. Among equal priorities the consumer chooses the [End] it takes from: the newest (highest
// sequence) or the oldest.
//
// # States
//
//	Push ─────────────► Ready ──Remove, expiry──► gone
//	                    ▲   │
//	due, lease end,     │   │ SetState
//	SetState            │   ▼
//	           Delayed ─ Claimed ─ Dead ─ Done ──Remove, expiry──► gone
//
// The caller says with SetState which state follows which (Damaged among them), and with Push in
// which one a packet comes back from disk. Only two changes come by themselves: a Delayed packet is
// Ready at its not-before time, and a Claimed one when its lease ends.
//
// A packet in any state ends at its expiry, but a Claimed one: it stays with its consumer, so that
// this one can still acknowledge it. When its lease ends it is gone instead of Ready. Leases end by
// a clock that never jumps, and all else comes by the wall clock.
//
// What was tried with a packet, its [Delivery], stays with it whatever its state, until it is gone.
// So does its identity, by which Find finds it, while Move changes its place.
//
// # Structure
//
// A packet is a fixed-size record without pointers in a paged slab, addressed by a 32-bit number.
// So the garbage collector has nothing to follow, and growth copies nothing. Per lane a B+tree
// orders the packets that can be selected, and per state of a queue another one the rest. A
// linear-hashing table finds the group of a key, and a 4-ary heap for each clock orders the
// deadlines. What only some packets have, as times and deliveries, is in slabs of its own. Every
// operation on one packet is O(log n); nothing depends on the number of queues. A queue that is
// searched by value has another B+tree for that. Packets that have clients' own ids are in another
// linear-hashing table, and in one B+tree for all of them.
//
// # Files
//
// The room tree, below this one, has the B+tree and the slabs. The files here are in layers: few
// use what a file declares that is listed after them.
//
//	buckets.go    what the tables of keys and identities have in common
//	keytable.go   from a key to its group
//
//	entry.go      what goes in (Entry), what comes out (Packet), what is kept (entry)
//	queue.go      queues and what they count
//	timers.go     the heaps of moments
//	alarm.go      moments of queues
//	index.go      Index: push, get, remove, move, and a packet's way from state to state
//
//	groups.go     the packets of a queue with equal keys
//	identities.go from an identity to its packet: Find
//	lanes.go      the packets of a queue with equal tags, and which lane is next
//	gate.go       how many may be taken: a limit, a rate and a rest, as one value
//	shares.go     a queue is shared out by key or tag
//	select.go     which packet is next: Best, Group, and the words of a selection
//	lines.go      the subscribers of a class, which may sleep until there is something for them
//	dispatch.go   Dispatch: which subscriber is next
//	position.go   how many packets come before one
//	bystate.go    the packets that cannot be selected, by state: List, Each
//
//	meters.go     takes count for rates, and what a start knows of that
//	limits.go     how many packets of a queue, and of each share, may be claimed at once
//	wakes.go      what is looked at again when its moment comes
//	strict.go     packets with one key come one after the other
//	turns.go      which share is next
//	fresh.go      which lanes got packets
//
//	next.go       the next packet of a queue, and those after it
//	worst.go      which packets a full queue can best do without: Worst
//	eldest.go     which ready packets may have waited longest: Eldest
//	values.go     the packets of a queue with equal values: FindValue
//	shape.go      packets follow when shares or strict order change
//	uniques.go    from a client's own id to its packet: Holder; windows of ids
//	delivery.go   SetState, and what was tried with a packet
//	advance.go    what a moment changes: expiry, delays, lease ends
package index
