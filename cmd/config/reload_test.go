package config

import (
	"context"
	"log/slog"
	"testing"

	"github.com/holdfast-queue/holdfast/cmd/daemon"
)

func TestNobodyWaitsForTheReloadOfAServerThatStops(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	c := daemon.Config{Logger: slog.New(slog.DiscardHandler)}
	NewSources(func(string) (string, bool) { return "", false }).Follow(ctx, nil, nil, &c, new(slog.LevelVar))
	stop()
	if _, err := c.AskReload(t.Context()); err == nil {
		t.Error("a server that stops has read its settings again")
	}
}
