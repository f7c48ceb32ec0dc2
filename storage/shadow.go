package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/table"
)

// looker makes the shadow of a data folder, for Badger to open:
//
//	MANIFEST   written here: tables that are left out are not in it
//	*.sst      links to the sound tables; mended copies of others; the logs as tables of level 0
//
// All that a start would do to a folder after a crash, such as cutting a torn
// log, happens to the shadow alone. The files of the folder are read through
// mappings that nobody can write to.
type looker struct {
	opt      *ViewOptions
	folder   *folder
	db       string // the database folder that is looked at
	shadow   string
	secret   []byte
	mark     anchorMark
	findings *findings // nil when nothing is tolerated

	done, total atomic.Int64 // bytes checked, for Progress

	mu     sync.Mutex       // guards what follows while tables are checked
	levels map[uint64]uint8 // the tables of the shadow
	next   uint64           // number for a table made here
}

// wrong notes a finding, or returns it as an error where nothing is tolerated.
func (l *looker) wrong(kind, key, format string, args ...any) error {
	cause := fmt.Errorf(format, args...)
	if l.findings != nil {
		l.findings.add(Finding{kind, key, cause.Error()})
		return nil
	}
	return fmt.Errorf("%w: %s: %w; restore a copy", ErrDamaged, key, cause)
}

// note is wrong about an error that says itself what it is.
func (l *looker) note(kind, key string, err error) error {
	if l.findings == nil || !errors.Is(err, ErrDamaged) {
		return err
	}
	l.findings.add(Finding{kind, key, err.Error()})
	return nil
}

// witnesses reads the small files beside the database.
func (l *looker) witnesses() (err error) {
	const limit = 64
	b, err := readSmall(l.folder.name(formatName), limit)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, serr := os.Stat(l.db); serr != nil || l.findings == nil {
			return fmt.Errorf("%w: %s has no file %q", ErrNotFolder, l.folder.path, formatName)
		}
		err = l.wrong(FindingFormat, formatName, "the file is missing: what is there is read as version %d", FormatVersion)
	case err != nil:
		return fmt.Errorf("cannot read the format of the data folder: %w", err)
	default:
		err = l.note(FindingFormat, formatName, l.folder.judgeFormat(b))
	}
	if err != nil {
		return err
	}
	if l.mark, err = readAnchor(l.folder); err != nil {
		if err = l.note(FindingAnchor, anchorName, err); err != nil {
			return err
		}
		l.mark.always = true // what it said of a torn log is not known
	}
	if l.secret, err = readSecret(l.folder); err != nil {
		return l.note(FindingSecret, secretName, err)
	}
	return nil
}

// build fills the shadow.
func (l *looker) build() error {
	if _, err := os.Stat(l.db); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot find the database folder: %w", err)
	} else if err != nil {
		// A first start was cut short; what the anchor knows tells of any other case.
		return l.writeManifest()
	}
	numbers, err := l.listed()
	if err != nil {
		return err
	}
	logs, err := logNames(l.db)
	if err != nil {
		return err
	}
	l.measure(numbers, logs)
	if err := l.tables(numbers); err != nil {
		return err
	}
	if err := l.logs(logs); err != nil {
		return err
	}
	return l.writeManifest()
}

// listed reads the list of tables into levels and returns their numbers.
func (l *looker) listed() ([]uint64, error) {
	l.levels = make(map[uint64]uint8)
	b, err := os.ReadFile(filepath.Join(l.db, badger.ManifestFilename))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the list of tables: %w", err)
	}
	m, err := parseManifest(b)
	if err != nil {
		if err := l.wrong(FindingManifest, l.key(badger.ManifestFilename), "%w", err); err != nil {
			return nil, err
		}
	}
	numbers := make([]uint64, 0, len(m.levels))
	for number, level := range m.levels {
		l.levels[number] = level
		l.next = max(l.next, number+1)
		numbers = append(numbers, number)
	}
	return numbers, nil
}

// key names a file of the database in a finding.
func (l *looker) key(name string) string { return dbName + "/" + filepath.Base(name) }

// measure takes the size of what is to be read.
func (l *looker) measure(numbers []uint64, logs []string) {
	names := append([]string(nil), logs...)
	for _, number := range numbers {
		names = append(names, table.NewFilename(number, l.db))
	}
	for _, name := range names {
		if info, err := os.Stat(name); err == nil {
			l.total.Add(info.Size())
		}
	}
}

// progress notes that a file was read.
func (l *looker) progress(name string) {
	info, err := os.Stat(name)
	if err != nil {
		return
	}
	done := l.done.Add(info.Size())
	if l.opt.Progress != nil {
		l.opt.Progress(done, l.total.Load())
	}
}

// tables checks every table and puts it into the shadow.
func (l *looker) tables(numbers []uint64) error {
	var next atomic.Int64
	var wait sync.WaitGroup
	errs := make([]error, len(numbers))
	for range min(len(numbers), runtime.GOMAXPROCS(0)) {
		wait.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(numbers)); i = next.Add(1) - 1 {
				errs[i] = l.table(numbers[i])
			}
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}

func (l *looker) table(number uint64) error {
	name := table.NewFilename(number, l.db)
	defer l.progress(name)
	if err := checkTable(name, l.opt.Deep || l.findings != nil); err != nil {
		return fmt.Errorf("%w; restore a copy", err)
	}
	if err := os.Symlink(name, table.NewFilename(number, l.shadow)); err != nil {
		return fmt.Errorf("cannot link a table: %w", err)
	}
	return nil
}

// logs makes tables of the logs, oldest first.
func (l *looker) logs(names []string) error {
	last := uint64(0)
	for _, name := range names {
		end, err := l.log(name, last)
		if err != nil {
			return err
		}
		last = end
		l.progress(name)
	}
	return nil
}

// log makes tables of the whole transactions of one log, which follows
// transaction last. It returns the last one now.
func (l *looker) log(name string, last uint64) (_ uint64, err error) {
	defer func() {
		if err != nil && !errors.Is(err, ErrDamaged) {
			err = fmt.Errorf("cannot read the log %s: %w", name, err)
		}
	}()
	defer recoverFault(&err)()
	b, unmap, err := mapPrivate(name)
	if err != nil || len(b) == 0 {
		return last, err
	}
	defer unmap()
	end := readLog(b, last)
	damaged := end.gap || laterBatch(b[end.at:], end.torn, l.secret)
	if damaged && l.mark.always {
		err := l.wrong(FindingLog, l.key(name), "it cannot be read past byte %d, and acknowledged batches lie behind", end.at)
		if err != nil {
			return 0, err
		}
	}
	run := &logRun{log: b}
	run.whole(logHeader, end.at)
	return end.last, run.write(l)
}

// writeManifest writes the list of the shadow's tables.
func (l *looker) writeManifest() error {
	name := filepath.Join(l.shadow, badger.ManifestFilename)
	if err := os.WriteFile(name, appendManifest(nil, l.levels), 0o600); err != nil {
		return fmt.Errorf("cannot write into a temporary folder: %w", err)
	}
	return nil
}

// add puts a table made here into the shadow, at level 0.
func (l *looker) add(data []byte) error {
	l.mu.Lock()
	number := l.next
	l.next++
	l.levels[number] = 0
	l.mu.Unlock()
	if err := os.WriteFile(table.NewFilename(number, l.shadow), data, 0o600); err != nil {
		return fmt.Errorf("cannot write into a temporary folder: %w", err)
	}
	return nil
}

// open opens the shadow.
func (l *looker) open() (db *badger.DB, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w: the database cannot be opened: %w; restore a copy", ErrDamaged, err)
		}
	}()
	defer recoverFault(&err)()
	opt := badgerOptions(l.shadow, minMemTable)
	opt.Logger = badgerLog{l.opt.Logger}
	opt.ReadOnly = true
	opt.BypassLockGuard = true
	return badger.Open(opt)
}

// snapshot is what the shadow holds, held against the anchor.
func (l *looker) snapshot(db *badger.DB) (_ *Snapshot, err error) {
	n := &Snapshot{txn: db.NewTransaction(false)}
	defer func() {
		if err != nil {
			n.Close()
		}
	}()
	if l.findings != nil {
		n.tolerate = l.findings.add
	} else if !l.opt.Deep {
		n.blocks = func() error { return checkTables(l.db, true) }
	}
	if n.control, err = controlOf(n.txn); err != nil {
		if err = l.note(FindingControl, "control record", err); err != nil {
			return nil, err
		}
	}
	if was := l.mark; n.control.Batch < was.batch {
		what := fmt.Errorf("the store ends at batch %d, but batch %d was on disk", n.control.Batch, was.batch)
		if l.findings == nil {
			return nil, fmt.Errorf("%w: %w; restore a copy", ErrLoss, what)
		}
		l.findings.add(Finding{FindingAnchor, anchorName, what.Error()})
	}
	if n.load, err = loadOf(n.txn); err != nil {
		if err = l.note(FindingRecord, "load record", err); err != nil {
			return nil, err
		}
	}
	if n.hidden, err = redoOf(n.txn); err != nil {
		if err = l.note(FindingRecord, "redo record", err); err != nil {
			return nil, err
		}
	}
	return n, nil
}
