package storage

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"time"

	"github.com/holdfast-queue/holdfast/storage/journal"
	"github.com/holdfast-queue/holdfast/storage/tables"
)

// maxFrozen is how many windows wait to become tables. With more, a batch waits.
const maxFrozen = 2

// When nothing is written for restAfter the window is frozen, unless the last one was less than
// restEvery ago. One that is older than maxAge is frozen whatever is written.
const (
	restAfter = time.Second
	restEvery = 5 * time.Second
	maxAge    = 30 * time.Second
)

// A level 0 that has more groups or tables than this is merged.
const (
	mergeGroups = 16
	mergeTables = 32
)

// writeOut builds the tables of a window and puts them in force.
func (s *Store) writeOut(w *window) (err error) {
	records, err := s.journal.Window(w.from, w.upto)
	if err != nil {
		return err
	}
	defer records.Close()
	number := s.tables.List().Window + 1
	built, err := func() (_ *tables.Built, err error) {
		defer recoverFault(&err, debug.SetPanicOnFault(true))
		return s.tables.Build(0, s.sizes.table(s.tables.List().Bytes()), w.all(records, number))
	}()
	if err != nil {
		return err
	}
	floor := tables.Floor{Batch: w.upto.Batch, Segment: w.upto.Segment, Offset: uint64(w.upto.End), Sum: w.upto.Sum}
	if err := s.tables.Adopt(tables.Adoption{Add: built, Window: number, Floor: &floor}); err != nil {
		return err
	}
	return nil
}

// all gives the entries of a window as tables have them.
func (w *window) all(records *journal.Window, number uint64) iter.Seq2[tables.Entry, error] {
	return func(yield func(tables.Entry, error) bool) {
		control := pendingKeyOf([]byte(controlKey))
		given := false
		for _, key := range w.sorted() {
			if !given && comparePending(control, key) < 0 {
				given = true
				if !yield(tables.Entry{Key: control.bytes(), Value: w.control, Version: number}, nil) {
					return
				}
			}
			s := w.entries[key]
			e := tables.Entry{Key: key.bytes(), Version: number, Expires: uint64(s.expires), Deleted: s.deleted}
			if !s.deleted {
				e.Value = records.Bytes(journal.Place{Segment: s.segment, Offset: s.offset}, 0, s.length)
			}
			if !yield(e, nil) {
				return
			}
		}
		if !given {
			yield(tables.Entry{Key: control.bytes(), Value: w.control, Version: number}, nil)
		}
	}
}

// flush writes frozen windows out until Close, the oldest first. A failure is tried again after a
// second, doubling to half a minute, unless nobody knows what is in force.
func (s *Store) flushWindows() {
	for wait := time.Second; ; {
		w := s.layers.oldest()
		if w == nil {
			select {
			case <-s.frozen:
				continue
			case <-s.stop:
				return
			}
		}
		err := s.flushOne(w)
		s.noteFlush(err)
		if err == nil {
			wait = time.Second
			continue
		}
		if s.failing(err) != nil {
			return
		}
		select {
		case <-time.After(wait):
			wait = min(2*wait, 30*time.Second)
		case <-s.stop:
			return
		}
	}
}

// flushOne writes the oldest window out, and gives up what the journal has of it.
func (s *Store) flushOne(w *window) (err error) {
	s.flushing.Lock()
	defer s.flushing.Unlock()
	if s.layers.oldest() != w {
		return nil
	}
	list := s.tables.List()
	if list.Floor.Batch < w.upto.Batch {
		err := s.writeOut(w)
		if isFull(err) { // the journal has room that nobody else could take
			if err = s.journal.SetSpares(0); err == nil {
				err = s.writeOut(w)
			}
		}
		if err != nil {
			return fmt.Errorf("cannot write a window out: %w", err)
		}
	}
	s.dead.Add(int64(w.hidden) * averageEntry(list))
	s.guard.stored(s.tables.List().Bytes())
	s.layers.drop()
	close(w.done)
	s.flushed.Store(time.Now().UnixNano())
	s.wake(s.room)
	s.wake(s.merge)
	err = s.journal.Release(w.upto.Batch)
	if prepared := s.journal.Prepare(); !isFull(prepared) {
		err = errors.Join(err, prepared)
	}
	return err
}

// noteFlush notes whether windows can be written out.
func (s *Store) noteFlush(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unflushed = err
}

// flushFails returns why windows cannot be written out; nil if they can.
func (s *Store) flushFails() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unflushed
}

// pressure is the level that what waits to become tables asks for.
func (s *Store) pressure() Level {
	used, spare := s.journal.Size()
	bytes, _ := s.layers.waiting()
	window, fails := s.sizes.window, s.flushFails() != nil
	switch {
	case s.noSegment.Load() && spare == 0, fails && used >= fullJournal*window:
		return Stop
	case fails && (bytes >= 2*window || used >= keepWindows*window):
		return NoPush
	}
	return Normal
}

// keepSpares has the journal keep files of its own where the disk may fill up: they are room that
// nobody else can take. One more is made at each call.
func (s *Store) keepSpares() {
	_, spare := s.journal.Size()
	have := int(spare / s.sizes.segment)
	if space := s.guard.get(); space.Level != Normal || space.Free > spareWindows*s.sizes.window || have > s.sizes.spares {
		return
	}
	if err := s.journal.SetSpares(have); err != nil {
		_ = s.failing(err)
	}
}

// wake tells a goroutine that there may be something to do.
func (s *Store) wake(tell chan struct{}) {
	select {
	case tell <- struct{}{}:
	default:
	}
}

// averageEntry is what an entry of the tables takes, in bytes.
func averageEntry(l *tables.List) int64 { return l.Bytes() / int64(max(l.Entries(), 1)) }

// failing notes a failure of the background. It returns the error if it stops the store.
func (s *Store) failing(err error) error {
	if errors.Is(err, tables.ErrUnknown) || errors.Is(err, journal.ErrUnknown) {
		s.fail(err)
		return err
	}
	s.opt.Logger.Warn("work in the background failed and is tried again", "error", err)
	return nil
}

// mergeLevels merges tables until Close. It rests as long as it worked, unless there is much to do.
// A failure is tried again as flushWindows does.
func (s *Store) mergeLevels() {
	wait := time.Second
	var again <-chan time.Time
	for {
		select {
		case <-s.merge:
		case <-again:
		case <-s.stop:
			return
		}
		again = nil
		for {
			begun := time.Now()
			worked, urgent, err := s.mergeOnce(s.ctx)
			if errors.Is(err, context.Canceled) {
				return
			}
			if err != nil {
				if s.failing(err) != nil {
					return
				}
				again, wait = time.After(wait), min(2*wait, 30*time.Second)
			}
			if !worked {
				break
			}
			wait = time.Second
			if urgent {
				continue
			}
			select {
			case <-time.After(time.Since(begun)):
			case <-s.stop:
				return
			}
		}
	}
}

// mergeOnce merges if that is due.
func (s *Store) mergeOnce(ctx context.Context) (worked, urgent bool, err error) {
	list := s.tables.List()
	groups, zero := list.Upper()
	dead, live := s.deadAndLive(list)
	all := dead > live+4*s.sizes.window
	if !all && groups <= mergeGroups && zero <= mergeTables {
		return false, false, nil
	}
	if err := s.guard.roomToMerge(live); err != nil {
		return false, false, err
	}
	before := s.dead.Load()
	worked, err = s.tables.Merge(ctx, tables.MergeOptions{All: all, Size: s.sizes.table(list.Bytes()), Now: uint64(time.Now().Unix())})
	if err == nil && all {
		s.dead.Add(-before)
	}
	return worked, zero > 2*mergeTables || dead > 2*(live+4*s.sizes.window), err
}

// deadAndLive estimates what the tables hold that nobody needs, and the rest, in bytes.
func (s *Store) deadAndLive(l *tables.List) (dead, live int64) {
	dead = min(2*s.dead.Load(), l.Bytes())
	return dead, l.Bytes() - dead
}
