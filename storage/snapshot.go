package storage

import (
	"cmp"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/holdfast-queue/holdfast/storage/content"
	"github.com/holdfast-queue/holdfast/storage/tables"
)

// Snapshot is the state of a store after one batch, whatever is written later. Its methods may be
// called from any goroutine, also at the same time. It is closed before the store: while it is
// open, what it shows takes room on the disk, deleted or not.
//
// A snapshot of a View with ViewOptions.Tolerant notes what it cannot read as findings and goes on;
// any other stops with an error that wraps ErrDamaged.
type Snapshot struct {
	view *tables.View
	records

	tolerate func(Finding) // of a tolerant view; nil otherwise
	shown    atomic.Int64  // bytes that scans showed, large payloads and values included
}

// Snapshot returns the state after the last batch that Apply wrote, or a later one. It waits until
// that is in tables: mostly some tens of milliseconds, while batches go on. Then it reads all
// tables once, since Badger's scans pass over what they cannot read. It gives an error when the
// store has stopped, one that wraps ErrFull when the disk has no room for the tables, and one that
// wraps ErrDamaged.
func (s *Store) Snapshot() (*Snapshot, error) {
	n, err := s.snapshot()
	if err != nil {
		return nil, err
	}
	if err := n.view.Check(); err != nil {
		n.Close()
		return nil, fmt.Errorf("no snapshot: %w", damaged(err))
	}
	return n, nil
}

// snapshot is Snapshot that leaves the tables unread.
func (s *Store) snapshot() (*Snapshot, error) {
	if err := s.waitForTables(); err != nil {
		return nil, fmt.Errorf("no snapshot: %w", full(err))
	}
	n, errs := &Snapshot{view: s.tables.View()}, [2]error{}
	n.records, errs = readRecords(n.view)
	if err := cmp.Or(errs[:]...); err != nil {
		n.Close()
		return nil, fmt.Errorf("no snapshot: %w", err)
	}
	return n, nil
}

// waitForTables freezes what is not in tables yet, and waits until it is.
func (s *Store) waitForTables() error {
	s.commitMu.Lock()
	w := s.layers.freeze()
	s.commitMu.Unlock()
	if _, failed := s.state(); failed != nil || w == nil {
		return failed
	}
	s.wake(s.frozen)
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for {
		s.await()
		select {
		case <-w.done:
			return nil
		case <-s.ctx.Done():
			return ErrClosed
		case <-look.C:
			if _, err := s.state(); err != nil {
				return err
			}
			if err := s.fails(flushing); err != nil {
				return err
			}
		}
	}
}

// Control returns the control record.
func (n *Snapshot) Control() content.Control { return n.control }

// Flush returns the flush record.
func (n *Snapshot) Flush() content.Flush { return n.flush }

// Close gives the snapshot up. Nothing of it may run or be called then.
func (n *Snapshot) Close() {
	n.view.Rest()
	n.view.Close()
}
