package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-queue/holdfast/storage/journal"
	"github.com/holdfast-queue/holdfast/storage/tables"
)

// replay opens the tables, each of which has the bytes that were written, and makes more of what
// the journal has. Those come in force when the store begins.
func (s *Store) replay() error {
	list, err := tables.ReadList(s.folder.name(dbName))
	if err != nil {
		return damaged(err)
	}
	w, end, err := readJournal(s.journal, list, s.opt.AcceptLoss, func(what string) {
		s.opt.Logger.Warn(what)
		if s.opt.AcceptLoss {
			s.accepted.add(Finding{FindingLog, journalName, what + "; " + lostWith})
		}
	})
	if err != nil {
		return err
	}
	if was := s.anchor.last; end.Batch < was.batch {
		what := fmt.Sprintf("the store ends at batch %d, but batch %d was on disk: batches %d to %d are lost",
			end.Batch, was.batch, end.Batch+1, was.batch)
		if !s.opt.AcceptLoss {
			return fmt.Errorf("%w: %s", ErrLoss, what)
		}
		s.accepted.add(Finding{FindingAnchor, anchorName, what + ", and " + lostWith})
	}
	if s.guard.get().Level != Normal { // what the journal keeps from others is room for these tables
		if err := s.journal.Trim(w.from); err != nil {
			return err
		}
	}
	err = s.openTables(w)
	if isFull(err) {
		s.guard.refresh()
		need, free := w.bytes+w.bytes/8+minWindow, s.guard.get().Free // with indexes and filters
		return fmt.Errorf("%w: a start needs about %d bytes for tables of what the journal has, and %d are free below %s; free %d more (%v)",
			ErrFull, need, free, s.folder.path, need-free, err)
	}
	s.layers = layers{journal: s.journal, tables: s.tables, open: newWindow(end)}
	return err
}

const lostWith = "packets that were popped in what is lost may be there again"

// openTables opens the tables with what a window adds to them.
func (s *Store) openTables(w *window) (err error) {
	db, build := s.folder.name(dbName), s.folder.name(buildName)
	if err := emptyFolder(build); err != nil {
		return err
	}
	s.tables, err = tables.Open(db, build, tables.Options{Damaged: func(t tables.Table, err error) error {
		if !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if !s.opt.AcceptLoss {
			return fmt.Errorf("%w: %w", ErrLoss, err)
		}
		s.accepted.add(Finding{FindingTable, filepath.Join(dbName, t.Name()), "the table is missing; " + lostWith})
		return nil
	}})
	if err != nil {
		return damaged(err)
	}
	if w.upto == w.from {
		return nil
	}
	if err := s.writeOut(w); err != nil {
		return fmt.Errorf("cannot bring the journal into tables: %w", damaged(err))
	}
	return nil
}

// begin puts the tables of the start in force. From here on they have everything, and the journal
// begins anew. An error stops the store. The holder of commitMu calls it.
func (s *Store) begin() error {
	if s.begun {
		return nil
	}
	s.begun = true
	err := s.tables.Begin()
	if err == nil {
		err = s.journal.Begin(s.layers.open.from)
	}
	if err == nil {
		err = s.start()
	}
	if err = explainRefusal(err); err != nil {
		s.fail(fmt.Errorf("it cannot begin: %v", err)) // a full disk, too, is no longer one that waits
	}
	return err
}

// openJournal opens the journal of a folder.
func openJournal(f *folder, sizes sizes, weak bool) (*journal.Journal, error) {
	path := f.name(journalName)
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("cannot make the folder of the journal: %w", err)
	}
	return journal.Open(path, journal.Options{SegmentSize: sizes.segment, Spares: sizes.spares, Weak: weak})
}

// readJournal reads what the journal has beyond the tables into a window. The error wraps ErrLoss
// if something is missing.
func readJournal(j *journal.Journal, list *tables.List, acceptLoss bool, note func(string)) (*window, journal.Mark, error) {
	floor := floorOf(list)
	w := newWindow(floor)
	o := journal.ReplayOptions{After: floor, AcceptLoss: acceptLoss, Note: note}
	end, err := j.Replay(o, func(r journal.Record) error {
		upto := w.upto
		upto.Batch = r.Batch
		w.holes = r.AfterHole
		return w.take(r.Place, r.Overhead(), r.Control, r.Body, r.Entries, upto)
	})
	w.upto = end
	if errors.Is(err, journal.ErrDamage) {
		err = fmt.Errorf("%w: %w: %w", ErrDamaged, ErrLoss, err)
	}
	return w, end, err
}

// floorOf is the end of the last record that is in tables.
func floorOf(l *tables.List) journal.Mark {
	return journal.Mark{Batch: l.Floor.Batch, Segment: l.Floor.Segment, End: int64(l.Floor.Offset), Sum: l.Floor.Sum}
}

// readControl reads the records of which a store has one.
func (s *Store) readControl() error {
	v := s.tables.View()
	defer v.Close()
	var errs [3]error
	s.control, errs[0] = controlOf(v)
	s.load, errs[1] = loadOf(v)
	s.flush, errs[2] = flushOf(v)
	s.control.follow(s.layers.open.upto.Batch)
	s.epoch = max(s.control.Epoch, s.anchor.last.epoch) + 1
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
	s.prepare()
	var cancel context.CancelFunc
	s.ctx, cancel = context.WithCancel(context.Background())
	go func() {
		<-s.stop
		cancel()
	}()
	s.guard.needs = s.pressure
	s.done.Go(s.flushWindows)
	s.done.Go(s.mergeLevels)
	s.done.Go(s.prepareSegments)
	s.done.Go(func() { s.every(time.Second, s.housekeeping) })
	s.done.Go(func() { s.every(100*time.Millisecond, s.guard.refresh) })
	if s.opt.Sync.kind == syncInterval {
		s.done.Go(func() { s.every(s.opt.Sync.every, func() { _ = s.sync() }) })
	}
	return nil
}
