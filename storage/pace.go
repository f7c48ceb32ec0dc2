package storage

import (
	"cmp"
	"sync/atomic"
	"time"
)

// What may wait for the background: three windows of entries, a journal of eight windows, and
// tables of level 0, each of which makes a lookup slower.
const (
	waitWindows = 3
	fullJournal = 8
	waitTables  = 96
)

// behind is how much waits for the background, as a part of what may. From a half on data comes no
// faster than its tables. What fails counts nothing: then the level says what may still be written.
//
// Above 1 every batch waits, and so does the caller's loop: for a flush, or on a full disk for a
// step of a merge. Before that, and where level 0 is long, data alone waits: a merge may take
// minutes.
func (s *Store) behind() (part float64) {
	bytes, logged, _ := s.layers.waiting()
	window := s.sizes.window
	if s.fails(flushing) == nil {
		part = max(float64(bytes)/float64(waitWindows*window), float64(logged)/float64(fullJournal*window))
	}
	if s.fails(merging) == nil {
		// Deletions take room before a merge gives it back. They wait for a step of such a merge where
		// what waits could become tables: in the room that the merge leaves, or in the room of this step.
		if free := s.guard.get().Free; free < (waitWindows+freeWindows+1)*window && s.short() {
			part = max(part, 1)
			if free < bytes+(freeWindows+1)*window {
				part = 2
			}
		}
		part = max(part, min(float64(s.tables.List().Zero)/waitTables, 1))
	}
	return part
}

const (
	slowPart = 0.5 // from here on data comes no faster than its tables
	dataPart = 0.9 // from here on it waits: the rest is for what brings none
)

// dataWait is how long those who bring data should wait before they go on.
func (s *Store) dataWait() time.Duration {
	behind, next := s.lookBehind()
	wait := max(time.Until(next), 0)
	if behind > dataPart {
		wait = max(wait, lookAgain)
	}
	return wait
}

// lookBehind returns how much was behind after the last batch, or is now if that was much, and when
// the next one that brings data begins.
func (s *Store) lookBehind() (behind float64, next time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pace.behind > dataPart {
		s.pace.behind = s.behind()
	}
	return s.pace.behind, s.pace.next
}

// makeWay has a piece of the background wait for a sync that is under way. From slowPart on clients
// wait for tables, so the background does not.
func (s *Store) makeWay() {
	if behind, _ := s.lookBehind(); behind <= slowPart {
		s.journal.AwaitSync()
	}
}

// wait waits until the next batch may begin. One that brings data keeps the pace, where nobody has
// asked for that before.
func (s *Store) wait(data bool) {
	behind, next := s.lookBehind()
	if data {
		time.Sleep(time.Until(next))
	}
	for ; behind > 1; behind, _ = s.lookBehind() {
		s.wake(s.merge)
		s.await()
		select {
		case <-s.room:
		case <-time.After(time.Second):
			if _, failed := s.state(); failed != nil {
				return
			}
		}
	}
}

// await lets who makes the steps make those that the store waits for.
func (s *Store) await() {
	if s.opt.Stepped != nil {
		s.opt.Stepped()
	}
}

// pressure is the level that the background asks for, and which failure makes it so.
func (s *Store) pressure() (Level, error) {
	used, spare := s.journal.Size()
	bytes, _, _ := s.layers.waiting()
	window, err := s.sizes.window, s.fails(flushing)
	fails := err != nil
	switch {
	case s.noSegment.Load() && spare == 0, fails && used >= fullJournal*window:
		return Stop, err
	case fails && (bytes >= 2*window || used >= keepWindows*window):
		return NoPush, err
	}
	return Normal, nil
}

// pace has batches come no faster than windows become tables.
type pace struct {
	speed atomic.Int64 // of the background: nanoseconds for a MiB

	// Store.mu guards these.
	behind float64   // after the last batch, or later
	next   time.Time // when the next one that brings data begins
}

const (
	firstSpeed = 10 * time.Millisecond // a MiB, until a window was written out
	longestGap = 50 * time.Millisecond // between two batches
	oldestDebt = 2 * time.Millisecond  // a sleep is longer than it was told to be, and the next ones shorter
	lookAgain  = 5 * time.Millisecond  // until then a window may have become tables
)

// measure notes how long it took to write out a window, if that was a full one.
func (p *pace) measure(bytes int64, took time.Duration, window int64) {
	if bytes >= window {
		p.speed.Store(int64(took) * (1 << 20) / bytes)
	}
}

// slow has the next batch begin when the background has had time for one that brought so much. What
// comes without waiting makes no debt that one batch would have to sleep off.
func (p *pace) slow(begun time.Time, bytes int64) {
	begun = begun.Add(-oldestDebt)
	if p.next.Before(begun) {
		p.next = begun
	}
	speed := cmp.Or(p.speed.Load(), int64(firstSpeed))
	gap := time.Duration(max(bytes, 0) * speed >> 20)
	if p.next = p.next.Add(gap); p.next.After(begun.Add(longestGap)) {
		p.next = begun.Add(longestGap)
	}
}
