// Package storage keeps packets on disk: a batch is one synced record of a journal, and what a
// window of the journal leaves becomes tables of one Badger database, which is only ever read.
//
// Three folders are below it: content/ is what is stored, journal/ the log, records on the device,
// and tables/ the tables, and which are in force. inject/ makes system calls fail, for tests. The
// files, in layers: few use what a file declares that is listed after them.
//
// Parts of a store:
//
//	errors.go       what can go wrong
//	finding.go      Finding, and Found: what is wrong with a folder
//	log.go          Term: what decides batches for several machines
//	options.go      Options of a store
//	folder.go       the data folder: lock, format version
//	refused.go      what the system refuses
//	anchor.go       the anchor: which batch is on disk
//	sizes.go        what a folder takes
//	space.go        the room on the disk
//	troubles.go     what fails of the work behind Apply
//	records.go      the control record and the flush record of tables
//	pendingkeys.go  the keys of a window
//	pending.go      a window: what is in the journal and not in tables
//	nearby.go       reads values from the journal, neighbours in one
//	layers.go       what a read looks through: windows and tables
//
// A store at work:
//
//	store.go        Store: Open, Close
//	pace.go         who waits for tables
//	flusher.go      windows become tables, and tables are merged
//	start.go        tables of what the journal has, and when they come in force
//	apply.go        Apply
//	step.go         Step: the work of the background, a piece at a time, for simulations
//	read.go         what is asked for by identity: packets, large values, notes
//	figures.go      how a store does
//
// All that a store holds:
//
//	snapshot.go     Snapshot: the state after one batch
//	scan.go         Visitor, and the scans of queues, packets and ids for it
//	items.go        heads and fields
//	deliveries.go   delivery states
//	walk.go         Walk: all of them, held against the control record; Verify, behind which a store begins
//	follow.go       Take and Own: batches that others decided
//	compact.go      Compact
//	files.go        Files: those of a folder at one moment
//	restoration.go  a folder of them
//	look.go         View: a folder that is only looked at
//
// FORMAT.md says every byte. Nothing of Badger shows in the exported names: an atomic batch, a read
// by identity, scans, snapshots, the control record and the limits are all a caller may rely on.
package storage
