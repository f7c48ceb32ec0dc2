package storage

import (
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
	shown    atomic.Int64  // bytes that scans showed, with those of large payloads and values
}

// Snapshot returns the state after the last batch that Apply wrote. It waits until that is in
// tables: mostly some tens of milliseconds, while batches go on. Then it reads all tables once,
// since Badger's scans pass over what they cannot read. It gives an error when the store has
// stopped, one that wraps ErrFull when the disk has no room for the tables, and one that wraps
// ErrDamaged.
func (s *Store) Snapshot() (*Snapshot, error) {
	n, err := s.waitForSnapshot()
	if err != nil {
		return nil, err
	}
	if err := n.view.Check(); err != nil {
		n.Close()
		return nil, fmt.Errorf("no snapshot: %w", damaged(err))
	}
	return n, nil
}

func (s *Store) waitForSnapshot() (*Snapshot, error) {
	n, w, err := s.snapshot()
	if err != nil || w == nil {
		return n, err
	}
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case <-w.done:
			return n, nil
		case <-s.ctx.Done():
			err = ErrClosed
		case <-look.C:
			if _, err = s.state(); err == nil {
				err = s.fails(flushing)
			}
		}
		if err == nil {
			continue
		}
		if s.layers.giveUp(n) {
			return nil, fmt.Errorf("no snapshot: %w", full(err))
		}
	}
}

// snapshot freezes what is not in tables yet. The view of the snapshot is there when the window is
// done; without a window it is there.
func (s *Store) snapshot() (*Snapshot, *window, error) {
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
	s.mu.Lock()
	n, failed := &Snapshot{records: s.records}, s.failed
	s.mu.Unlock()
	if failed != nil {
		return nil, nil, fmt.Errorf("no snapshot of a store that has stopped: %w", failed)
	}
	if w := s.layers.freeze(n); w != nil {
		s.wake(s.frozen)
		return n, w, nil
	}
	n.view = s.tables.View()
	return n, nil, nil
}

// Control returns the control record.
func (n *Snapshot) Control() content.Control { return n.control }

// Flush returns the flush record.
func (n *Snapshot) Flush() content.Flush { return n.flush }

// Close gives the snapshot up. Nothing of it may run or be called then.
func (n *Snapshot) Close() { n.view.Close() }
