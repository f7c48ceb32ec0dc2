package storage

import (
	"context"
	"errors"
	"time"
)

// waitForOldLogs blocks until the logs of earlier starts are in tables. They may hold a gap that
// was accepted; once the anchor says "every batch is synced", the next start would call that gap
// damage. After two seconds it gives up, and the anchor says so later.
func (s *Store) waitForOldLogs() error {
	if s.opt.Sync.kind != syncAlways || s.anchor.last.always && !s.opt.AcceptLoss {
		return nil
	}
	const enough = 2 * time.Second // on a full disk Badger waits, too
	ctx, cancel := context.WithTimeout(context.Background(), enough)
	defer cancel()
	err := s.waitFlushed(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		s.gaps.Store(true)
		return nil
	}
	return err
}

// closeGaps notes that the old logs are in tables, when they are.
func (s *Store) closeGaps() {
	if !s.gaps.Load() {
		return
	}
	if logs, err := logNames(s.folder.name(dbName)); err == nil && len(logs) <= 1 {
		s.gaps.Store(false)
	}
}
