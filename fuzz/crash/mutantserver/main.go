// Command mutantserver is a server with one planted bug, which the environment variable MUTANT
// names. It exists for the test that the crash harness finds such bugs.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/holdfast-queue/holdfast/cmd/daemon"
	"github.com/holdfast-queue/holdfast/fuzz/crash/mutant"
)

func main() {
	data := flag.String("data", "", "data folder")
	redis := flag.String("redis", daemon.Off, "address to listen on for the Redis protocol")
	flag.Parse()
	config := daemon.Config{Data: *data, Pinpriq: "127.0.0.1:0", Barbershop: daemon.Off, Redis: *redis}
	if err := run(config, os.Getenv("MUTANT")); err != nil {
		fmt.Fprintf(os.Stderr, "mutantserver: %v\n", err)
		os.Exit(1)
	}
}

func run(config daemon.Config, fault string) error {
	wrap, err := mutant.Wrap(fault)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	config.BarbershopQueue, config.Version, config.WrapStore = "board", "mutant", wrap
	config.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
	return daemon.Run(ctx, config)
}
