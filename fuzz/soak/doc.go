// Package soak runs the real server for a long time under full load, with a standing backlog, and
// watches what must not grow: the room on the disk beside what is live, memory and descriptors.
//
// Its map, one noun per file:
//
//	soak_test.go     the run: fill, load, end, count
//	server_test.go   the server, a process of its own
//	churn_test.go    what one connection does
//	sample_test.go   one look at the server, and the judgement over all of them
package soak
