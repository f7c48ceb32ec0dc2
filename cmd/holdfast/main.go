// Command holdfast is the queue server and its client in one binary. A command is a struct with its
// flags, its help and its Run, in a file of its own. The map:
//
//	main.go           the process: signals, exit code
//	program.go        the list of commands, and how one is run
//	serve.go          the server; reload.go: what it takes over while it runs
//	configfile.go     its config file; configtables.go: users and queues there; config.go: shows it
//	hash.go           hashes of passwords, for that
//	push.go, pop.go, subscribe.go     clients of the work queue; workserver.go: their flags, selection.go: filters
//	pushlines.go      many packets from standard input
//	claim.go, ack.go, nack.go, extend.go      claims
//	work.go           claims that commands work on; task.go: one of them, task_linux.go: its group
//	queues.go, stats.go, peek.go, list.go, show.go     what the queues hold
//	watch.go          figures again and again
//	consumers.go, status.go, health.go        who claims packets, and how the server is
//	purge.go, harvest.go, redrive.go, move.go     many packets; bulk.go: what these have in common
//	delete.go, prio.go        packets by their ids
//	set.go, unset.go, get.go, gate.go settings of queues; settingsform.go: what these have in common
//	setting.go        values of settings
//	close.go, drop.go         whole queues; confirmation.go: asks before what cannot be undone
//	printing.go       packets that were taken; packettable.go, jsonobject.go: others; table.go: cells
//	terminal.go       what differs where the output is a terminal
//	board.go, import.go, export.go      clients of the board; boardask.go: how many items it has
//	backup.go         a copy of a running server; operator.go: its flags, backupfolder.go: copies of timers
//	doctor.go         looks at the machine
//	dump.go, load.go, restore.go, verify.go, compact.go   work on a folder; folder.go: its argument
//	verdict.go        what verify prints; verifyfile.go: of a backup
//	loadserver.go     load into a running server; serverload.go: what goes there, serverbatch.go: a batch
//	metrics.go        what is made for Prometheus
//	bench.go          a measurement; workload.go: of what, benchreport.go: what it prints, server.go: addresses
//	tls.go            certificates for a first try
//	completion.go     code for shells, which ask the program how a line may go on
//	version.go        what the binary was built from; help.go: what a command does, man.go: all of them
//	decode.go         what flags and arguments may say; env.go: their environment variables
//	sources.go        flags of the server from its config file
//	entry.go          flags for encryption and logins; secret.go: passwords
//	contexts.go       flags from a file, under a name; contextlist.go: what it has
//	size.go, time.go  values with a unit, such as 64MiB or 30s
//	input.go, output.go, interruptible.go     files that commands read and write
//	progress.go       how far a long command is
//	remedies.go       what to do about an error
//	signals.go        the first signal stops, a later one ends at once
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // as under nohup
		signal.Notify(signals, syscall.SIGHUP)
	}
	// A write fails when its reader goes away. The signal would end the process and leave its
	// temporary files behind. It is not ignored: the commands that work runs would ignore it, too.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	p := program{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, env: os.LookupEnv, hangups: catchHangups}
	go obey(signals, time.Now, cancel, func() { // ends with the process
		fmt.Fprintln(os.Stderr, "holdfast: ended at once by a second signal")
		if end, ok := p.atEnd.Load().(func()); ok {
			end()
		}
		os.Exit(exitFailed)
	})
	os.Exit(p.run(ctx, os.Args[1:]))
}

// catchHangups has SIGHUP reload, as a server does.
func catchHangups() <-chan os.Signal {
	hangups := make(chan os.Signal, 1)
	signal.Ignore(syscall.SIGHUP) // takes it from those who end by it
	signal.Notify(hangups, syscall.SIGHUP)
	return hangups
}
