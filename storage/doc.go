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
//	load.go     the load record: how far a load under way has come; and the loaded record
//	snapshot.go Snapshot: the state after one batch, whatever comes later
//	held.go     tables held while their blocks are judged at work
//	folder.go   the data folder: lock, format version; anchor.go: the anchor
//	log.go      what a crash leaves of a log, and what is damage; tables.go,
//	            manifest.go, stray.go: the same of tables and their list;
//	            stale.go: logs of what is in tables; gaps.go: gaps that were
//	            forgiven; dblock.go: Badger's lock
//	wal.go      how a commit reaches the device
//	view.go     View: a folder that is only looked at; look.go: its lock,
//	            witness.go: what vouches for it, shadow.go, logtable.go: what
//	            Badger opens in its place
//	salvage.go  what can still be read of a damaged table; salvagelog.go: of a
//	            log; block.go, mend.go: how; finding.go: Finding
//	space.go    the free-space guard and the reserve file
//
// FORMAT.md says every byte. Nothing of Badger shows in the exported names:
// an atomic batch, a read by identity, scans, snapshots, the control record
// and the limits are all a caller may rely on.
package storage
