// Package storage keeps packets on disk: a batch is one synced record of a journal, and what a
// window of the journal leaves becomes tables of one Badger database, which is only ever read.
//
// Its map, one noun per file:
//
//	content/           what is stored: records, keys and batches
//	a store at work
//	  store.go       Store: Open, Close; options.go: its Options; errors.go
//	  apply.go       Apply
//	  journal/       the log: records on the device
//	  pending.go     a window: what is in the journal and not in tables; layers.go: all of them; nearby.go: reads them
//	  flusher.go     windows become tables, and tables are merged; pace.go: who waits for that;
//	                 troubles.go: what of it fails; figures.go: how a store does
//	  tables/        the tables, and which are in force
//	  read.go        what is asked for by identity: packets, large values, notes
//	  files.go       Files: those of a folder at one moment; restoration.go: a folder of them
//	  records.go     the control record and the flush record of tables
//	  snapshot.go    Snapshot: the state after one batch; scan.go: all of it, for a start as for a
//	                 dump; items.go: its heads and fields; deliveries.go: its delivery states
//	  space.go       the room on the disk; sizes.go: what a folder takes
//	  compact.go     Compact; sys_linux.go, sys_other.go: a system call
//	a start
//	  start.go       tables of what the journal has, and when they come in force
//	  folder.go      the data folder: lock, format version
//	  anchor.go      the anchor; refused.go: what the system refuses
//	a folder that is only looked at
//	  look.go        View; finding.go: Finding
//	tests
//	  inject/        makes system calls fail
//
// FORMAT.md says every byte. Nothing of Badger shows in the exported names: an atomic batch, a read
// by identity, scans, snapshots, the control record and the limits are all a caller may rely on.
package storage
