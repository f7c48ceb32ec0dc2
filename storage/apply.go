package storage

import (
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-queue/holdfast/storage/content"
	"github.com/holdfast-queue/holdfast/storage/journal"
)

// Apply writes the batch and the control record as one record of the journal, and returns when it
// is as durable as Options.Sync says. A batch with nothing to write touches no disk.
//
// The error is nil; one that wraps ErrFull, and then nothing was written; or one that wraps
// ErrUnknown, and then the store takes no more batches: the caller stops.
func (s *Store) Apply(b *content.Batch) error {
	if b.Empty() {
		return nil
	}
	return s.write(b)
}

// write is Apply, also of a batch that changes nothing but the control record.
func (s *Store) write(b *content.Batch) error {
	s.wait(b.Brings())
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
	_ = s.begin() // an error of it is the state
	next, failed := s.state()
	if failed != nil {
		return fmt.Errorf("%w: the store stopped before it: %w", ErrUnknown, failed)
	}
	if err := s.guard.look(); errors.Is(err, ErrFull) {
		return err
	} else if err != nil {
		s.fail(err)
		return fmt.Errorf("%w: the store stopped before it: %w", ErrUnknown, err)
	}
	if b.Brings() {
		s.reserve()
	}
	next.Tally.Merge(b.Tally())
	next.Epoch = s.epoch
	next.Batch++
	start, before := time.Now(), s.layers.open.bytes
	next.Time = max(next.Time, s.clock())
	if m, set := b.Marks(); set {
		next.Marks = m
	}
	s.body, s.hides = b.Body(s.body[:0], s.hides[:0])
	next.Hides = 0
	for i := 0; i < len(s.hides) && s.opt.Release != nil; i++ {
		next.Hides += uint64(s.hides[i])
	}
	err := s.commit(&next, b.Len(), s.body, s.hides)
	took := time.Since(start)
	if s.noSegment.Store(errors.Is(err, ErrFull)); errors.Is(err, ErrFull) {
		s.freeze() // tables of it give room of the journal back
		return err
	}
	if err != nil {
		s.fail(err)
		return fmt.Errorf("%w: batch %d: %w", ErrUnknown, next.Batch, err)
	}
	s.mu.Lock()
	s.commits.add(b, took)
	if s.opt.Sync == SyncAlways() {
		s.commits.Sync.AddTime(s.journal.SyncTook())
	}
	if f, set := b.Flush(); set {
		s.flush = f
	}
	s.mu.Unlock()
	s.applied(&next, start, before)
	return nil
}

// applied notes a batch that is in the open window, which had some bytes when it began.
func (s *Store) applied(c *content.Control, start time.Time, before int64) {
	s.mu.Lock()
	s.control = *c
	if s.pace.behind = s.behind(); s.pace.behind > slowPart {
		s.pace.slow(start, s.layers.open.bytes-before)
	}
	s.mu.Unlock()
	s.freezeIfFull()
}

// state returns the control record, and why the store stopped.
func (s *Store) state() (content.Control, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.control, s.failed
}

// commit decides the entries of a batch and a control record. Batch.Body says what body and hides
// are.
func (s *Store) commit(next *content.Control, entries int, body [][]byte, hides []uint32) error {
	s.record = content.AppendControl(s.record[:0], next)
	c := journal.Content{Batch: next.Batch, Control: s.record, Entries: uint32(entries), Body: body}
	if s.opt.Release == nil {
		return s.keep(&c, hides, 0)
	}
	if err := s.decide(&c); err != nil {
		return err
	}
	if err := s.keep(&c, hides, 0); err != nil {
		return fmt.Errorf("what was decided is not in the journal: %v", err) // a full disk, too, is no longer one that waits
	}
	return nil
}

// decide has the term decide a batch. The journal has room for it before: afterwards the others
// have it.
func (s *Store) decide(c *journal.Content) error {
	if s.term == nil {
		return errFollows
	}
	if err := s.journal.MakeRoom(*c); err != nil {
		return full(err)
	}
	s.head = appendContentHead(s.head[:0], c)
	s.shared = append(append(s.shared[:0], s.head), c.Body...)
	return s.term(c.Batch, s.shared)
}

// keep writes the content of a batch to the journal, and takes it into the open window. It is the
// only way there, also for what others decided. Of that hides is nil, and its sum is all.
func (s *Store) keep(c *journal.Content, hides []uint32, all uint64) error {
	place, upto, err := s.journal.Append(*c)
	if errors.Is(err, journal.ErrFull) {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	if err != nil {
		return err
	}
	if s.opt.Sync == SyncAlways() {
		if err := s.anchor.write(s.mark(c.Batch)); err != nil {
			return err
		}
	}
	if upto.Segment != s.segment {
		s.segment = upto.Segment
		s.wake(s.next)
	}
	return s.layers.take(place, upto, c, hides, all)
}
