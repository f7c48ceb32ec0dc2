package storage

import (
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-queue/holdfast/storage/content"
)

// Take takes the batch of the log behind the last one. It belongs to the goroutine that follows.
//
// The error wraps ErrFull: nothing has changed, and the same batch may be taken later. It wraps
// ErrLoss: what the folder holds is not what the machine that decided holds, and only a copy helps.
// After any other the store takes nothing more.
func (s *Store) Take(batch uint64, b []byte) error {
	s.wait(true)
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
	_ = s.begin() // an error of it is the state
	last, failed := s.state()
	if failed != nil {
		return fmt.Errorf("the store stopped before batch %d: %w", batch, failed)
	}
	if batch != last.Batch+1 {
		return fmt.Errorf("%w: batch %d of the log comes behind batch %d", ErrLoss, batch, last.Batch)
	}
	c, control, err := readContent(batch, b)
	if err != nil {
		return err
	}
	changes, err := content.PacketsOf(c.Body, c.Entries)
	if err != nil {
		return err
	}
	changes.Merge(last.Tally)
	if err := control.Check(changes, 0); err != nil {
		return fmt.Errorf("behind batch %d: %w", batch, err)
	}
	start, before := time.Now(), s.layers.open.bytes
	if err = s.guard.look(); err == nil {
		err = s.keep(&c, nil, control.Hides)
	}
	if err != nil && !errors.Is(err, ErrFull) {
		s.fail(err)
	}
	if err != nil {
		return fmt.Errorf("batch %d: %w", batch, err)
	}
	s.epoch = control.Epoch
	s.applied(&control, start, before)
	return nil
}

// Own ends the following: from here on a term decides the batches of Apply, whose times a clock
// gives, in Unix milliseconds. The store has every batch that was decided.
func (s *Store) Own(term Term, clock func() int64) error {
	n, err := s.snapshot()
	if err != nil {
		return err
	}
	defer n.Close()
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
	s.term, s.clock = term, clock
	s.epoch = n.control.Epoch + 1
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flush = n.flush
	return nil
}
