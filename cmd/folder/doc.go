// Package folder is the commands about data folders and their copies, most of which need no server.
// The files, in layers:
//
//	figure.go        numbers with names
//	verdict.go       what verify prints
//	backupfolder.go  copies that a timer makes
//	backup.go        a copy of a running server
//	dump.go          a folder becomes a file
//	verify.go        looks at a folder, or a backup
//	restore.go       a backup becomes a folder
//	compact.go       a folder becomes small
//	serverload.go    load into a running server
//	load.go          a dump becomes a folder
//	doctor.go        looks at the machine
package folder
