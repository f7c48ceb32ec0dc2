package storage

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
)

// Store is an open data folder. Apply and Close belong to one goroutine at a time, and nothing may
// run when Close is called; every other method may be called from any goroutine.
type Store struct {
	opt         Options
	folder      *folder
	anchor      *anchor
	secret      []byte // of the folder
	guard       *guard
	db          *badger.DB
	wal         *wal
	limits      Limits
	epoch       uint64      // of this start
	gaps        atomic.Bool // the logs before this start may have gaps, and are not yet in tables
	badgerSyncs bool        // Badger flushes by itself, twice a commit
	accepted    findings    // losses that Open accepted

	// commitMu makes one commit at a time, from the transaction to its flush: wal relies on it.
	commitMu sync.Mutex
	apply    applyState // guarded by commitMu

	reads sync.Pool // of *readState

	mu      sync.Mutex // guards what follows
	control Control    // of the last batch applied
	load    []byte     // the load record; nil when there is none
	flush   Flush
	deleted uint64 // packets deleted since Open
	fillers uint64 // batches since Open that changed no packet
	failed  error  // why nothing is accepted any more

	stop chan struct{}  // closed by Close
	done sync.WaitGroup // the goroutines that stop ends
}

// Open opens the data folder dir, making it when it is empty or not there. The error wraps one of
// the opening errors of this package or ErrFull, and says what is wrong; a damaged folder is never
// a panic.
func Open(dir string, o Options) (_ *Store, err error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	s := &Store{opt: o, stop: make(chan struct{})}
	defer func() {
		if err != nil {
			err = explainRefusal(err)
			s.release()
		}
	}()

	// Ours alone, and of a format that this program reads.
	if s.folder, err = openFolder(dir); err != nil {
		return nil, err
	}
	if s.anchor, err = openAnchor(s.folder, o.tune.sync); err != nil {
		return nil, err
	}
	if s.secret, err = openSecret(s.folder); err != nil {
		return nil, err
	}

	// What Badger would pass over in silence, or end the process for.
	if err := s.inspect(); err != nil {
		return nil, err
	}

	// Badger, and whether it still has all that it had.
	if err := s.openBadger(); err != nil {
		return nil, err
	}
	flushed := o.Sync.kind == syncInterval || o.Sync.kind == syncAlways && !s.badgerSyncs
	if s.wal, err = openWAL(s.folder.name(dbName), flushed, o.tune.sync, s.newLog); err != nil {
		return nil, err
	}
	if err := s.readControl(); err != nil {
		return nil, err
	}
	if s.load != nil && !s.opt.Unfinished {
		return nil, fmt.Errorf("%w: %s", ErrLoadUnfinished, s.folder.path)
	}
	return s, s.start()
}

// Control returns the control record of the last batch that Apply wrote, or of the store as it was
// opened.
func (s *Store) Control() Control {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.control
}

// Epoch returns the epoch of this start: one more than any before.
func (s *Store) Epoch() uint64 { return s.epoch }

// Limits returns the limits of one batch.
func (s *Store) Limits() Limits { return s.limits }

// Space returns the state of the disk. It is cheap: Apply and a clock keep it up to date.
func (s *Store) Space() Space { return s.guard.get() }

// closeWait bounds Close of a store that failed: Badger tries for ever to write a memory table out.
const closeWait = 10 * time.Second

// Close writes everything out and gives the folder up. It returns the error that stopped the store,
// if one did. When a broken device keeps Badger from ending, or a full one gives an error that
// wraps ErrFull, nothing is lost and the folder stays locked until the process ends.
//
// A merge of levels under way is waited for, since Badger's cannot be stopped: a second or so, some
// where much more was dead than the bound allows. To kill the process meanwhile loses nothing.
func (s *Store) Close() error {
	s.mu.Lock()
	failed := s.failed
	s.failed = ErrClosed
	s.mu.Unlock()
	if errors.Is(failed, ErrClosed) {
		return nil
	}
	close(s.stop)
	s.done.Wait()
	last := s.Control()
	if failed != nil {
		ended := make(chan struct{})
		go func() { // ends when Badger does
			defer close(ended)
			_ = s.closeBadger()
		}()
		select {
		case <-ended:
			s.release()
		case <-time.After(closeWait):
		}
		return failed
	}
	if err := s.roomToClose(); err != nil {
		// Badger would die of it. The logs are as good for the next start.
		return errors.Join(err, s.leaveLogs(last.Batch))
	}
	err := s.closeBadger()
	if err == nil {
		// Badger has written its memory tables out and synced them.
		if err = s.anchor.write(s.mark(last.Batch)); err == nil {
			err = s.anchor.flush()
		}
	}
	s.release()
	return err
}

// leaveLogs makes the logs durable as they are, for the next start to read.
func (s *Store) leaveLogs(last uint64) error {
	// All of them: wal does not know the older ones when nobody flushes.
	if err := syncFiles(s.folder.name(dbName)); err != nil {
		return err
	}
	if err := s.anchor.write(s.mark(last)); err != nil {
		return err
	}
	return s.anchor.flush()
}

// roomToClose tells whether Badger can write its memory tables out.
func (s *Store) roomToClose() error {
	logs, _, err := filesOf(s.folder.name(dbName))
	if err != nil {
		return err
	}
	return s.guard.room(logs + logs/4)
}

func (s *Store) mark(batch uint64) anchorMark {
	return anchorMark{epoch: s.epoch, batch: batch, always: s.opt.Sync.kind == syncAlways && !s.gaps.Load()}
}

func (s *Store) closeBadger() (err error) {
	defer recoverFault(&err)()
	if err := s.db.Close(); err != nil {
		return fmt.Errorf("cannot close the database: %w", err)
	}
	return nil
}

func (s *Store) release() {
	if s.wal != nil {
		s.wal.close()
	}
	if s.db != nil {
		_ = s.closeBadger() // does nothing the second time
	}
	if s.anchor != nil {
		_ = s.anchor.file.Close()
	}
	if s.folder != nil {
		s.folder.close()
	}
}

// inspect checks the files of the database before Badger sees them.
func (s *Store) inspect() (err error) {
	path := s.folder.name(dbName)
	if err := checkFileLimit(path, workFiles); err != nil {
		return err
	}
	if err := removeEmpty(path); err != nil {
		return err
	}
	// What a killed process wrote is still in the page cache: it will be served, so it must be as
	// durable as what it looks like.
	if err := syncFiles(path); err != nil {
		return err
	}
	accept := s.acceptance()
	if err := checkTables(path); err != nil {
		return err
	}
	if err := removeObsolete(path, s.secret); err != nil {
		return err
	}
	memTable, err := checkLogs(path, s.secret, accept)
	if err != nil {
		return err
	}
	if err := checkList(path, accept); err != nil {
		return err
	}
	if err := removeUnlisted(path); err != nil {
		return err
	}
	if err := cutManifest(path); err != nil {
		return err
	}
	logs, lsm, err := filesOf(path)
	if err != nil {
		return err
	}
	s.guard, err = newGuard(s.folder, &s.opt, memTable, logs, lsm)
	return err
}

func (s *Store) openBadger() (err error) {
	defer func() {
		switch {
		case errors.Is(err, errFault): // all of it was read before
			err = fmt.Errorf("the database cannot be opened: %w", errNoRoom)
		case err != nil && !errors.Is(err, ErrInUse):
			err = fmt.Errorf("%w: the database cannot be opened: %w", ErrDamaged, err)
		}
	}()
	defer recoverFault(&err)()
	s.badgerSyncs = s.opt.tune.badgerSync && s.opt.Sync.kind == syncAlways
	opt := s.guard.sizing.options(s.folder.name(dbName))
	opt.Logger = badgerLog{s.opt.Logger}
	opt.SyncWrites = s.badgerSyncs
	if s.opt.Offline {
		evenTables(&opt)
	}
	if s.db, err = openUnlocked(opt); err != nil {
		return err
	}
	s.limits = limitsOf(s.db)
	return nil
}

// Badger locks the database folder, which this process has locked already. So whoever has Badger's
// lock is a child that a goroutine of this process is starting: it has copies of all descriptors
// until it runs, and is waited for.
const (
	lockTries = 100
	lockPause = 5 * time.Millisecond
)

// openUnlocked opens a database whose lock nobody else keeps.
func openUnlocked(opt badger.Options) (db *badger.DB, err error) {
	for range lockTries {
		db, err = badger.Open(opt)
		if err == nil || !strings.Contains(err.Error(), "Cannot acquire directory lock") {
			return db, err
		}
		time.Sleep(lockPause)
	}
	return nil, fmt.Errorf("%w: %w", ErrInUse, err)
}

// badgerOptions are the same for every store of one memory table size.
func badgerOptions(path string, memTable int64) badger.Options {
	opt := badger.DefaultOptions(path)
	opt.MemTableSize = memTable
	opt.NumCompactors = 2
	opt.MetricsEnabled = false
	opt.DetectConflicts = false // one writer
	opt.Compression = options.None
	opt.BlockCacheSize = 0 // blocks are read in place when not compressed
	opt.ChecksumVerificationMode = options.OnBlockRead
	// No value may reach the value log: it would cost a second flush, and its garbage is never
	// collected while the tree is small.
	opt.ValueThreshold = min(1<<20, memTable*15/100)
	opt.ValueLogFileSize = 1 << 21
	return opt
}

// readControl reads the control record, which it holds against the anchor, and the other records of
// which there is one.
func (s *Store) readControl() error {
	err := s.db.View(func(txn *badger.Txn) error {
		var errs [3]error
		s.control, errs[0] = controlOf(txn)
		s.load, errs[1] = loadOf(txn)
		s.flush, errs[2] = flushOf(txn)
		return cmp.Or(errs[:]...)
	})
	if err != nil {
		return err
	}
	was := s.anchor.last
	switch {
	case s.control.Batch >= was.batch:
	case !s.opt.AcceptLoss:
		return fmt.Errorf("%w: the store ends at batch %d, but batch %d was on disk: batches %d to %d are lost",
			ErrLoss, s.control.Batch, was.batch, s.control.Batch+1, was.batch)
	default:
		s.accepted.add(Finding{FindingAnchor, anchorName, fmt.Sprintf(
			"the store ends at batch %d, but batch %d was on disk: batches %d to %d are lost, and packets that were popped in them may be there again",
			s.control.Batch, was.batch, s.control.Batch+1, was.batch)})
	}
	s.epoch = max(s.control.Epoch, was.epoch) + 1
	return nil
}

// start notes the new epoch in the anchor, syncs what Badger made when it opened, and runs what
// works beside Apply until Close.
func (s *Store) start() error {
	if err := syncFiles(s.folder.name(dbName)); err != nil {
		return err
	}
	if err := s.redo(); err != nil {
		return err
	}
	if err := s.waitForOldLogs(); err != nil {
		return err
	}
	if err := s.anchor.write(s.mark(s.control.Batch)); err != nil {
		return err
	}
	if err := s.anchor.flush(); err != nil {
		return err
	}
	s.guard.watch(s.inflight)
	s.guard.refresh(s.tableBytes())
	// Nothing refused the folder: from here on it is one of this format.
	if err := s.takeOverUniques(); err != nil {
		return err
	}
	if err := s.folder.upgrade(); err != nil {
		return err
	}
	s.done.Go(func() { s.every(time.Second, s.housekeeping) })
	s.done.Go(s.watchSpace)
	if !s.opt.tune.noAdvice {
		s.done.Go(func() { s.watchResident(s.opt.Offline) })
	}
	tidier := tidier{unknown: true}
	s.done.Go(func() { s.every(time.Second, func() { s.tidy(&tidier) }) })
	if s.opt.Sync.kind == syncInterval {
		durable := s.control.Batch
		s.done.Go(func() { s.every(s.opt.Sync.every, func() { s.syncInterval(&durable) }) })
	}
	return nil
}

// every runs do on a clock until Close.
func (s *Store) every(d time.Duration, do func()) {
	tick := time.NewTicker(d)
	defer tick.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-tick.C:
			do()
		}
	}
}

// watchSpace looks at the disk as often as it may fill, until Close.
func (s *Store) watchSpace() {
	wait := time.NewTimer(s.guard.again())
	defer wait.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-wait.C:
			_ = s.guard.look(0) // Apply will say it
			wait.Reset(s.guard.again())
		}
	}
}

func (s *Store) housekeeping() {
	s.closeGaps()
	if err := s.anchor.flush(); err != nil {
		s.fail(err)
	}
	s.guard.refresh(s.tableBytes())
}

// syncInterval makes what was applied durable; durable is the last batch that is.
func (s *Store) syncInterval(durable *uint64) {
	s.mu.Lock()
	batch, failed := s.control.Batch, s.failed
	s.mu.Unlock()
	if failed != nil || batch == *durable {
		return
	}
	if err := s.wal.flush(); err != nil {
		s.fail(err)
		return
	}
	*durable = batch
	if err := s.anchor.write(s.mark(batch)); err != nil {
		s.fail(err)
	}
}

// newLog prepares a log that Badger made.
func (s *Store) newLog(log *os.File) {
	s.guard.rotated(s.tableBytes())
	if !s.opt.tune.noAdvice {
		adviseLogs(s.folder.name(dbName))
	}
	if s.guard.tight() {
		if info, err := log.Stat(); err == nil {
			// Its pages then find their blocks whatever others write.
			_ = allocate(log, min(info.Size(), s.guard.sizing.oneTable()))
		}
	}
}

// inflight returns what compactions have written that is not part of a level yet.
func (s *Store) inflight() int64 {
	_, onDisk, err := filesOf(s.folder.name(dbName))
	if err != nil {
		return 0
	}
	return max(0, onDisk-s.tableBytes())
}

// tableBytes returns the size of all tables.
func (s *Store) tableBytes() (bytes int64) {
	for _, level := range s.db.Levels() {
		bytes += level.Size
	}
	return bytes
}

// fail stops the store: an error of a commit or of a sync is never tried again.
func (s *Store) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil {
		s.failed = err
		s.opt.Logger.Error("the store accepts nothing more", "error", err)
	}
}
