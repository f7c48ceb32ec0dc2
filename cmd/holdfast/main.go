// Command holdfast is the queue server and its client in one binary.
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
	// Without the signal, a write fails when its reader goes away. The signal would end the process
	// and leave its temporary files behind.
	signal.Ignore(syscall.SIGPIPE)
	go obey(signals, time.Now, cancel, func() { // ends with the process
		fmt.Fprintln(os.Stderr, "holdfast: ended at once by a second signal")
		os.Exit(exitFailed)
	})
	p := program{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, env: os.LookupEnv}
	os.Exit(p.run(ctx, os.Args[1:]))
}
