package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"github.com/holdfast-queue/holdfast/storage/journal"
	"github.com/holdfast-queue/holdfast/storage/tables"
)

// ViewOptions say how to look.
type ViewOptions struct {
	Tolerant bool                    // go on where the folder is damaged with what can be read; Findings says what was wrong
	Progress func(done, total int64) // bytes of the database checked so far; may be nil
	Logger   *slog.Logger            // nil is silence
}

// View is a data folder opened for looking only. Nothing in it changes, also after a kill, and a
// file system that is read-only is as good. The folder's lock is held shared: several may look at
// once, and no server can start meanwhile.
//
// Opening tables changes their folder. So what is opened is a temporary one, with a list of its own
// and links to the tables, which never change. What the journal has beyond them becomes tables
// there.
type View struct {
	*Snapshot
	folder   *folder
	scratch  string // the temporary folder
	store    *Store // of the temporary folder; never written to
	findings findings
}

// OpenView opens the data folder dir for looking. It returns one of the opening errors of this
// package, and ErrNotFolder when there is nothing. Without Tolerant it refuses what Open would
// refuse, except an unfinished load, which Load reports. With Tolerant it refuses only what leaves
// nothing to look at.
func OpenView(dir string, o ViewOptions) (_ *View, err error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	v := &View{store: &Store{opt: Options{Logger: o.Logger}}}
	defer func() {
		if err != nil {
			err = explainRefusal(err)
			_ = v.release()
		}
	}()
	if v.folder, err = lookFolder(dir); err != nil {
		return nil, err
	}
	l := looker{View: v, o: o}
	if v.scratch, err = os.MkdirTemp("", scratchPrefix); err != nil {
		return nil, fmt.Errorf("cannot make a temporary folder: %w", err)
	}
	for _, step := range []func() error{l.format, l.anchor, l.tables, l.journal, l.records} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return v, nil
}

const scratchPrefix = "holdfast-view-"

// looker opens a view.
type looker struct {
	*View
	o    ViewOptions
	mark anchorMark
}

// tolerate makes a finding of an error about the folder, or returns it where nothing is tolerated.
func (l *looker) tolerate(kind, key string, err error) error {
	if err == nil || !l.o.Tolerant || refusedBySystem(err) || !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrLoss) {
		return err
	}
	l.findings.add(Finding{kind, key, plain(err)})
	return nil
}

func (l *looker) format() error {
	const limit = 64
	b, err := readSmall(l.folder.name(formatName), limit)
	if errors.Is(err, fs.ErrNotExist) {
		if _, serr := os.Stat(l.folder.name(dbName)); serr != nil || !l.o.Tolerant {
			return fmt.Errorf("%w: %s has no file %q", ErrNotFolder, l.folder.path, formatName)
		}
		l.findings.add(Finding{FindingFormat, formatName, fmt.Sprintf("the file is missing: what is there is read as version %d", FormatVersion)})
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read the format of the data folder: %w", err)
	}
	if err := l.tolerate(FindingFormat, formatName, l.folder.parseFormat(b)); err != nil {
		return err
	}
	if l.folder.old {
		return fmt.Errorf("%w: %s: start it once with holdfast serve, which makes one of version %d of it", ErrOlderFormat, l.folder.path, FormatVersion)
	}
	return nil
}

func (l *looker) anchor() (err error) {
	l.mark, err = readAnchor(l.folder)
	return l.tolerate(FindingAnchor, anchorName, err)
}

// tables links the tables, each of which was checked, in the temporary folder.
func (l *looker) tables() error {
	db, scratch := l.folder.name(dbName), filepath.Join(l.scratch, dbName)
	list, err := tables.ReadList(db)
	if err != nil {
		return damaged(err)
	}
	var done int64
	total := list.Bytes()
	progress := func(n int64) {
		if done += n; l.o.Progress != nil {
			l.o.Progress(done, total)
		}
	}
	if !l.o.Tolerant {
		if err := tables.Check(db, list, progress); err != nil {
			return damaged(err)
		}
	}
	var bad []tables.Bad
	sound := list
	if l.o.Tolerant {
		if bad, err = tables.Damaged(db, list, progress); err != nil {
			return err
		}
		for _, t := range bad {
			sound = sound.Without(t.ID)
		}
	}
	if err := tables.Link(db, scratch, sound); err != nil {
		return err
	}
	build := filepath.Join(l.scratch, buildName)
	if err := emptyFolder(build); err != nil {
		return err
	}
	if l.store.tables, err = tables.Open(scratch, build); err != nil {
		return damaged(err)
	}
	for _, t := range list.Tables {
		if !slices.ContainsFunc(bad, func(b tables.Bad) bool { return b.ID == t.ID }) {
			continue
		}
		if err := l.salvage(db, t); err != nil {
			return err
		}
	}
	return nil
}

// What follows a block that is lost. Deletes lie in tables as packets do.
const lostDeletes = "deletes may be lost with it, so packets that were popped may be there again"

// salvage takes what can be read of a damaged table.
func (l *looker) salvage(db string, t tables.Table) error {
	key := filepath.Join(dbName, t.Name())
	err := l.store.tables.Salvage(db, t, func(from, to []byte) {
		end := "the end of the table"
		if to != nil {
			end = "before " + describeKey(to)
		}
		l.findings.add(Finding{FindingTable, key, fmt.Sprintf("the checksum of a block is wrong and its records are lost, from %s to %s; %s",
			describeKey(from), end, lostDeletes)})
	})
	if errors.Is(err, tables.ErrDamaged) {
		l.findings.add(Finding{FindingTable, key, fmt.Sprintf("it cannot be read (%v) and is left out; %s", err, lostDeletes)})
		return nil
	}
	return err
}

// journal makes tables of what the journal has beyond the tables.
func (l *looker) journal() error {
	s := l.store
	path := l.folder.name(journalName)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return l.checkAnchor(s.tables.List().Floor.Batch)
	}
	var err error
	if s.journal, err = journal.Open(path, journal.Options{}); err != nil {
		return err
	}
	w, end, err := readJournal(s.journal, s.tables.List(), l.o.Tolerant, func(what string) {
		l.findings.add(Finding{FindingLog, journalName, what})
	})
	if err != nil {
		return err
	}
	if w.upto != w.from {
		s.sizes = sizesFor(0, maxWindow)
		if err := s.writeOut(w); err != nil {
			return damaged(err)
		}
	}
	return l.checkAnchor(end.Batch)
}

// checkAnchor holds the last batch against the anchor.
func (l *looker) checkAnchor(last uint64) error {
	if last >= l.mark.batch {
		return nil
	}
	err := fmt.Errorf("%w: the store ends at batch %d, but batch %d was on disk: batches %d to %d are lost",
		ErrLoss, last, l.mark.batch, last+1, l.mark.batch)
	return l.tolerate(FindingAnchor, anchorName, err)
}

// records reads the records of which a store has one.
func (l *looker) records() error {
	n := &Snapshot{view: l.store.tables.View()}
	l.Snapshot = n
	if l.o.Tolerant {
		n.tolerate = l.findings.add
	}
	var errs [3]error
	n.control, errs[0] = controlOf(n.view)
	n.load, errs[1] = loadOf(n.view)
	n.flush, errs[2] = flushOf(n.view)
	for i, kind := range []string{FindingControl, FindingRecord, FindingRecord} {
		if err := l.tolerate(kind, [...]string{"control record", "load record", "flush record"}[i], errs[i]); err != nil {
			return err
		}
	}
	return nil
}

// Findings returns what was found wrong so far: first what opening met, then what scans did. It is
// empty without ViewOptions.Tolerant.
func (v *View) Findings() []Finding { return v.findings.all() }

// Close gives the folder up. A second Close does nothing.
func (v *View) Close() error {
	if v.folder == nil {
		return nil
	}
	return v.release()
}

func (v *View) release() error {
	if v.Snapshot != nil {
		v.Snapshot.Close()
	}
	v.store.release()
	if v.folder != nil {
		v.folder.close()
		v.folder = nil
	}
	if v.scratch == "" {
		return nil
	}
	if err := os.RemoveAll(v.scratch); err != nil {
		return fmt.Errorf("cannot remove a temporary folder: %w", err)
	}
	return nil
}
