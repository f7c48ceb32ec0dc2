package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
)

// Store is an open data folder. Apply and Close belong to one goroutine at a
// time; every other method may be called from any.
type Store struct {
	opt    Options
	folder *folder
	anchor *anchor
	db     *badger.DB
	wal    *wal
	limits Limits

	apply applyState // touched by Apply only

	mu      sync.Mutex // guards what follows
	control Control    // of the last batch applied
	epoch   uint64     // of this start
	failed  error      // why nothing is accepted any more
	durable uint64     // last batch known to be on the device

	stop chan struct{}  // closed by Close
	done sync.WaitGroup // the goroutines that stop ends
}

// Open opens the data folder dir, making it when it is empty or not there. It
// returns one of the opening errors of this package, wrapped in a sentence
// that says what to do; a damaged folder is never a panic.
func Open(dir string, o Options) (_ *Store, err error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	s := &Store{opt: o, stop: make(chan struct{})}
	defer func() {
		if err != nil {
			s.release()
		}
	}()
	if s.folder, err = openFolder(dir); err != nil {
		return nil, err
	}
	if s.anchor, err = openAnchor(s.folder); err != nil {
		return nil, err
	}
	// What a killed process wrote is still in the page cache: it will be
	// served, so it must be as durable as what it looks like.
	if err := syncFiles(s.folder.name(dbName)); err != nil {
		return nil, err
	}
	if err := s.openBadger(); err != nil {
		return nil, err
	}
	if s.wal, err = openWAL(s.folder.name(dbName)); err != nil {
		return nil, err
	}
	if err := s.readControl(); err != nil {
		return nil, err
	}
	s.start()
	return s, nil
}

// Control returns the control record of the last batch that Apply wrote, or
// of the store as it was opened. Its Epoch is that of the stored record.
func (s *Store) Control() Control {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.control
}

// Epoch returns the epoch of this start: one more than any stored before.
func (s *Store) Epoch() uint64 { return s.epoch }

// Limits returns the limits of one batch.
func (s *Store) Limits() Limits { return s.limits }

// Space returns the state of the disk.
func (s *Store) Space() Space {
	free, total, err := statSpace(s.folder.path)
	if err != nil {
		return Space{Level: Stop}
	}
	return Space{Free: free, Total: total}
}

// Close syncs everything and gives the folder up. It returns the error that
// stopped the store, if one did.
func (s *Store) Close() error {
	s.mu.Lock()
	if errors.Is(s.failed, ErrClosed) {
		s.mu.Unlock()
		return nil
	}
	failed := s.failed
	s.failed = ErrClosed
	s.mu.Unlock()
	close(s.stop)
	s.done.Wait()
	err := s.closeBadger()
	if failed == nil && err == nil && !s.opt.ReadOnly && s.control.Batch > 0 {
		if err = s.anchor.write(anchorMark{s.control.Epoch, s.control.Batch}); err == nil {
			err = s.anchor.sync()
		}
	}
	s.release()
	return errors.Join(failed, err)
}

func (s *Store) closeBadger() (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("cannot close the database: %v", p)
		}
	}()
	db := s.db
	s.db = nil
	if err := db.Close(); err != nil {
		return fmt.Errorf("cannot close the database: %w", err)
	}
	return nil
}

func (s *Store) release() {
	if s.wal != nil {
		s.wal.close()
	}
	if s.db != nil {
		_ = s.closeBadger()
	}
	if s.anchor != nil {
		_ = s.anchor.file.Close()
	}
	if s.folder != nil {
		s.folder.close()
	}
}

func (s *Store) openBadger() (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: the database cannot be opened: %v", ErrDamaged, p)
		}
	}()
	memTable := s.opt.MemTable
	if memTable == 0 {
		memTable = 16 << 20
	}
	opt := badgerOptions(s.folder.name(dbName), memTable)
	opt.Logger = badgerLog{s.opt.Logger}
	opt.SyncWrites = !ownSync && s.opt.Sync.kind == syncAlways
	s.db, err = badger.Open(opt)
	if err != nil {
		return fmt.Errorf("%w: the database cannot be opened: %w", ErrDamaged, err)
	}
	s.limits = Limits{
		MaxOps:    int(s.db.MaxBatchCount()) - 8,
		MaxBytes:  int(s.db.MaxBatchSize()) - controlReserve,
		MaxRecord: int(min(opt.ValueThreshold, s.db.MaxBatchSize()-controlReserve)) - 256,
	}
	return nil
}

// badgerOptions are the same for every store of one memory table size.
func badgerOptions(path string, memTable int64) badger.Options {
	opt := badger.DefaultOptions(path)
	opt.MemTableSize = memTable
	opt.NumMemtables = 2
	opt.NumCompactors = 2
	opt.MetricsEnabled = false
	opt.DetectConflicts = false // one writer
	opt.Compression = options.None
	opt.BlockCacheSize = 0 // blocks are read in place when not compressed
	opt.ChecksumVerificationMode = options.OnBlockRead
	// No value may reach the value log: it would cost a second flush, and its
	// garbage is never collected while the tree is small.
	opt.ValueThreshold = min(1<<20, memTable*15/100)
	opt.ValueLogFileSize = 1 << 21
	return opt
}

// readControl reads the control record and holds it against the anchor.
func (s *Store) readControl() error {
	s.control.Marks = firstMarks()
	err := s.db.View(func(txn *badger.Txn) error {
		item, err := txn.Get([]byte(controlKey))
		if errors.Is(err, badger.ErrKeyNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		return item.Value(func(rec []byte) error { return decodeControl(rec, &s.control) })
	})
	if err != nil {
		return fmt.Errorf("%w: cannot read the control record: %w", ErrDamaged, err)
	}
	was := s.anchor.last
	if s.control.Batch < was.batch && !s.opt.AcceptLoss {
		return fmt.Errorf("%w: the store ends at batch %d, but batch %d was on disk; restore a copy, "+
			"or accept that batches %d to %d are lost",
			ErrLoss, s.control.Batch, was.batch, s.control.Batch+1, was.batch)
	}
	s.epoch = max(s.control.Epoch, was.epoch) + 1
	s.durable = s.control.Batch
	return nil
}

// syncFiles forces every file of a folder, then its names, to the device.
func syncFiles(path string) error {
	entries, err := os.ReadDir(path)
	if err != nil {
		return fmt.Errorf("cannot read the database folder: %w", err)
	}
	for _, entry := range entries {
		if entry.Type().IsRegular() {
			if err := syncFile(filepath.Join(path, entry.Name())); err != nil {
				return err
			}
		}
	}
	return syncFile(path)
}

func syncFile(name string) error {
	file, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot open a file of the database: %w", err)
	}
	defer file.Close()
	if err := file.Sync(); err != nil {
		return fmt.Errorf("cannot sync %s: %w", name, err)
	}
	return nil
}

const anchorEvery = time.Second

// start runs what works beside Apply until Close.
func (s *Store) start() {
	if s.opt.ReadOnly {
		return
	}
	s.done.Go(func() { s.every(anchorEvery, s.syncAnchor) })
	if s.opt.Sync.kind == syncInterval {
		s.done.Go(func() { s.every(s.opt.Sync.every, s.syncInterval) })
	}
}

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

func (s *Store) syncAnchor() {
	if err := s.anchor.sync(); err != nil {
		s.fail(err)
	}
}

func (s *Store) syncInterval() {
	s.mu.Lock()
	at, failed := s.control, s.failed
	s.mu.Unlock()
	if failed != nil || at.Batch == s.durable {
		return
	}
	if err := s.wal.flush(); err != nil {
		s.fail(err)
		return
	}
	s.durable = at.Batch
	if err := s.anchor.write(anchorMark{at.Epoch, at.Batch}); err != nil {
		s.fail(err)
	}
}

func (s *Store) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil {
		s.failed = err
	}
}
