// Package tables keeps the tables of a data folder: each is built, synced, read back, and then
// named by a list that is replaced as a whole. Nothing that the list names is ever written to
// again.
//
// The tables and the list are Badger's own, so a folder of them is a database that any Badger
// program opens. Badger's package table builds them, and merges and scans read them by it. Lookups
// are transactions of badger.DB, opened read-only.
//
// Two things the package does not do. A read of Badger's that meets rot after a table was opened
// passes over it, until a snapshot or the next start sums the tables. Badger ends the process if no
// file can be opened while it reads its folder, and the next start loses nothing.
//
//	set.go       Set: which tables are in force, and how others take their place
//	list.go      MANIFEST: the list of tables, byte for byte
//	table.go     one table, and tables read one after the other, to their end or an error
//	build.go     tables are built, written and read back
//	view.go      View: the tables of one list, opened to read them, and lookups
//	iterator.go  scans of a view
//	files.go     the files of a view, as they are
//	merge.go     several levels become one
//	salvage.go   what can be read of a damaged table
//	bring_linux.go how a piece of a file comes from the device; bring_other.go is that elsewhere
package tables
