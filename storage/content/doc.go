// Package content is what a store holds, as values and as bytes: records, their keys, the batches
// that change them, and the tally of all. It knows no file, takes no lock and starts no goroutine.
//
// Its map, one noun per file:
//
//	packet.go      PacketID, Packet, Meta; flags.go and tags.go: what an index keeps of a record
//	record.go      the bytes of a packet's record; msgpack.go: how all records are written and read;
//	               rest.go: fields of later versions
//	keys.go        the keys of everything
//	queue.go       queue definitions; share.go: what one share of a queue has; settings.go: the table of what a queue can be told; order.go:
//	               the order of the values of a tag; counters.go: what a queue has done
//	delivery.go    Delivery and notes: what was tried with a packet
//	item.go        Head, Field: strings and hashes; hash.go: payloads by their hash
//	unique.go      ids of unique pushes
//	control.go     the control record, rewritten by every batch; tally.go: what it counts
//	flush.go       the flush record: what is dropped as a whole
//	batch.go       Batch: what is written as a whole; limits.go: how much it may be
//	itembatch.go   what a Batch does to heads and fields; deliverybatch.go: to delivery states;
//	               batchops.go: what it does, for tests
//	entry.go       a batch as bytes
//	unreadable.go  what is wrong with bytes
//
// FORMAT.md says every byte.
package content
