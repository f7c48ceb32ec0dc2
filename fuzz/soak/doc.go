// Package soak runs the real server for a long time under full load, with a standing backlog, and
// under attack. It watches what must not grow: dead bytes on disk, memory and descriptors. Its map:
//
//	soak_test.go     the run: fill, load, end, count
//	server_test.go   the server, a process of its own
//	churn_test.go    what one connection does
//	attack_test.go   clients that would harm a server without limits
//	holds_test.go    how long a request at its limit holds the others; holds_more_test.go has more
//	turn_test.go     what a turn of the loop takes of its processor
//	sample_test.go   one look at the server, and the check of all of them
package soak
