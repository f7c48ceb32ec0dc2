package storage

import (
	"errors"
	"fmt"
	"sync"
	"time"

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

// kinds are the names of work for programs.
func kinds() map[work]string {
	return map[work]string{flushing: "flush", merging: "merge", preparing: "prepare_segment", releasing: "remove_segment"}
}

// troubles are the failures of the background: work that fails is tried again.
type troubles struct {
	mu    sync.Mutex // guards what follows
	fails map[work]error
	count uint64 // since the start
	works map[work]*Work

	repeating map[work]bool // those that have failed twice in a row, or more often
	repeats   uint64        // see Space, with the next one
	repeated  string
}

// did notes that some work was done.
func (t *troubles) did(what work, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.of(what)
	w.Done++
	w.Took += took
}

// of returns the figures of some work.
func (t *troubles) of(what work) *Work {
	if t.works == nil {
		t.works = make(map[work]*Work)
	}
	w := t.works[what]
	if w == nil {
		w = new(Work)
		t.works[what] = w
	}
	return w
}

// figures are those of all kinds of work, by their names.
func (t *troubles) figures() map[string]Work {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make(map[string]Work)
	for what, kind := range kinds() {
		w := t.of(what)
		w.Failing = t.fails[what] != nil
		all[kind] = *w
	}
	return all
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
		t.of(what).Failures++
	}
	t.repeat(what, err, was)
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

// repeat notes failures of some work that are the second in a row.
func (t *troubles) repeat(what work, err, was error) {
	switch {
	case err == nil:
		delete(t.repeating, what)
	case was != nil && !t.repeating[what]:
		if t.repeating == nil {
			t.repeating = make(map[work]bool)
		}
		t.repeating[what] = true
		t.repeats++
		t.repeated = fmt.Sprintf("cannot %s: %v", what, err)
	}
}

// fails returns why some work fails; nil if it does not.
func (s *Store) fails(what work) error {
	s.troubles.mu.Lock()
	defer s.troubles.mu.Unlock()
	return s.troubles.fails[what]
}
