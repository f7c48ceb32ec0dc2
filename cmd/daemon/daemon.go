package daemon

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/cmd/daemon/metrics"
	"github.com/holdfast-queue/holdfast/netproto"
	"github.com/holdfast-queue/holdfast/netproto/access"
	"github.com/holdfast-queue/holdfast/netproto/admin"
	"github.com/holdfast-queue/holdfast/netproto/admin/page"
	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/storage"
)

// Run serves until ctx ends, then drains and returns nil. It returns an error if the folder cannot
// be opened, recovered or served, or if a commit failed. What was acknowledged is on disk in every
// case.
func Run(ctx context.Context, c Config) (err error) {
	c.setDefaults()
	defer func() { c.stopped(err) }()
	all, err := c.listeners()
	if err != nil {
		return err
	}
	l, err := c.live()
	if err != nil {
		return err
	}
	if err := c.limitConns(all); err != nil {
		return err
	}
	all.encrypt(l.certs.config())
	background, stop := context.WithCancel(context.Background())
	defer stop()
	go l.certs.watch(background) // ends with Run
	health, doors := newHealth(), braked(c.Logger)
	figures, err := metrics.New(metrics.Config{Version: c.Version, GoVersion: runtime.Version(), Queues: c.MetricsQueues, Ready: health.Ready})
	if err != nil {
		return err
	}
	// The addresses come first: recovery may take long, and a port that is taken should be known
	// before.
	if err := all.bind(); err != nil {
		return err
	}
	defer func() { all.close() }() // with what serve adds
	audit := access.NewAudit(c.Logger)
	defer audit.Flush()
	defer health.supervise(ctx)()
	ended := make(chan error, len(all)+1)
	var opened *storage.Store
	web := page.New(page.Config{Users: l.users, Logger: doors, Version: c.Version, Ready: health.Ready, Settings: c.Settings})
	all.serveOperator(&c, admin.Config{
		Health: health, Metrics: figures, Backup: backupOf(&opened, c.Version), Users: l.users, Logger: doors, Audit: audit,
		Reload: c.AskReload, AnyHost: c.Insecure || c.open() == "", Profiles: c.Debug, Page: web,
	}, ended)
	opened, err = storage.Open(c.Data, storage.Options{Sync: c.Sync, AcceptLoss: c.AcceptLoss, MaxPayload: c.MaxPayload, Logger: c.Logger})
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
	state, err := restore(store, opened.Accepted(), health, &c, l.defaults)
	if err != nil {
		return err
	}
	disk := loopStore{store, health}
	machine := broker.New(disk, state, broker.Options{Cache: c.Cache, MaxPayload: int(c.MaxPayload), Logger: doors, Defaults: l.defaults})
	loop, err := netproto.StartLoop(machine, disk, netproto.LoopConfig{Logger: c.Logger, Goroutines: c.Goroutines, Turned: c.Turned, Tell: func(events []broker.Event) { logEvents(doors, events) }})
	if err != nil {
		return err
	}
	l.loop = loop
	health.serve(loop) // before a client can know that the server listens
	source := metrics.Source{Loop: loop, Store: opened, Recovery: state.Report, Users: l.users, Certificate: l.certs.until(), LastBackup: all.lastBackup}
	figures.Serve(all.serve(&c, source, l.users, doors, audit, web, ended))
	err = serve(ctx, all, l, health, ended, &c)
	return errors.Join(err, loop.Close())
}

// stopped says that all is over, and well: an error is told by who gets it.
func (c *Config) stopped(err error) {
	if err == nil {
		c.Logger.Info("stopped")
	}
}

// restore builds the broker's starting state and logs its progress every second. accepted is the
// damage that opening the store passed over.
func restore(store Store, accepted []storage.Finding, h *health, c *Config, defaults broker.Defaults) (*recovery.State, error) {
	h.recover(store.Control())
	next := time.Now().Add(time.Second)
	state, err := recovery.Restore(store, recovery.Options{
		Now:        time.Now().UnixMilli(),
		AcceptLoss: c.AcceptLoss,
		Accepted:   accepted,
		Defaults:   defaults,
		Progress: func(count int) {
			h.read.Store(int64(count))
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

// serve goes on until ctx ends or a commit fails, and then drains. ended gets what each server
// returned.
func serve(ctx context.Context, all listeners, l live, h *health, ended <-chan error, c *Config) error {
	stopTuning := TuneGC()
	defer stopTuning()
	if l.follow(ctx, c.Reloads) {
		h.drain(c.Drain)
		c.Logger.Info("draining", "at_most", c.Drain)
		drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.Drain)
		defer cancel()
		if err := all.doors().shutdown(drain); err != nil {
			c.Logger.Warn("connections were closed that did not finish in time")
		}
		_ = all.operators().shutdown(drain) // it has told meanwhile how the others drain
	} else {
		all.close()
	}
	var errs []error
	for range all {
		errs = append(errs, <-ended)
	}
	return errors.Join(errs...)
}
