// Package terminal is what commands have in common and what knows no server: the process, the files
// that it reads and writes, and values as people write and read them. The files, in layers:
//
//	nearest.go        what somebody may have meant by a word
//	reword.go         errors in other words, and in one line
//	interruptible.go  reads and writes that a signal ends
//	process.go        the process as commands see it
//	output.go         files that they write
//	input.go          files that they read
//	terminal.go       what differs where the output is a terminal
//	time.go           moments and times, such as 30s
//	size.go           numbers of bytes, such as 64MiB
//	jsonobject.go     objects of JSON in a line
//	table.go          tables, and what stands in their cells
//	list.go           many things, as a table or as JSON
//	progress.go       how far a long command is
//	confirmation.go   asks before what cannot be undone
//	password.go       asks for a password
package terminal
