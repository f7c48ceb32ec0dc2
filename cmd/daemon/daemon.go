package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto"
	"github.com/holdfast-queue/holdfast/netproto/admin"
	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/storage"
)

// Run serves until ctx ends, then drains and returns nil. It returns an error if the folder cannot
// be opened, recovered or served, or if a commit failed. What was acknowledged is on disk in every
// case.
func Run(ctx context.Context, c Config) (err error) {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Drain <= 0 {
		c.Drain = DefaultDrain
	}
	c.Version = cmp.Or(c.Version, "unknown")
	all, err := c.listeners()
	if err != nil {
		return err
	}
	if err := c.limitConns(all); err != nil {
		return err
	}
	// The addresses come first: recovery may take long, and a port that is taken should be known
	// before.
	if err := all.bind(); err != nil {
		return err
	}
	defer all.close()
	opened, err := storage.Open(c.Data, storage.Options{Sync: c.Sync, AcceptLoss: c.AcceptLoss, Logger: c.Logger})
	if err != nil {
		return err
	}
	store := Store(opened)
	if c.WrapStore != nil {
		store = c.WrapStore(opened)
	}
	defer func() {
		if e := store.Close(); e != nil && err == nil {
			err = fmt.Errorf("close data folder: %w", e)
		}
	}()
	state, err := restore(store, opened.Accepted(), &c)
	if err != nil {
		return err
	}
	doors := braked(c.Logger)
	machine := broker.New(store, state, broker.Options{Cache: c.Cache, Logger: doors})
	loop, err := netproto.StartLoop(machine, store, netproto.LoopConfig{Logger: c.Logger, Goroutines: c.Goroutines})
	if err != nil {
		return err
	}
	err = serve(ctx, all, loop, backupOf(opened), &c, doors)
	return errors.Join(err, loop.Close())
}

// restore builds the broker's starting state and logs its progress every second. accepted is the
// damage that opening the store passed over.
func restore(store Store, accepted []storage.Finding, c *Config) (*recovery.State, error) {
	next := time.Now().Add(time.Second)
	state, err := recovery.Restore(store, recovery.Options{
		Now:        time.Now().UnixMilli(),
		AcceptLoss: c.AcceptLoss,
		Accepted:   accepted,
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

// serve accepts connections until ctx ends or a commit fails, and then drains.
func serve(ctx context.Context, all listeners, loop *netproto.Loop, backup admin.Backup, c *Config, doors *slog.Logger) error {
	stopTuning := TuneGC()
	defer stopTuning()
	ended := all.serve(c, loop, backup, doors)
	for _, l := range all {
		c.Logger.Info("listening", "protocol", l.protocol, "addr", l.socket.Addr().String())
		if c.Listening != nil {
			c.Listening(l.protocol, l.socket.Addr())
		}
	}
	select {
	case <-ctx.Done():
		c.Logger.Info("draining", "at_most", c.Drain)
		drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.Drain)
		defer cancel()
		if err := all.shutdown(drain); err != nil {
			c.Logger.Warn("connections were closed that did not finish in time")
		}
	case <-loop.Failed(): // Loop.Close says why
		all.close()
	}
	var errs []error
	for range all {
		errs = append(errs, <-ended)
	}
	return errors.Join(errs...)
}
