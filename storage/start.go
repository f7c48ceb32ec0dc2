package storage

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-queue/holdfast/storage/disk"
	"github.com/holdfast-queue/holdfast/storage/journal"
	"github.com/holdfast-queue/holdfast/storage/tables"
)

// gather opens the tables, each of which has the bytes that were written, and makes more of what
// the journal has. Those come in force when the store begins.
func (s *Store) gather() error {
	open := func() (err error) {
		build := s.folder.name(buildName)
		if err := emptyFolder(build); err != nil {
			return err
		}
		o := tables.Options{Checked: s.opt.Checked, Wait: s.makeWay, Progress: s.tellOpening(), Damaged: func(t tables.Table, err error) error {
			if !errors.Is(err, os.ErrNotExist) {
				return err
			}
			return s.accept(FindingTable, filepath.Join(dbName, t.Name()), "the table is missing", fmt.Errorf("%w: %w", ErrLoss, err))
		}}
		s.tables, err = tables.Open(s.folder.name(dbName), build, o)
		return damaged(err)
	}
	o := journal.ReplayOptions{Note: func(what string) {
		s.opt.Logger.Warn(what)
		_ = s.accept(FindingLog, journalName, what, nil)
	}}
	if s.opt.AcceptLoss {
		o.AcceptBelow = s.opt.Cut
	}
	w, err := s.replay(o, open, s.accept)
	if w != nil && isFull(err) {
		s.guard.refresh()
		need, free := w.bytes+w.bytes/8+minWindow, s.guard.get().Free // with indexes and filters
		if need <= free {
			return fmt.Errorf("%w: a start makes tables of what the journal has; %d bytes are free below %s, but the disk takes no more files, "+
				"or a quota has ended; remove some files (%v)", ErrFull, free, s.folder.path, err)
		}
		return fmt.Errorf("%w: a start needs about %d bytes for tables of what the journal has, and %d are free below %s; free %d more (%v)",
			ErrFull, need, free, s.folder.path, need-free, err)
	}
	if err == nil {
		s.layers = layers{journal: s.journal, tables: s.tables, open: newWindow(w.upto)}
		s.layers.open.holes = w.holes && s.opt.Release != nil // what another machine takes for new may be below here
	}
	return err
}

// tellOpening has the log say every second how far the tables are read, each against its sum.
func (s *Store) tellOpening() func(done, total int64) {
	next := time.Now().Add(time.Second)
	return func(done, total int64) {
		if now := time.Now(); now.After(next) {
			next = now.Add(time.Second)
			s.opt.Logger.Info("checking the sums of the tables", "mib", done>>20, "of", total>>20)
		}
	}
}

// accept passes a loss over where that was asked for, and returns its error otherwise.
func (s *Store) accept(kind, key, what string, err error) error {
	if s.opt.AcceptLoss {
		s.accepted.add(Finding{kind, key, what + "; packets that were popped in what is lost may be there again"})
		return nil
	}
	return err
}

// replay opens the tables, and makes more of what the journal has beyond them, which is the window.
// The options say what is passed over of the journal. The last batch is held against the anchor.
// The error wraps ErrLoss if something is missing, unless lost passes that over.
func (s *parts) replay(o journal.ReplayOptions, open func() error, lost func(kind, key, what string, err error) error) (*window, error) {
	list, err := tables.ReadList(s.folder.name(dbName))
	if err != nil {
		return nil, damaged(err)
	}
	w := newWindow(floorMark(list))
	if s.journal != nil {
		o.After = w.from
		end, err := s.journal.Replay(o, func(r journal.Record) error {
			upto := w.upto
			upto.Batch = r.Batch
			w.holes = r.AfterHole
			return w.take(r.Place, r.Overhead(), r.Control, r.Body, r.Entries, nil, upto)
		})
		if errors.Is(err, journal.ErrDamage) {
			err = fmt.Errorf("%w: %w: %w", ErrDamaged, ErrLoss, err)
			if o.AcceptBelow < math.MaxUint64 { // lost may pass it over: then there is what was read before
				err = lost(FindingLog, journalName, err.Error(), err)
			}
		}
		if err != nil {
			return w, err
		}
		w.upto = end
	}
	if last, was := w.upto.Batch, s.anchor.last.batch; last < was {
		what := fmt.Sprintf("the store ends at batch %d, but batch %d was on disk: batches %d to %d are lost", last, was, last+1, was)
		if err := lost(FindingAnchor, anchorName, what, fmt.Errorf("%w: %s", ErrLoss, what)); err != nil {
			return w, err
		}
	}
	if s.guard != nil && s.guard.get().Level != Normal { // what the journal keeps from others is room for these tables
		if err := s.journal.Trim(w.from); err != nil {
			return w, err
		}
	}
	if err := open(); err != nil {
		return w, err
	}
	if w.upto == w.from {
		return w, nil
	}
	if err := s.writeOut(w); err != nil {
		return w, fmt.Errorf("cannot bring the journal into tables: %w", damaged(err))
	}
	return w, nil
}

// floorMark is the end of the last record that is in tables.
func floorMark(l *tables.List) journal.Mark {
	return journal.Mark{Batch: l.Floor.Batch, Segment: l.Floor.Segment, End: int64(l.Floor.Offset), Sum: l.Floor.Sum}
}

// begin puts the tables of the start in force. From here on they have everything, and the journal
// begins anew. An error stops the store. The holder of commitMu calls it.
func (s *Store) begin() error {
	if s.begun {
		return nil
	}
	s.begun = true
	err := damaged(s.tables.Begin())
	if err == nil {
		err = s.journal.Begin(s.layers.open.from)
	}
	if err == nil && s.opt.Whole {
		err = s.hold()
	}
	if err == nil {
		err = s.start()
	}
	if err = explainRefusal(err); err != nil {
		s.fail(fmt.Errorf("it cannot begin: %v", err)) // a full disk, too, is no longer one that waits
	}
	return err
}

// hold has what is written from here on stay in the folder of what is in the making.
func (s *Store) hold() (err error) {
	_ = s.journal.Close() // it has nothing
	if s.journal, err = s.openJournal(filepath.Join(s.folder.name(buildName), journalName)); err == nil {
		err = s.journal.Begin(s.layers.open.from)
	}
	s.layers.journal = s.journal
	s.tables.Hold()
	return err
}

// openJournal opens the journal in a folder, which it makes if there is none. Its name is durable
// before the journal has anything.
func (s *Store) openJournal(path string) (*journal.Journal, error) {
	if err := disk.Mkdir(path, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("cannot make the folder of the journal: %w", err)
	}
	if err := syncName(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("cannot sync the name of the journal: %w", err)
	}
	return journal.Open(path, journal.Options{SegmentSize: s.sizes.segment, Spares: s.sizes.spares, Weak: s.opt.Sync != SyncAlways()})
}

// readControl reads the records of which a store has one.
func (s *Store) readControl() error {
	v := s.tables.View()
	defer v.Close()
	var errs [2]error
	s.records, errs = readRecords(v)
	s.late = s.control.Follow(s.layers.open.upto.Batch)
	if s.epoch = s.control.Epoch; s.opt.Release == nil {
		s.epoch = max(s.epoch, s.anchor.last.epoch) + 1
	}
	return cmp.Or(errs[:]...)
}

// start notes the new epoch in the anchor, and runs what works beside Apply until Close.
func (s *Store) start() error {
	if err := s.anchor.write(s.mark(s.control.Batch)); err != nil {
		return err
	}
	if err := s.anchor.flush(); err != nil {
		return err
	}
	s.unsure.Store(s.opt.Release != nil)
	s.prepare()
	s.guard.needs = s.pressure
	if s.opt.Stepped != nil {
		return nil
	}
	s.done.Go(func() { s.background(flushing, s.frozen, s.flushNext) })
	s.done.Go(func() { s.background(merging, s.merge, s.mergeNext) })
	s.done.Go(func() { s.background(mergingBeside, s.beside, s.mergeBeside) })
	s.done.Go(s.prepareSegments)
	s.done.Go(func() { s.every(time.Second, s.housekeeping) })
	s.done.Go(func() { s.every(100*time.Millisecond, s.look) })
	if s.opt.Sync.every > 0 {
		s.done.Go(func() { s.every(s.opt.Sync.every, func() { _ = s.sync() }) })
	}
	return nil
}
