package storage

import (
	"context"
	"errors"
	"time"
)

// outliveGaps waits until the logs that were there are in tables, when a gap between them may have
// been accepted: the anchor is about to say that each batch is synced, by which the next start
// would refuse them. Where that takes long the anchor says so later.
func (s *Store) outliveGaps() error {
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

// closeGaps notes when the logs that may have gaps between them are in tables.
func (s *Store) closeGaps() {
	if !s.gaps.Load() {
		return
	}
	if logs, err := logNames(s.folder.name(dbName)); err == nil && len(logs) <= 1 {
		s.gaps.Store(false)
	}
}
