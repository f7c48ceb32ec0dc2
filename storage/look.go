package storage

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/holdfast-queue/holdfast/storage/content"
	"github.com/holdfast-queue/holdfast/storage/disk"
	"github.com/holdfast-queue/holdfast/storage/journal"
	"github.com/holdfast-queue/holdfast/storage/tables"
)

// ViewOptions say how to look.
type ViewOptions struct {
	Tolerant bool                    // go on where the folder is damaged with what can be read; Findings says what was wrong
	AsOpened bool                    // with Tolerant, too, the journal ends before what was not synced, as Open ends it
	Progress func(done, total int64) // bytes of the tables checked so far; may be nil
}

// View is a data folder opened for looking only. Nothing in it changes, also after a kill, and a
// file system that is read-only is as good. The folder's lock is held shared: several may look at
// once, and no server can start meanwhile.
//
// What the journal has beyond the tables becomes tables in a temporary folder.
type View struct {
	*Snapshot
	scratch  string // the temporary folder
	parts    parts
	findings findings
}

// OpenView opens the data folder dir for looking. It returns one of the opening errors of this
// package, and ErrNotFolder when there is nothing. Without Tolerant it refuses what Open would
// refuse. With Tolerant it refuses only what leaves nothing to look at.
func OpenView(dir string, o ViewOptions) (_ *View, err error) {
	v := new(View)
	defer func() {
		if err != nil {
			err = explainRefusal(err)
			_ = v.release()
		}
	}()
	if v.parts.folder, err = lookFolder(dir); err != nil {
		return nil, err
	}
	if v.scratch, err = os.MkdirTemp("", scratchPrefix); err != nil {
		return nil, fmt.Errorf("cannot make a temporary folder: %w", err)
	}
	l := looker{View: v, o: o}
	for _, step := range []func() error{l.format, l.anchor, l.journal, l.records} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// looker opens a view.
type looker struct {
	*View
	o    ViewOptions
	upto uint64 // the last batch that is in tables
}

// tolerate makes a finding of an error about the folder, or returns it where nothing is tolerated.
func (l *looker) tolerate(kind, key string, err error) error {
	if err == nil || !l.o.Tolerant || refused(err) != nil {
		return err
	}
	if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrLoss) && !errors.Is(err, unix.EIO) { // which the device may give again and again
		return err
	}
	l.findings.add(Finding{kind, key, Plain(err)})
	return nil
}

func (l *looker) format() error {
	f := l.parts.folder
	err := f.readFormat(content.FormatBefore)
	if errors.Is(err, fs.ErrNotExist) {
		if _, serr := disk.Stat(f.name(dbName)); serr != nil || !l.o.Tolerant {
			return fmt.Errorf("%w: %s has no file %q", ErrNotFolder, f.path, formatName)
		}
		l.findings.add(Finding{FindingFormat, formatName, fmt.Sprintf("the file is missing: what is there is read as version %d", content.FormatVersion)})
		return nil
	}
	return l.tolerate(FindingFormat, formatName, err)
}

func (l *looker) anchor() (err error) {
	l.parts.anchor = new(anchor)
	l.parts.anchor.last, err = readAnchor(l.parts.folder)
	return l.tolerate(FindingAnchor, anchorName, err)
}

// tables opens the tables, each of which is checked.
func (l *looker) tables() (err error) {
	var bad []tables.Table
	o := tables.Options{Progress: l.o.Progress, Damaged: func(t tables.Table, err error) error {
		bad = append(bad, t)
		return l.tolerate(FindingTable, filepath.Join(dbName, t.Name()), damaged(err))
	}}
	if l.parts.tables, err = tables.Open(l.parts.folder.name(dbName), l.scratch, o); err != nil {
		return damaged(err)
	}
	if err := l.tolerate(FindingTable, dbName, damaged(l.parts.tables.Foreign())); err != nil {
		return err
	}
	for _, t := range bad {
		if err := l.salvage(t); err != nil {
			return err
		}
	}
	return nil
}

// What follows a block that is lost. Deletes lie in tables as packets do.
const lostDeletes = "deletes may be lost with it, so packets that were popped may be there again"

// salvage takes what can be read of a damaged table.
func (l *looker) salvage(t tables.Table) error {
	key := filepath.Join(dbName, t.Name())
	err := l.parts.tables.Salvage(t, func(from, to []byte) {
		end := "the end of the table"
		if to != nil {
			end = "before " + content.DescribeKey(to)
		}
		l.findings.add(Finding{FindingTable, key, fmt.Sprintf("the checksum of a block is wrong and its records are lost, from %s to %s; %s",
			content.DescribeKey(from), end, lostDeletes)})
	})
	if errors.Is(err, tables.ErrDamaged) {
		l.findings.add(Finding{FindingTable, key, fmt.Sprintf("it cannot be read (%v) and is left out; %s", err, lostDeletes)})
		return nil
	}
	return err
}

// journal opens the tables, and makes more of what the journal has beyond them.
func (l *looker) journal() (err error) {
	s, path := &l.parts, l.parts.folder.name(journalName)
	if _, err := disk.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		if s.journal, err = journal.Open(path, journal.Options{}); err != nil {
			return err
		}
	}
	s.sizes = sizesFor(0, 0, maxWindow)
	lost := func(kind, key, _ string, err error) error { return l.tolerate(kind, key, err) }
	o := journal.ReplayOptions{EndUnsynced: l.o.AsOpened, Note: func(what string) { l.findings.add(Finding{FindingLog, journalName, what}) }}
	if l.o.Tolerant {
		o.AcceptBelow = math.MaxUint64
	}
	w, err := s.replay(o, l.tables, lost)
	if err == nil {
		l.upto = w.upto.Batch
	}
	return err
}

// records reads the records of which a store has one.
func (l *looker) records() error {
	n := &Snapshot{view: l.parts.tables.View()}
	l.Snapshot = n
	if l.o.Tolerant {
		n.tolerate = l.findings.add
	}
	var errs [2]error
	n.records, errs = readRecords(n.view)
	if has := n.control.Batch; errs[0] == nil && has < l.upto {
		errs[0] = fmt.Errorf("%w: the control record is of batch %d, and the tables have all up to batch %d: what is newer is lost; %s", ErrDamaged, has, l.upto, lostDeletes)
	}
	return cmp.Or(
		l.tolerate(FindingControl, "control record", errs[0]),
		l.tolerate(FindingRecord, "flush record", errs[1]))
}

// Findings returns what was found wrong so far: first what opening met, then what scans did. It is
// empty without ViewOptions.Tolerant.
func (v *View) Findings() []Finding { return v.findings.all() }

// Close gives the folder up. A second Close does nothing.
func (v *View) Close() error {
	if v.parts.folder == nil {
		return nil
	}
	return v.release()
}

func (v *View) release() error {
	if v.Snapshot != nil {
		v.Snapshot.Close()
	}
	v.parts.release()
	v.parts.folder = nil
	if v.scratch == "" {
		return nil
	}
	if err := disk.RemoveAll(v.scratch); err != nil {
		return fmt.Errorf("cannot remove a temporary folder: %w", err)
	}
	return nil
}

// lookFolder is openFolder for somebody who only looks: it takes the lock shared, so that several
// may look at once and nobody may serve, and changes nothing, not even the number in the lock.
// Where there is no lock nobody serves the folder, and none is made: who has no right to write may
// look, too.
func lookFolder(path string) (*folder, error) {
	f, err := findFolder(path)
	if err != nil {
		return nil, err
	}
	lock, err := disk.Open(f.name(lockName))
	switch {
	case err == nil:
		err = f.flock(lock, unix.LOCK_SH)
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	default:
		err = fmt.Errorf("cannot open the lock of the data folder: %w", err)
	}
	if err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}
