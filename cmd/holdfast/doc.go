// Command holdfast is the queue server and its client in one binary. A command is a struct with its
// flags, its help and its Run, in a file of its own. The files, in layers: few use what a file
// declares that is listed after them.
//
// Values of flags and arguments:
//
//	queuename.go      a queue that is named by nothing
//	selection.go      filters
//
// What commands have in common, beside package terminal:
//
//	program.go        how a command is run
//	packetjson.go     packets as JSON
//	packettable.go    packets as a table
//	printing.go       packets that were taken
//	bulk.go           what commands for many packets have in common
//	settingsform.go   settings as they are shown
//	wording.go        what the parser finds wrong, in other words
//	remedies.go       what to do about an error
//	version.go        what the binary was built from
//	help.go           what a command does
//
// Clients of the work queue:
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
//	queues.go         which queues there are
//	stats.go          figures of queues
//	watch.go          figures again and again
//	peek.go           the next packets
//	list.go           packets in a state
//	show.go           a packet
//	tail.go           what happens to packets
//	consumers.go      who claims packets
//	status.go         how the server is
//	health.go         whether it is
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
//	boardask.go       how many items a board has
//	import.go         items come
//	export.go         items are shown
//	board.go          clients of the board
//
// The process:
//
//	serve.go          the server
//	bench.go          a measurement
//	benchreport.go    what it prints
//	workload.go       what a measurement does
//	metrics.go        what is made for Prometheus
//	completion.go     code for shells, which ask the program how a line may go on
//	man.go            pages of the manual
//	signals.go        the first signal stops, a later one ends at once
//	commands.go       the list of all commands
//	main.go           signals and the exit code
package main
