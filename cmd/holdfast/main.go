// Command holdfast is the queue server and its client in one binary.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

// cli is the command line: one field for each command.
type cli struct {
	Serve serveCmd `cmd:"" help:"Serve queues from a data folder."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var c cli
	parsed := kong.Parse(&c,
		kong.Name("holdfast"),
		kong.Description("A durable priority queue: one binary, one folder."),
		kong.DefaultEnvars("HOLDFAST"),
		kong.UsageOnError(),
		kong.BindTo(ctx, (*context.Context)(nil)),
	)
	if err := parsed.Run(); err != nil {
		fmt.Fprintf(os.Stderr, "holdfast: %v\n", err)
		os.Exit(1)
	}
}
