// Package ask is the commands that speak to a running server. Each is a struct with its flags, its
// help, and what it asks, in a file of its own, which has the name of the command. What it asks is
// a method Ask, which the frame in ask.go calls. Commands with a life of their own have a Run. The
// files, in layers:
//
// What they have in common:
//
//	ask.go            the frame: connect, ask, explain
//	selection.go      filters
//	packetjson.go     packets as JSON
//	packettable.go    packets as a table
//	errorcounts.go    how many have which error
//	printing.go       packets that were taken
//	bulk.go           what commands for many packets have in common
//	settingsform.go   settings as they are shown
//
// The work queue:
//
//	push.go           packets come
//	pushlines.go      many packets from standard input
//	pop.go            packets are taken
//	subscribe.go      packets are taken as they come
//	claim.go          claims
//	ack.go            they end well
//	nack.go           they end badly
//	extend.go         they last longer
//	task_linux.go     its group of processes
//	task_other.go     where there are none
//	task.go           a command that works on a claim
//	work.go           claims that commands work on
//	watch.go          figures again and again
//	stats.go          figures of queues
//	queues.go         which queues there are
//	peek.go           the next packets
//	list.go           packets in a state
//	show.go           a packet
//	tail.go           what happens to packets
//	consumers.go      who claims packets
//	status.go         how the server is
//	health.go         whether it is
//	reload.go         it reads its settings again
//	connections.go    who is connected
//	users.go          who may do what
//	purge.go          packets go
//	harvest.go        claims end
//	redrive.go        dead packets come back
//	move.go           packets move to another queue
//	delete.go         packets go by their ids
//	prio.go           packets change their priority
//	set.go            settings of queues
//	unset.go          they end
//	get.go            they are shown
//	gate.go           queues pause and go on
//	close.go          queues take no more
//	drop.go           queues go
//
// The board:
//
//	boardask.go       how many items a board has
//	import.go         items come
//	export.go         items are shown
//	board.go          clients of the board
//
// A measurement:
//
//	benchreport.go    what it prints
//	workload.go       what a measurement does
//	bench.go          a measurement
package ask
