// Command holdfast is the queue server and its client in one binary: here are the tree of commands,
// how one is run, and what errors say. The commands themselves have rooms of their own, each of
// which imports only those below it:
//
//	cmd/ask         those that speak to a running server
//	cmd/folder      those of data folders and their copies
//	cmd/connection  how both reach a server
//	cmd/config      config file, environment, contexts, secrets, certificates
//	cmd/terminal    what knows no server: files, tables, JSON, progress, sizes, times
//
// The tests here run whole command lines, those in the rooms what lies below. The files, in layers:
//
//	queuename.go   a queue that is named by nothing
//	wording.go     what the parser finds wrong, in other words
//	remedies.go    what to do about an error
//	version.go     what the binary was built from
//	help.go        what a command does
//	metrics.go     what is made for Prometheus
//	man.go         pages of the manual
//	program.go     how a command is run
//	serve.go       the server
//	cluster.go     a cell of several
//	completion.go  code for shells, which ask the program how a line may go on
//	commands.go    the list of all commands
//	signals.go     the first signal stops, a later one ends at once
//	main.go        signals and the exit code
package main
