// Package broker is the queue server without its edges: a machine (Machine) whose state is all
// queues, strings and hashes, and whose calls are the verbs of all protocols. A call is checked,
// applied to the index and added to the open batch. So batches hold the calls in the order in which
// they were made. The files, in layers:
//
// State:
//
//	limits.go    every limit with its reason
//	errors.go    why a call is refused
//	cache.go     recent payloads
//	puts.go      which packets the batch puts
//	batch.go     one group commit
//	machine.go   Machine, and what its driver does
//	queue.go     the queues that are known
//	consumers.go who claims from a queue
//	counters.go  what queues have done
//	conn.go      a connection as the machine sees it: subscriptions, deliveries
//	tx.go        Tx: the right to make calls; Atomic: calls that belong together
//
// Rules:
//
//	tags.go      which tags a queue takes
//	filter.go    which tags a consumer takes
//	class.go     what those in line take: width and filter
//	role.go      who is the only producer or consumer of a queue
//	gate.go      queues that are paused or closed
//	bound.go     how much a queue holds at most
//	admit.go     whether a queue takes what comes
//	watch.go     who wants to know of changes
//	payloads.go  records come from the open batch, the cache or the disk
//	detail.go    what is said of a packet besides its record
//	parked.go    requests that wait, and are made again
//	deliver.go   the rule by which those who wait get packets
//	drop.go      queues go, or change their name
//	garbage.go   what is gone, but not from the disk
//
// Verbs:
//
//	push.go      a packet comes
//	unique.go    pushes of packets that may be there already
//	pop.go       packets go
//	move.go      packets move to another place
//	claim.go     claims: a consumer gets packets for a while
//	return.go    claims end without success: packets come back, or die
//	priority.go  packets that have a key change their priority, and go by it
//	list.go      a queue seen as a list
//	reshape.go   a list changes in its middle, or loses most of itself
//	each.go      verbs for many packets: by their ids, or by state and tags in slices
//	inspect.go   what queues hold, and who works on them
//	settings.go  what a queue does with packets that come, and with those that are claimed
//	names.go     names, whatever has them: type, expiry, scans
//	keys.go      the records of strings and hashes
//	values.go    values of strings and fields
//	strings.go   strings
//	hashes.go    hashes
//	copy.go      what a name stands for, copied to another
//
// The package keyspace holds the names.
//
// The path of one push: netproto's Loop reads it and calls its session, which calls Tx.Push
// (push.go); the packet is in the index and in the batch (batch.go); Machine.Take hands that to the
// loop, which applies it and lets the reply leave.
package broker
