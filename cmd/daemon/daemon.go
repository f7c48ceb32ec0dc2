package daemon

import (
	"context"
	"time"

	"github.com/holdfast-queue/holdfast/netproto"
	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/storage"
)

// Run serves until ctx ends, then drains and returns nil. It returns an error if the folder cannot
// be opened, recovered or served, or if a commit failed. What was acknowledged is on disk in every
// case.
func Run(ctx context.Context, c Config) (err error) {
	s, err := Begin(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = s.End(err) }()
	store, err := storage.Open(s.c.Data, s.StorageOptions())
	if err != nil {
		return err
	}
	return s.Serve(ctx, store, Term{})
}

// restore builds the broker's starting state and logs its progress every second. accepted is the
// damage that opening the store passed over. It ends with ctx, or when the term is not held.
func (s *Server) restore(ctx context.Context, store Store, accepted []storage.Finding, now int64, held func() bool) (*recovery.State, error) {
	s.health.recover(store.Control())
	next := time.Now().Add(time.Second)
	state, err := recovery.Restore(store, recovery.Options{
		Now:        now,
		AcceptLoss: s.c.AcceptLoss,
		Accepted:   accepted,
		Defaults:   s.live.defaults,
		Progress: func(count int) {
			s.health.read.Store(int64(count))
			s.health.getOn()
			if now := time.Now(); now.After(next) {
				next = now.Add(time.Second)
				s.c.Logger.Info("recovering", "packets", count)
			}
		},
		Step: func() error {
			s.health.getOn()
			if held != nil && !held() {
				return netproto.ErrNotHeld
			}
			return context.Cause(ctx)
		},
	})
	if err != nil {
		return nil, err
	}
	state.Report.Log(s.c.Logger)
	return state, nil
}
