package storage

import (
	"errors"
	"sync"

	"github.com/holdfast-queue/holdfast/storage/journal"
	"github.com/holdfast-queue/holdfast/storage/tables"
)

// work is what is done in the background.
type work string

const (
	flushing  work = "write windows out"
	merging   work = "merge tables"
	preparing work = "prepare a segment of the journal"
	releasing work = "remove files of the journal"
)

// troubles are the failures of the background: work that fails is tried again.
type troubles struct {
	mu    sync.Mutex // guards what follows
	fails map[work]error
	count uint64 // since the start
}

// noted notes how some work ended. A failure is logged when it begins and when it is over, not at
// each try. stops says that it stopped the store: nobody knows what is in force.
func (s *Store) noted(what work, err error) (stops bool) {
	if errors.Is(err, tables.ErrUnknown) || errors.Is(err, journal.ErrUnknown) {
		s.fail(err)
		return true
	}
	t := &s.troubles
	t.mu.Lock()
	defer t.mu.Unlock()
	was := t.fails[what]
	if err != nil {
		t.count++
	}
	switch {
	case err != nil && was == nil:
		s.opt.Logger.Warn("work in the background fails, and is tried again", "work", what, "error", err)
	case err == nil && was != nil:
		s.opt.Logger.Info("work in the background succeeds again", "work", what)
	}
	if t.fails == nil {
		t.fails = make(map[work]error)
	}
	t.fails[what] = err
	return false
}

// fails returns why some work fails; nil if it does not.
func (s *Store) fails(what work) error {
	s.troubles.mu.Lock()
	defer s.troubles.mu.Unlock()
	return s.troubles.fails[what]
}
