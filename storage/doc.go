// Package storage keeps packets on disk, in Badger, one atomic and synced
// transaction per batch.
//
// Its map, one noun per file:
//
//	packet.go   PacketID, Packet, Meta: what is stored
//	record.go   the msgpack bytes of a packet (msgpack.go: the few forms used)
//	queue.go    queue definitions and the marks
//	control.go  the control record, rewritten by every batch
//	batch.go    Batch: what one Apply writes, filled by one goroutine
//	store.go    Store: Open, Close; apply.go, read.go, scan.go: its work
//	folder.go   the data folder: lock, format version; anchor.go: the anchor
//	wal.go      how a commit reaches the device
//	space.go    the free-space guard and the reserve file
//
// FORMAT.md says every byte. Nothing of Badger shows in the exported names:
// an atomic batch, a read by identity, two scans, the control record and the
// limits are all a caller may rely on.
package storage
