package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto"
	"github.com/holdfast-queue/holdfast/netproto/pinpriq"
	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/storage"
)

type recoverySource = recovery.Source

// Run serves until ctx ends, then drains and returns nil. It returns an error if the folder cannot
// be opened, recovered or served, or if a commit failed; what was acknowledged is then on disk.
func Run(ctx context.Context, c Config) (err error) {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Drain <= 0 {
		c.Drain = DefaultDrain
	}
	if err := c.checkAddress(c.Pinpriq); err != nil {
		return err
	}
	if err := c.limitConns(); err != nil {
		return err
	}
	// The address first: recovering a large folder only to find the port taken would be unkind.
	protocol := &pinpriq.Protocol{}
	server, err := netproto.Listen(c.Pinpriq, c.server(protocol))
	if err != nil {
		return err
	}
	defer server.Close()
	store, err := open(&c)
	if err != nil {
		return err
	}
	defer func() {
		if e := store.Close(); e != nil && err == nil {
			err = fmt.Errorf("close data folder: %w", e)
		}
	}()
	state, err := restore(store, &c)
	if err != nil {
		return err
	}
	b := broker.New(store, state, broker.Options{Cache: c.Cache, AcceptLoss: c.AcceptLoss, Logger: c.Logger})
	protocol.Broker = b
	err = serve(ctx, server, b, &c)
	return errors.Join(err, b.Close())
}

func open(c *Config) (Store, error) {
	opened, err := storage.Open(c.Data, storage.Options{Sync: c.Sync, AcceptLoss: c.AcceptLoss, Logger: c.Logger})
	if err != nil {
		return nil, err
	}
	if c.WrapStore != nil {
		return c.WrapStore(opened), nil
	}
	return opened, nil
}

// restore builds the broker's starting state, with a line now and then while it takes long.
func restore(store Store, c *Config) (*recovery.State, error) {
	next := time.Now().Add(time.Second)
	state, err := recovery.Restore(store, recovery.Options{
		Now:        time.Now().UnixMilli(),
		AcceptLoss: c.AcceptLoss,
		Progress: func(count int) {
			if now := time.Now(); now.After(next) {
				next = now.Add(time.Second)
				c.Logger.Info("recovering", "packets", count)
			}
		},
	})
	if err != nil {
		return nil, err
	}
	state.Report.Log(c.Logger)
	return state, nil
}

// serve accepts connections until ctx ends or the broker fails, and then drains.
func serve(ctx context.Context, server *netproto.Server, b *broker.Broker, c *Config) error {
	if c.Listening != nil {
		c.Listening("pinpriq", server.Addr())
	}
	stopTuning := tuneGC()
	defer stopTuning()
	served := make(chan error, 1)
	go func() { served <- server.Serve() }() // ends with Shutdown or Close below
	select {
	case <-ctx.Done():
	case <-b.Failed():
		server.Close()
		<-served
		return nil // Broker.Close says why
	}
	c.Logger.Info("draining", "at_most", c.Drain)
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.Drain)
	defer cancel()
	if err := server.Shutdown(drain); err != nil {
		c.Logger.Warn("connections were cut: they did not finish in time")
	}
	return <-served
}
