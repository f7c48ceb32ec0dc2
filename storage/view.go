package storage

import (
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/dgraph-io/badger/v4"
)

// ViewOptions say how to look.
type ViewOptions struct {
	Tolerant bool                    // go on where the folder is damaged with what can be read; Findings says what was wrong
	Progress func(done, total int64) // bytes of the database checked so far, in one call at a time; may be nil
	Logger   *slog.Logger            // nil is silence
}

// View is a data folder opened for looking only. Nothing in it changes, also after a kill, and a
// file system that is read-only is as good. The folder's lock is held shared: several may look at
// once, and no server can start meanwhile.
//
// Badger changes a folder by opening it. So it opens a scratch copy: a temporary folder with a list
// of tables of its own, links to the tables, which never change, and tables made of the logs
// (viewbuilder.go).
type View struct {
	*Snapshot
	folder   *folder
	scratch  *scratchCopy // nil until there is one
	db       *badger.DB
	findings findings

	stop chan struct{}  // closed by Close
	done sync.WaitGroup // the goroutine that stop ends
}

// OpenView opens the data folder dir for looking. It returns one of the opening errors of this
// package, and ErrNotFolder when there is nothing. Without Tolerant it refuses what Open would
// refuse, except an unfinished load, which Load reports. With Tolerant it refuses only what leaves
// nothing to look at.
func OpenView(dir string, o ViewOptions) (_ *View, err error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	v := &View{stop: make(chan struct{})}
	defer func() {
		if err != nil {
			err = explainRefusal(err)
			_ = v.release()
		}
	}()
	if v.folder, err = lookFolder(dir); err != nil {
		return nil, err
	}
	l := &viewBuilder{opt: &o, folder: v.folder, db: v.folder.name(dbName)}
	if o.Tolerant {
		l.findings = &v.findings
	}
	if err := l.readMarks(); err != nil {
		return nil, err
	}
	if err := removeLeftScratch(); err != nil {
		o.Logger.Warn("what a killed command left is still there", "error", err)
	}
	if v.scratch, err = makeScratch(); err != nil {
		return nil, err
	}
	l.scratch = v.scratch.path
	if err := l.build(); err != nil {
		return nil, err
	}
	if v.db, err = l.open(); err != nil {
		return nil, err
	}
	if v.Snapshot, err = l.snapshot(v.db); err != nil {
		return nil, err
	}
	v.done.Go(v.dropResident)
	return v, nil
}

// Findings returns what was found wrong so far: first what opening met, then what scans did. It is
// empty without ViewOptions.Tolerant.
func (v *View) Findings() []Finding { return v.findings.all() }

// Close gives the folder up. A second Close does nothing.
func (v *View) Close() error {
	if v.folder == nil {
		return nil
	}
	close(v.stop)
	v.done.Wait()
	return v.release()
}

func (v *View) release() (err error) {
	if v.Snapshot != nil {
		v.Snapshot.Close()
	}
	if v.db != nil {
		err = closeView(v.db)
	}
	if v.scratch != nil {
		err = errors.Join(err, v.scratch.remove())
	}
	if v.folder != nil {
		v.folder.close()
		v.folder = nil
	}
	return err
}

func closeView(db *badger.DB) (err error) {
	defer recoverFault(&err)()
	return db.Close()
}

// viewResidentEvery keeps what a scan at full speed maps in that time far below what a process that
// looks may take.
const viewResidentEvery = 100 * time.Millisecond

// dropResident gives the pages of the tables back that were read, until Close. No table goes away
// while a view is open, so all of them can be let go.
func (v *View) dropResident() {
	tick := time.NewTicker(viewResidentEvery)
	defer tick.Stop()
	for {
		select {
		case <-v.stop:
			return
		case <-tick.C:
			for _, dir := range []string{v.folder.name(dbName), v.scratch.path} {
				dropMappings(dir, func(uint64) bool { return true })
			}
		}
	}
}
