// Package ask is the commands that speak to a running server. Each is a struct with its flags, its
// help, and what it asks: a method Ask, which the frame in ask.go calls. Commands with a life of
// their own have a Run. The files, in layers:
//
// What they have in common:
//
//	ask.go            the frame: connect, ask, explain
//	selection.go      filters, and other options
//	printing.go       packets as JSON, in a table, or as they were taken
//	errorcounts.go    how many have which error
//	lines.go          lines of standard input or a file
//
// The work queue:
//
//	push.go           push: packets come
//	pop.go            pop: packets are taken
//	subscribe.go      subscribe: packets are taken as they come
//	claims.go         claim, ack, nack, extend
//	task_linux.go     its group of processes
//	task_other.go     where there are none
//	task.go           a command that works on a claim
//	work.go           work: claims that commands work on
//	watch.go          figures again and again
//	stats.go          stats: figures of queues
//	trouble.go        what needs somebody
//	queues.go         queues, consumers, producers, close, drop
//	packets.go        peek, list, show, prio, run
//	tail.go           tail: what happens to packets
//	bulk.go           purge, harvest, redrive, move, cancel, delete: many packets
//	settings.go       get, set, unset, pause, resume
//	shares.go         shares, share
//	server.go         status, health, reload, connections, users
//
// The board:
//
//	boardask.go       how many items a board has
//	import.go         barbershop import: items come
//	export.go         barbershop export: items are shown
//	board.go          both, in one command
//
// A measurement:
//
//	workload.go       what a measurement does
//	bench.go          bench: a measurement, and what it prints
package ask
