// Package broker is the queue server without its edges: a machine (Machine) whose state is all
// queues, strings and hashes, and whose calls are the verbs of all protocols. A call is checked,
// applied to the index and added to the open batch. So batches hold the calls in the order in which
// they were made. The files, in layers: few use what a file declares that is listed after them.
//
// State:
//
//	limits.go    every limit with its reason
//	errors.go    why a call is refused
//	settings.go  what a queue does with packets that come, and with those that are claimed
//	puts.go      which packets the batch puts
//	event.go     what has happened, for operators and those who tail a queue
//	batch.go     one group commit
//	state.go     what the machine holds: queues, connections, classes of those in line
//	cursor.go    where looks in slices go on
//	tx.go        Tx: the right to make calls; Atomic: calls that belong together
//	own.go       what shares of a queue have of their own
//	tags.go      which tags and shares a queue takes
//	role.go      who is the only producer or consumer of a queue
//	watch.go     who wants to know of changes
//	consumers.go who claims from a queue
//	producers.go who pushed to a queue
//	counters.go  what queues have done
//	pushtimes.go when packets were pushed
//	waiters.go   who waits for a name
//	queue.go     queues are found by name and number, made, and marked as changed
//
// Rules:
//
//	filter.go    which packets a consumer takes
//	class.go     what those in line take: width and filter, and who of them is asked
//	alert.go     what is told once, until it is over: old packets, bounds, the disk
//	bound.go     how much a queue holds at most
//	admit.go     how calls begin: what they may do with a queue, and whether it takes what comes
//	unique.go    the ids of unique pushes
//	payloads.go  records come from the open batch, the cache or the disk
//	detail.go    what is said of a packet
//	values.go    values of strings and fields
//	keys.go      the records of strings and hashes
//	expired.go   what had expired at a start goes from the store
//	garbage.go   what is gone, but not from the disk
//	drop.go      queues go, or change their name
//	parked.go    requests that wait, and are made again
//	shape.go     how many packets follow a change of share-by or strict order, and who may ask for it
//	defaults.go  which settings of a queue are in force: its own, or those of its name
//	due.go       what is due is over for who asks for it
//	deliver.go   the rule by which those who wait get packets
//	conn.go      connections: subscriptions, readiness
//
// Verbs:
//
//	names.go     names, whatever has them: type, expiry, scans
//	setup.go     a queue, or one of its shares, gets settings of its own; a queue is closed
//	pop.go       packets go
//	push.go      a packet comes, unless it is there already
//	load.go      a packet comes as it was elsewhere
//	move.go      packets move to another place
//	claim.go     claims: a consumer gets packets for a while
//	return.go    claims end without success: packets come back, or die
//	priority.go  packets that have a key change their priority, and go by it
//	list.go      a queue seen as a list
//	once.go      a push of one packet, which may be unique, and replace the one that has its id
//	reshape.go   a list changes in its middle, or loses most of itself
//	each.go      verbs for many packets: by their ids, or by state and tags in slices
//	inspect.go   what queues hold, and who works on them
//	survey.go    figures of all queues
//	shares.go    a look at the shares of a queue
//	strings.go   strings
//	hashes.go    hashes
//	machine.go   what a driver does: turns and batches
//
// The package keyspace holds the names, and cache recent payloads.
//
// The calls of a Tx:
//
//	runs       Atomic, Made, Full, MayChange, MayLook, Looked, Now, Steady (tx.go, names.go)
//	who calls  As, SetName, Select, Attach, Detach, Conns (role.go, names.go, conn.go)
//	the disk   CanStore, CanClaim, Space, FreeBytes, Damaged (tx.go)
//	to push    Push, PushTold (once.go), CheckSize, PushAll (push.go), Load (load.go)
//	to take    Pop (pop.go), Claim, Ack, Extend, Progress (claim.go), Nack (return.go)
//	by key     UpdatePriority, PopKey, PeekKey, PriorityOf (priority.go)
//	by id      DeletePackets, MovePackets, SetPriority, Reschedule, Cancel, RedrivePacket; a Bulk
//	           is of many (each.go)
//	to wait    Park, Unpark, TimeOut (parked.go), Drained (queue.go)
//	to be sent Subscribe, Unsubscribe, Subscriptions, Ready, Resume (conn.go)
//	lists      Len, PushEnd, Elements, NextElements, Element, SetAt, Find, PrepareSearch,
//	           RemoveValue, MoveEnd (list.go), InsertAt, Trim, TrimInSlices (reshape.go)
//	values     String, CanSet, SetString, PatchString (strings.go), Bytes (values.go)
//	hashes     HashLen, Field, CanSetField, SetField, DeleteField, Fields, NextField, ScanFields
//	names      Type, Delete, Drop, Rename, Expiry, SetExpiry, Scan, NameCount (names.go), Flush
//	settings   Settings, HasOwnSettings, SetSettings, ForceSettings, Pause, Share, SetShare, Close
//	           (setup.go), Shares (shares.go), SetDefaults (defaults.go)
//	to look    Peek, List, Show, PrepareIDs, QueueStats, QueueCounts, Unfinished, Oldest, Consumers,
//	           Producers (inspect.go), Survey, Figures (survey.go), CheckFilter (filter.go)
//	to be told Watch, WatchBroken, Unwatch (watch.go), Tail, Operator (event.go)
//
// The path of one push: netproto's Loop reads it and calls its session, which calls Tx.Push
// (once.go); the packet is in the index and in the batch (batch.go); Machine.Take hands that to the
// loop, which applies it and lets the reply leave.
package broker
