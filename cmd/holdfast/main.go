package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/terminal"
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
	p := program{Process: terminal.Process{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Env: os.LookupEnv}, hangups: catchHangups}
	go obey(signals, time.Now, cancel, func() { // ends with the process
		fmt.Fprintln(os.Stderr, "holdfast: ended at once by a second signal")
		if end, ok := p.AtEnd.Load().(func()); ok {
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
