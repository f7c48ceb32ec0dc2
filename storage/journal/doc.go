// Package journal is the log in front of the tables: one record for each batch, on the device
// before anything is answered.
//
// A record joins the one before it by its sum, so that a torn end can be told from damage: nothing
// counts behind the first record that does not join, and a whole one behind it shows that something
// is missing. It knows no packets: what a record says is its caller's.
//
//	journal.go     Journal: append a record, read parts of records
//	files.go       the files of segments: made, used again, spare, removed
//	way.go         AwaitSync: what else goes to the device makes way for a sync
//	hold.go        Hold: what a journal has at one moment
//	segment.go     the bytes of a segment and of a record
//	replay.go      reading it all again: where it ends, and what is damage
//	sync_linux.go  how a record reaches the device; sync_other.go is that elsewhere
package journal
