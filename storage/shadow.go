package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"

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
	secret   []byte // nil when it is not known
	filed    []byte // the secret as its file has it
	mark     anchorMark
	unmarked bool      // no anchor tells anything
	findings *findings // nil when nothing is tolerated

	total int64 // bytes to be checked, for Progress

	mu     sync.Mutex       // guards what follows while tables are checked
	done   int64            // of total
	levels map[uint64]uint8 // the tables of the shadow
	linked []uint64         // those that are links
	next   uint64           // number for a table made here
}

// wrong notes a finding, or returns it as an error where nothing is tolerated.
func (l *looker) wrong(kind, key, format string, args ...any) error {
	cause := fmt.Errorf(format, args...)
	if l.findings != nil {
		l.findings.add(Finding{kind, key, plain(cause)})
		return nil
	}
	if errors.Is(cause, ErrDamaged) {
		return fmt.Errorf("%w; restore a copy", cause)
	}
	return fmt.Errorf("%w: %s: %w; restore a copy", ErrDamaged, key, cause)
}

// note is wrong about an error that says itself what it is.
func (l *looker) note(kind, key string, err error) error {
	if err == nil || l.findings == nil || !errors.Is(err, ErrDamaged) {
		return err
	}
	l.findings.add(Finding{kind, key, plain(err)})
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
	}
	l.unmarked = l.mark == anchorMark{}
	if l.filed, err = readSecret(l.folder); err != nil {
		return l.note(FindingSecret, secretName, err)
	}
	l.secret = l.filed
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
	if err := l.others(); err != nil {
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

// listed reads the list of tables into levels and returns their numbers. When
// it is damaged the tables that lie there are taken instead, all at level 0:
// there they may overlap, and what counts is the version of each entry.
func (l *looker) listed() ([]uint64, error) {
	l.levels = make(map[uint64]uint8)
	m, gone, damage := readManifest(l.db)
	if damage != nil && !errors.Is(damage, ErrDamaged) && l.findings == nil {
		return nil, damage
	}
	unlisted, err := unlistedTables(l.db, m)
	if err != nil {
		return nil, err
	}
	if damage == nil && (gone || l.synced()) {
		damage = judgeStrays(l.db, m, gone, unlisted)
	}
	if damage != nil {
		err := l.wrong(FindingManifest, l.key(manifestName), "%w", damage)
		if err != nil {
			return nil, err
		}
		l.findings.add(Finding{FindingManifest, l.key(manifestName), fmt.Sprintf(
			"what lies there is used, %d tables beside the %d listed ones; what an unfinished compaction left among them may show packets that were popped",
			len(unlisted), len(m.levels))})
		newest := newestListed(l.db, m)
		for _, number := range unlisted {
			// A number may be used again after its table was removed.
			if version, _ := newestVersion(table.NewFilename(number, l.db)); !m.removed[number] || version > newest {
				l.levels[number] = 0
			}
		}
	}
	numbers := make([]uint64, 0, len(m.levels)+len(unlisted))
	for number, level := range m.levels {
		if l.levels[number] = level; damage != nil {
			l.levels[number] = 0
		}
	}
	for number := range l.levels {
		numbers = append(numbers, number)
		l.next = max(l.next, number+1)
	}
	slices.Sort(numbers)
	return numbers, nil
}

// others judges the files that hold nothing of ours but keep Badger from
// opening the folder when they are damaged.
func (l *looker) others() error {
	registry, err := badger.OpenKeyRegistry(badger.KeyRegistryOptions{ReadOnly: true, Dir: l.db})
	if err == nil {
		_ = registry.Close()
	} else if err := l.wrong(FindingOther, l.key(badger.KeyRegistryFileName), "Badger cannot read its list of keys: %w", err); err != nil {
		return err
	}
	values, err := filepath.Glob(filepath.Join(l.db, "*"+valueLogSuffix))
	if err != nil {
		return fmt.Errorf("cannot list the value log: %w", err)
	}
	for _, name := range values {
		const keyID = 8
		if header, err := readSmall(name, keyID); err != nil {
			return fmt.Errorf("cannot read the value log: %w", err)
		} else if len(header) == keyID && binary.BigEndian.Uint64(header) != 0 {
			if err := l.wrong(FindingOther, l.key(name), "its header names an encryption key, and there is none"); err != nil {
				return err
			}
		}
	}
	return nil
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
			l.total += info.Size()
		}
	}
}

// progress notes that a file was read.
func (l *looker) progress(name string) {
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

// tables checks every table and puts it into the shadow.
func (l *looker) tables(numbers []uint64) error { return eachTable(numbers, l.table) }

func (l *looker) table(number uint64) error {
	name := table.NewFilename(number, l.db)
	defer l.progress(name)
	if err := checkTable(name, l.opt.Deep); err != nil {
		if l.findings == nil {
			return fmt.Errorf("%w; restore a copy", err)
		}
		return l.salvage(number)
	}
	if err := os.Symlink(name, table.NewFilename(number, l.shadow)); err != nil {
		return fmt.Errorf("cannot link a table: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.linked = append(l.linked, number)
	return nil
}

// payloadBlocks judges the blocks of linked tables that opening passed over.
func (l *looker) payloadBlocks() error {
	return eachTable(l.linked, func(number uint64) error {
		name := table.NewFilename(number, l.db)
		return l.note(FindingTable, l.key(name), checkTable(name, true))
	})
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

// log makes tables of one log, which follows transaction last. It returns the
// last one now.
func (l *looker) log(name string, last uint64) (uint64, error) {
	b, unmap, err := mapPrivate(name)
	if err == nil && len(b) > 0 {
		defer unmap()
		last, err = l.transactions(name, b, last)
	}
	if err == nil || errors.Is(err, ErrDamaged) || l.findings == nil {
		return last, err
	}
	b, err = readPages(name, func(at int, err error) {
		l.findings.add(Finding{FindingLog, fmt.Sprintf("%s byte %d", l.key(name), at), fmt.Sprintf(noPage, err)})
	})
	if err != nil {
		l.findings.add(Finding{FindingLog, l.key(name), fmt.Sprintf("it cannot be read (%v) and is left out; %s", err, lostWith)})
		return last, nil
	}
	return l.transactions(name, b, last)
}

// transactions makes tables of what a log holds.
func (l *looker) transactions(name string, b []byte, last uint64) (_ uint64, err error) {
	defer func() {
		if err != nil && !errors.Is(err, ErrDamaged) {
			err = fmt.Errorf("cannot read the log %s: %w", name, err)
		}
	}()
	defer recoverFault(&err)()
	end := readLog(b, last)
	run := &logRun{log: b}
	run.whole(logHeader, end.at)
	if len(b) >= 8 && binary.BigEndian.Uint64(b) != 0 {
		// Nothing is read with it here.
		if err := l.wrong(FindingLog, l.key(name), "its header names an encryption key, and there is none"); err != nil {
			return last, err
		}
	}
	if err := l.damagedLog(name, run, &end); err != nil {
		return last, err
	}
	return end.last, run.write(l)
}

// damagedLog deals with what a log has behind its last whole transaction,
// unless it is what a crash leaves.
func (l *looker) damagedLog(name string, run *logRun, end *logEnd) error {
	if l.secret == nil && l.findings != nil {
		l.secret = run.secret()
	}
	rest := run.log[end.at:]
	switch {
	case l.synced():
		if end.gap {
			err := l.wrong(FindingLog, l.key(name), "transactions are missing before it or in it; %s", lostWith)
			if err != nil {
				return err
			}
		}
		if !laterBatch(rest, end.torn, l.secret) && !l.durable(rest) {
			return nil
		}
	case !l.durable(rest):
		// A power cut may leave any of the last batches.
		return nil
	}
	err := l.wrong(FindingLog, l.key(name), "it cannot be read past byte %d, and acknowledged batches lie behind", end.at)
	if err != nil {
		return err
	}
	s := &logSalvager{looker: l, key: l.key(name), log: run.log, run: run, last: end.last}
	s.readOn(end.at)
	end.last = s.last
	return nil
}

// synced tells whether each batch was on the device before the next began, by
// the anchor. A salvage would rather believe it.
func (l *looker) synced() bool { return l.mark.always || l.unmarked && l.findings != nil }

// durable tells whether a log holds a batch that was on the device by the
// anchor, so that what cannot be read before it or in it is damage. A start
// sees that by the batches that are missing then.
func (l *looker) durable(b []byte) bool {
	return l.findings != nil && findControl(b, l.secret, l.anchored)
}

// anchored tells of a control record whether its batch was on the device.
func (l *looker) anchored(r *logRecord) bool {
	var c Control
	return decodeControl(r.value, &c) == nil && c.Batch <= l.mark.batch
}

// writeManifest writes the list of the shadow's tables.
func (l *looker) writeManifest() error {
	name := filepath.Join(l.shadow, manifestName)
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
func (l *looker) open() (*badger.DB, error) {
	db, err := openShadow(l.shadow, l.opt.Logger)
	if err != nil && l.findings != nil {
		// At level 0 nothing can be wrong with how the tables lie to each other.
		l.findings.add(Finding{FindingManifest, l.key(manifestName), fmt.Sprintf(
			"the tables cannot be opened as the list has them (%v); all are taken for tables of level 0", err)})
		for number := range l.levels {
			l.levels[number] = 0
		}
		if err := l.writeManifest(); err != nil {
			return nil, err
		}
		db, err = openShadow(l.shadow, l.opt.Logger)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: the database cannot be opened: %w; restore a copy", ErrDamaged, err)
	}
	return db, nil
}

func openShadow(path string, logger *slog.Logger) (db *badger.DB, err error) {
	defer recoverFault(&err)()
	opt := badgerOptions(path, minMemTable)
	opt.Logger = badgerLog{logger}
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
	}
	if !l.opt.Deep {
		n.blocks = sync.OnceValue(l.payloadBlocks)
	}
	if n.control, err = controlOf(n.txn); err != nil {
		if err = l.note(FindingControl, "control record", err); err != nil {
			return nil, err
		}
	}
	if err := l.judgeControl(n); err != nil {
		return nil, err
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

// judgeControl holds the control record against the anchor, and against what
// else must be there.
func (l *looker) judgeControl(n *Snapshot) error {
	c, was := n.control, l.mark
	switch {
	case c.Batch < was.batch && l.findings == nil:
		return fmt.Errorf("%w: the store ends at batch %d, but batch %d was on disk; restore a copy", ErrLoss, c.Batch, was.batch)
	case l.findings == nil:
		return nil
	case c.Batch < was.batch:
		l.findings.add(Finding{FindingAnchor, anchorName, fmt.Sprintf(
			"the store ends at batch %d, but batch %d was on disk: batches %d to %d are lost", c.Batch, was.batch, c.Batch+1, was.batch)})
	case l.unmarked && c.Batch > 0:
		l.findings.add(Finding{FindingAnchor, anchorName, "it is missing, so nothing tells whether the last batches are there"})
	}
	err := readKey(n.txn, controlKey, func(rec []byte) error {
		if len(rec) > secretLen && bears(rec, rec[len(rec)-secretLen:]) && !bears(rec, l.filed) {
			l.findings.add(Finding{FindingSecret, secretName, "it does not hold what the control record has, " +
				"so a torn log cannot be told from a damaged one"})
		}
		return nil
	})
	if err != nil || c.Batch > 0 {
		return nil // said before
	}
	stop := errors.New("one is enough")
	if err := n.Packets(QueueRange{}, func(PacketID, *Meta) error { return stop }); errors.Is(err, stop) {
		l.findings.add(Finding{FindingControl, "control record", "there is none, although there are packets: what is missing cannot be told"})
	}
	return nil
}
