// Package storage keeps packets on disk, in Badger, one atomic and synced transaction per batch.
//
// Its map, one noun per file:
//
//	what is stored
//	  packet.go      PacketID, Packet, Meta; flags.go and tags.go: what an index keeps of a record
//	  record.go      the bytes of a packet's record; msgpack.go: their forms
//	  keys.go        the keys of everything
//	  queue.go       queue definitions; settings.go: the table of what a queue can be told;
//	                 order.go: the order of the values of a tag; counters.go: what a queue has done
//	  delivery.go    Delivery and notes: what was tried with a packet; changed.go: AppendChanged
//	  item.go        Head, Field: strings and hashes; hash.go: payloads by their hash
//	  control.go     the control record, rewritten by every batch; tally.go: what it counts
//	  load.go        the load record: how far a load has come; flush.go: the flush record
//	  redo.go        the redo record: deletes that one transaction does not hold
//	  coldrecord.go  how rare records are written and read
//	a store at work
//	  store.go       Store: Open, Close; options.go: its Options; errors.go; logger.go
//	  batch.go       Batch: what one Apply writes; limits.go: how much it may be
//	  itembatch.go   what a Batch does to heads and fields; late.go: records that come late
//	  deliverybatch.go  what a Batch does to delivery states; deliveryscan.go: how they are read
//	  apply.go       Apply; wal.go: how a commit reaches the device
//	  read.go        packets by identity; scan.go: all of them; itemscan.go: heads, fields, values
//	  snapshot.go    Snapshot: the state after one batch; itemwalk.go: its heads and fields; held.go: its tables stay and are checked
//	  space.go       the free-space guard and the reserve file; sizing.go: how much Badger may hold
//	  tidy.go        merges that give the room of dead packets back; compact.go: Compact
//	  resident.go    few mapped pages in memory; sizes.go: what a folder takes on disk
//	  sys.go         system calls
//	a start
//	  folder.go      the data folder: lock, format version
//	  anchor.go      the anchor; secret.go: the secret; gaps.go: when the anchor may vouch again
//	  log.go         what a crash leaves of a log, and what is damage; obsolete.go: logs of what is in tables
//	  tables.go      whether every table is whole; block.go: a block of one
//	  manifest.go    Badger's list of tables; unlisted.go: tables that it does not name
//	  accept.go      losses that are accepted
//	  descriptors.go the limit of open files; refused.go: what else the system refuses
//	  mapped.go      how files are read whose device may fail
//	  migrate.go     folders of formats 1 to 5 become ones of format 6; migratelog.go: their logs and
//	                 redo records; migrateunique.go: ids of unique pushes before format 5
//	a folder that is only looked at
//	  view.go        View; look.go: its lock; finding.go: Finding
//	  viewbuilder.go what Badger opens in the folder's place; scratch.go: where; logtable.go: of logs
//	  readmarks.go   format, anchor, secret and control record
//	  salvage.go     what can be read of a damaged table; salvagelog.go: of a log
//
// FORMAT.md says every byte. Nothing of Badger shows in the exported names: an atomic batch, a read
// by identity, scans, snapshots, the control record and the limits are all a caller may rely on.
package storage
