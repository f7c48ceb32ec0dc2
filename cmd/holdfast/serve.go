package main

import (
	"context"
	"log/slog"
	"os"

	"github.com/holdfast-queue/holdfast/cmd/daemon"
	"github.com/holdfast-queue/holdfast/storage"
)

// serveCmd runs the server.
type serveCmd struct {
	Data    string `default:"./holdfast-data" help:"Data folder." type:"path"`
	Pinpriq string `default:"127.0.0.1:7070" help:"Address of the pinpriq listener."`
	Sync    string `default:"always"`
}

func (c *serveCmd) Run(ctx context.Context) error {
	sync, err := storage.ParseSync(c.Sync)
	if err != nil {
		return err
	}
	return daemon.Run(ctx, daemon.Config{
		Data: c.Data, Pinpriq: c.Pinpriq, Sync: sync,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
}
