package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/table"
)

// viewBuilder makes the scratch copy of a data folder, for Badger to open:
//
//	MANIFEST   written here: tables that are left out are not in it
//	*.sst      links to the sound tables; copies of what can be read of others; the logs as tables of level 0
//
// All that a start would do to a folder after a crash, such as cutting a torn log, happens to the
// scratch copy alone.
type viewBuilder struct {
	opt      *ViewOptions
	folder   *folder
	db       string // the database folder that is looked at
	scratch  string
	secret   []byte // nil when there is none that can be read
	mark     anchorMark
	unmarked bool      // no anchor tells anything
	findings *findings // nil when nothing is tolerated

	total int64 // bytes to be checked, for Progress

	salvaging sync.Mutex // held while a table is salvaged

	mu     sync.Mutex // guards what follows while tables are checked
	done   int64      // of total
	levels manifest   // the tables of the scratch copy
	next   uint64     // number for a table made here
}

// report notes a finding, or returns it as an error where nothing is tolerated.
func (l *viewBuilder) report(kind, key, format string, args ...any) error {
	cause := fmt.Errorf(format, args...)
	if l.findings != nil {
		l.findings.add(Finding{kind, key, plain(cause)})
		return nil
	}
	if errors.Is(cause, ErrDamaged) {
		return cause
	}
	return fmt.Errorf("%w: %s: %w", ErrDamaged, key, cause)
}

// reportDamage is report for an error that says itself what it is.
func (l *viewBuilder) reportDamage(kind, key string, err error) error {
	if err == nil || l.findings == nil || !errors.Is(err, ErrDamaged) {
		return err
	}
	l.findings.add(Finding{kind, key, plain(err)})
	return nil
}

// reportUnread is reportDamage for a file that cannot be read: an I/O error is a finding, too.
func (l *viewBuilder) reportUnread(kind, key string, err error) error {
	if l.findings == nil || refusedBySystem(err) {
		return err
	}
	l.findings.add(Finding{kind, key, plain(err)})
	return nil
}

// build fills the scratch copy.
func (l *viewBuilder) build() error {
	if _, err := os.Stat(l.db); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot find the database folder: %w", err)
	} else if err != nil {
		// A first start was cut short. In any other case the anchor tells that batches are missing.
		return l.writeManifest()
	}
	if err := checkFileLimit(l.db, lookFiles); err != nil {
		return err
	}
	numbers, err := l.listed()
	if err != nil {
		return err
	}
	if err := l.checkKeyRegistry(); err != nil {
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
	if l.findings != nil {
		l.findings.sort()
	}
	if err := l.logs(logs); err != nil {
		return err
	}
	return l.writeManifest()
}

// checkUnlisted is the function of that name beside the logs that are not obsolete.
func (l *viewBuilder) checkUnlisted(m manifest, gone bool, unlisted []uint64) error {
	names, err := logNames(l.db)
	if err == nil {
		names, _, err = l.splitObsolete(names)
	}
	if err != nil {
		return err
	}
	return checkUnlisted(l.db, names, m, gone, unlisted)
}

// listed reads the list of tables into levels and returns their numbers. When it is damaged the
// tables that lie there are taken instead, all at level 0: there they may overlap, and what counts
// is the version of each entry.
func (l *viewBuilder) listed() ([]uint64, error) {
	m, gone, damage := readManifest(l.db)
	if damage != nil && (refusedBySystem(damage) || !errors.Is(damage, ErrDamaged) && l.findings == nil) {
		return nil, damage
	}
	unlisted, err := unlistedTables(l.db, m)
	if err != nil {
		return nil, err
	}
	if damage == nil && (gone || l.synced()) {
		damage = l.checkUnlisted(m, gone, unlisted)
	}
	if damage != nil {
		err := l.report(FindingManifest, l.key(manifestName), "%w", damage)
		if err != nil {
			return nil, err
		}
		l.findings.add(Finding{FindingManifest, l.key(manifestName), fmt.Sprintf(
			"what lies there is used, %d tables beside the %d listed ones; what an unfinished compaction left among them may show packets that were popped",
			len(unlisted), len(m))})
		all := slices.AppendSeq(unlisted, maps.Keys(m))
		m = make(manifest)
		for _, number := range all {
			m[number] = 0
		}
	}
	l.levels = make(manifest)
	maps.Copy(l.levels, m)
	numbers := slices.Sorted(maps.Keys(m))
	if len(numbers) > 0 {
		l.next = numbers[len(numbers)-1] + 1
	}
	return numbers, nil
}

// checkKeyRegistry reads Badger's list of encryption keys, which is empty. Badger does not open a
// folder where it is damaged.
func (l *viewBuilder) checkKeyRegistry() error {
	registry, err := badger.OpenKeyRegistry(badger.KeyRegistryOptions{ReadOnly: true, Dir: l.db})
	if err == nil {
		err = registry.Close()
	}
	if err == nil || refusedBySystem(err) {
		return err
	}
	return l.report(FindingOther, l.key(badger.KeyRegistryFileName), "Badger cannot read its list of keys: %w", err)
}

// key names a file of the database in a finding.
func (l *viewBuilder) key(name string) string { return dbName + "/" + filepath.Base(name) }

// measure takes the size of what is to be read.
func (l *viewBuilder) measure(numbers []uint64, logs []string) {
	names := append([]string(nil), logs...)
	for _, number := range numbers {
		names = append(names, table.NewFilename(number, l.db))
	}
	for _, name := range names {
		if info, err := os.Stat(name); err == nil {
			l.total += info.Size()
		}
	}
}

// progress notes that a file was read.
func (l *viewBuilder) progress(name string) {
	info, err := os.Stat(name)
	if err != nil {
		return
	}
	l.mu.Lock() // so that it never seems to go back
	defer l.mu.Unlock()
	if l.done += info.Size(); l.opt.Progress != nil {
		l.opt.Progress(l.done, l.total)
	}
}

// tables checks every table and puts it into the scratch copy.
func (l *viewBuilder) tables(numbers []uint64) error { return eachTable(numbers, l.table) }

func (l *viewBuilder) table(number uint64) error {
	name := table.NewFilename(number, l.db)
	defer l.progress(name)
	if err := checkTable(name, everyBlock); err != nil {
		if refusedBySystem(err) || l.findings == nil {
			return err
		}
		return l.salvage(number)
	}
	if err := os.Symlink(name, table.NewFilename(number, l.scratch)); err != nil {
		return fmt.Errorf("cannot link a table: %w", err)
	}
	return nil
}

// writeManifest writes the list of the scratch copy's tables.
func (l *viewBuilder) writeManifest() error {
	name := filepath.Join(l.scratch, manifestName)
	if err := os.WriteFile(name, appendManifest(nil, l.levels), 0o600); err != nil {
		return fmt.Errorf("cannot write into a temporary folder: %w", err)
	}
	return nil
}

// add puts a table made here into the scratch copy, at level 0.
func (l *viewBuilder) add(data []byte) error {
	l.mu.Lock()
	number := l.next
	l.next++
	l.levels[number] = 0
	l.mu.Unlock()
	if err := os.WriteFile(table.NewFilename(number, l.scratch), data, 0o600); err != nil {
		return fmt.Errorf("cannot write into a temporary folder: %w", err)
	}
	return nil
}

// open opens the scratch copy.
func (l *viewBuilder) open() (*badger.DB, error) {
	db, err := openScratch(l.scratch, l.opt.Logger)
	if err != nil {
		return nil, fmt.Errorf("%w: the database cannot be opened: %w", ErrDamaged, err)
	}
	return db, nil
}

func openScratch(path string, logger *slog.Logger) (db *badger.DB, err error) {
	defer recoverFault(&err)()
	opt := badgerOptions(path, minMemTable)
	opt.Logger = badgerLog{logger}
	opt.ReadOnly = true
	opt.BypassLockGuard = true
	return badger.Open(opt)
}
