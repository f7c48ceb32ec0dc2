package storage

import (
	"fmt"

	"github.com/dgraph-io/badger/v4"
)

// Badger gives the room of deleted packets back only when compactions carry
// their tombstones down to where the packets are. A queue that was drained
// and left alone keeps both for ever: the tombstones wait in a memory table
// that nothing fills, or in a level that nothing makes overflow. So when the
// store is quiet and mostly garbage, or short of room, the levels are merged.
type tidier struct {
	deleted uint64 // deletes since the last merge; of a store just opened it is not known
	unknown bool
	rotated uint64 // deletes up to which the memory table was written out
	batch   uint64 // seen a second ago
	quiet   int    // seconds without a batch
	free    int64  // a second ago, or 0 if this goroutine itself used some
}

const (
	quietSeconds = 2
	// tidyTables and tidyLimit bound what is merged without being asked, in
	// memory tables: less is not worth it, and more would hold Close up.
	tidyTables = 4
	tidyLimit  = 64
)

// tidy is called once a second by one goroutine.
func (s *Store) tidy(t *tidier) {
	s.mu.Lock()
	batch, deleted, live, failed := s.control.Batch, s.deleted, s.control.Live, s.failed
	s.mu.Unlock()
	if t.quiet++; batch != t.batch {
		t.batch, t.quiet = batch, 0
	}
	space, table := s.guard.get(), s.guard.sizing.memTable
	garbage := deleted - t.deleted
	short := space.Level != Normal && (garbage > live/8 || t.unknown)
	idle := t.quiet >= quietSeconds && space.Stored > tidyTables*table && garbage > live
	filling := space.Free < t.free-table/4 // by somebody else, if no batch came: what is left is for work under way
	t.free = space.Free
	if failed != nil || filling && t.quiet > 0 || !short && !idle || space.Stored > tidyLimit*table {
		return
	}
	if deleted != t.rotated {
		if err := s.rotate(); err != nil {
			s.fail(err)
			return
		}
		t.rotated, t.free = deleted, 0
		return // merged a second later, when the table is there
	}
	t.deleted, t.unknown = deleted, false
	if err := s.db.Flatten(1); err != nil {
		s.opt.Logger.Warn("cannot merge the levels of the database", "error", err)
	}
	s.guard.refresh(s.tableBytes())
}

// rotate fills the active memory table up, so that Badger writes it out.
func (s *Store) rotate() error {
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
	part := s.limits.MaxBytes / 2
	if s.guard.look(s.guard.sizing.memTable) != nil {
		return nil // no room even for that
	}
	filler := make([]byte, min(part, s.limits.MaxRecord))
	for range s.guard.sizing.memTable/int64(len(filler)) + 1 {
		if err := s.commitFiller(func(txn *badger.Txn) error { return txn.Set([]byte(fillerKey), filler) }); err != nil {
			return err
		}
	}
	return s.commitFiller(func(txn *badger.Txn) error { return txn.Delete([]byte(fillerKey)) })
}

func (s *Store) commitFiller(fill func(*badger.Txn) error) error {
	// Synced like a batch: what checkLogs says of a torn log holds only as
	// long as one transaction is in flight.
	control := s.Control()
	if err := s.transact(fill, &control); err != nil {
		return fmt.Errorf("cannot fill a memory table: %w", err)
	}
	return nil
}
