// Package tables keeps the tables of a data folder: each is built, synced, read back, and then
// named by a list that is replaced as a whole. Nothing that the list names is ever written to
// again.
//
// The tables and the list are Badger's own, so a folder of them is a Badger database that any
// program of Badger's opens. What Badger does not do here is change files: it only reads.
//
//	set.go       Set: which tables are in force, and how others take their place
//	list.go      MANIFEST: the list of tables, byte for byte
//	build.go     a table is built, written and read back
//	check.go     the file of a table is what was written
//	view.go      tables opened by Badger: lookups and scans
//	merge.go     several levels become one
//	run.go       tables read one after the other, and several runs at once
//	takeover.go  tables of a folder that Badger itself changed
//	salvage.go   what can be read of a damaged table
package tables
