package storage

import (
	"fmt"
	"sync"
	"time"
)

// work is a kind of work that is done in the background.
type work uint8

const (
	flushing work = iota
	merging
	mergingBeside
	preparing
	releasing
	works
)

// kinds are the kinds of work, for programs and for people.
var kinds = [works]struct{ name, text string }{
	flushing:      {"flush", "write windows out"},
	merging:       {"merge", "merge tables"},
	mergingBeside: {"merge_beside", "merge new tables beside a long merge"},
	preparing:     {"prepare_segment", "prepare a segment of the journal"},
	releasing:     {"remove_segment", "remove files of the journal"},
}

// troubles are the failures of the background: work that fails is tried again.
type troubles struct {
	mu    sync.Mutex // guards what follows
	works [works]struct {
		Work
		err     error // of the last try
		repeats bool  // it has failed twice in a row, or more often
	}
	count    uint64 // since the start
	repeats  uint64 // see Space, with the next one
	repeated string
}

// did notes that some work was done.
func (t *troubles) did(what work, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := &t.works[what]
	w.Done++
	w.Took += took
}

// figures returns the figures of all kinds of work, by their names.
func (t *troubles) figures() map[string]Work {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make(map[string]Work)
	for what, kind := range kinds {
		all[kind.name] = t.works[what].Work
	}
	return all
}

// noted notes how some work ended. A failure is logged when it begins and when it is over, not at
// each try. stops says that it stopped the store: nobody knows what is in force.
func (s *Store) noted(what work, err error) (stops bool) {
	if isUnknown(err) {
		s.fail(err)
		return true
	}
	t, text := &s.troubles, kinds[what].text
	t.mu.Lock()
	defer t.mu.Unlock()
	w := &t.works[what]
	if err != nil {
		t.count++
		w.Failures++
	}
	switch {
	case err != nil && !w.Failing:
		s.opt.Logger.Warn("work in the background fails, and is tried again", "work", text, "error", err)
	case err != nil && !w.repeats:
		w.repeats = true
		t.repeats++
		t.repeated = fmt.Sprintf("cannot %s: %v", text, err)
	case err == nil && w.Failing:
		w.repeats = false
		s.opt.Logger.Info("work in the background succeeds again", "work", text)
	}
	w.Failing, w.err = err != nil, err
	return false
}

// fails returns why some work fails; nil if it does not.
func (s *Store) fails(what work) error {
	s.troubles.mu.Lock()
	defer s.troubles.mu.Unlock()
	return s.troubles.works[what].err
}
