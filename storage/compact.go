package storage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dgraph-io/badger/v4"
)

// CompactProgress is how far Compact is.
type CompactProgress struct {
	Step string // what is being done, for people: "count", "write out", "merge", "check"
	// Done and Total are bytes of tables: moved or written, and all that will be.
	// 0 while that is not known. Total is an estimate, and Done never goes beyond it.
	Done, Total int64
}

// compaction is one Compact under way. It belongs to one goroutine.
//
// What Badger's Flatten does and does not: it moves every table of an upper level down into the
// tables of the next level that it overlaps, and in the last one tombstones go, with what they
// cover. But
//
//  1. tables that lie in level 0 only stay there: it sees one level and is
//     done. Store.sink moves them.
//  2. a table of the last level that nothing above overlaps is not touched.
//     Garbage can lie in it all the same: while a reader holds an old version,
//     a compaction keeps what that reader could still see, and nothing comes
//     back for it. So the entries are counted after a pass, and if any is dead
//     the next one sends a table down that spans all keys.
type compaction struct {
	s        *Store
	progress func(CompactProgress)
	live     int64 // entries that are live
	bytes    int64 // what they take in tables, at most
	upper    int64 // bytes above the last level before the merge under way
	done     int64 // told to progress last
}

const (
	// compactPasses is how often the levels are merged at most. The second pass rewrites
	// everything; a third is for garbage that a reader held.
	compactPasses = 3
	// deadAllowed is how many entries may be dead after a pass: older versions of the control
	// record, and what was written to start the pass.
	deadAllowed = 64

	progressEvery = 200 * time.Millisecond
)

// Compact gives the room of everything deleted back: it writes the memory table out, merges all
// levels until no deleted version remains. The reserve file goes, too.
// It is for a store that nobody else uses: what works beside Apply stops first and does not start
// again, so Close is all that should follow. progress may be nil; the calls come from one
// goroutine.
//
// When ctx ends Compact returns its error after the step under way, and the store is sound, as it
// is when the process is killed at any moment. An error that wraps ErrFull means that the disk has
// too little room for the tables to be written anew, and that nothing was done; one that wraps
// ErrDamaged, that a block of a table is bad and was not touched. In the end packets, heads and
// fields are held against the control record: a difference is a *MismatchError.
func (s *Store) Compact(ctx context.Context, progress func(CompactProgress)) error {
	if progress == nil {
		progress = func(CompactProgress) {}
	}
	// The store's own merging is stopped: Flatten must not run twice at a time.
	close(s.stop)
	s.done.Wait()
	s.stop = make(chan struct{})
	if !s.opt.tune.noAdvice {
		s.done.Go(func() { s.watchResident(true) })
	}

	c := compaction{s: s, progress: progress}
	progress(CompactProgress{Step: "count"})
	if err := c.measure(ctx.Err); err != nil {
		return err
	}
	if err := s.guard.room(c.room()); err != nil {
		return fmt.Errorf("cannot compact: %w", err)
	}
	for pass := range compactPasses {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := c.merge(ctx, pass > 0); err != nil {
			return err
		}
		if dead := c.entries() - c.live; dead <= deadAllowed {
			break
		}
	}
	s.guard.giveUp(s.tableBytes())
	if err := ctx.Err(); err != nil {
		return err
	}
	return c.compare()
}

// compare scans what is left.
func (c *compaction) compare() error {
	c.progress(CompactProgress{Step: "check"})
	n, err := c.s.Snapshot()
	if err != nil {
		return err
	}
	defer n.Close()
	scanned := 0
	release := func() {
		if scanned++; scanned%(1<<16) == 0 {
			c.s.releaseMapped(false)
		}
	}
	err = n.Packets(QueueRange{}, func(PacketID, *Meta) error { release(); return nil })
	if err != nil {
		return err
	}
	return n.Items(func(_ ValueID, _ *Head, _ *Field, damage error) error { release(); return damage })
}

// giveUp removes the reserve; the next start makes it again.
func (g *guard) giveUp(lsm int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lsm = lsm
	g.drop()
}

// measure counts what is live. It asks ended now and then whether to go on.
func (c *compaction) measure(ended func() error) (err error) {
	defer recoverBlock(&err)()
	c.live, c.bytes = 0, 0
	return c.s.db.View(func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.IteratorOptions{})
		defer it.Close()
		for it.Rewind(); it.Valid(); it.Next() {
			// In a table an entry also has its version, its share of the index and of the filter.
			const around = 24
			c.live++
			c.bytes += it.Item().EstimatedSize() + around
			if c.live%(1<<16) != 0 {
				continue
			}
			c.s.releaseMapped(false)
			if err := ended(); err != nil {
				return err
			}
		}
		return nil
	})
}

// room is the most that is written before anything is freed: the memory table as a log and as a
// table, the levels above the last one merged with each other, or the last one written anew.
func (c *compaction) room() int64 {
	upper, sizing := c.s.upperBytes(), c.s.guard.sizing
	return max(upper+upper/16, c.bytes) + 3*sizing.oneTable() + sizing.floor()
}

// merge writes the memory table out and merges all levels into the last one; with all it also
// rewrites the tables that nothing new overlaps.
func (c *compaction) merge(ctx context.Context, all bool) error {
	s := c.s
	c.progress(CompactProgress{Step: "write out"})
	if err := errors.Join(s.checkBlocks(), s.checkMergeFiles()); err != nil {
		return fmt.Errorf("cannot compact: %w", err)
	}
	if all {
		if err := s.span(); err != nil {
			return err
		}
	}
	sunk, err := s.sink()
	if err == nil && !sunk {
		if err = s.rotate(); err == nil {
			err = s.waitFlushed(ctx)
		}
	}
	if err != nil {
		return err
	}
	c.upper, c.done = s.upperBytes(), 0
	merged := make(chan error, 1)
	go func() { merged <- s.flatten(1) }() // ends by itself; waited for below
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		select {
		case err := <-merged:
			if err == nil {
				c.progress(CompactProgress{Step: "merge", Done: c.upper + c.bytes, Total: c.upper + c.bytes})
			}
			return err
		case <-tick.C:
			c.done = max(c.done, min(c.upper-s.upperBytes()+s.inflight(), c.upper+c.bytes))
			c.progress(CompactProgress{Step: "merge", Done: c.done, Total: c.upper + c.bytes})
		}
	}
}

// checkMergeFiles returns an error that wraps ErrTooManyFiles when a merge might not get the files
// it needs: all tables there are and those it makes of them. Badger loses the error of a table that
// it cannot make, and with it all that was to be in the table.
func (s *Store) checkMergeFiles() error {
	made := len(s.db.Tables())
	if s.opt.Offline {
		made = max(made, int(s.tableBytes()/offlineTable))
	}
	return checkFileLimit(s.folder.name(dbName), made+workFiles)
}

// flatten merges all levels, with so many compactions at a time.
func (s *Store) flatten(workers int) error {
	// Compactions keep what a reader may still see; one that ends here, after the last write, says
	// that all older versions may go.
	if err := s.db.View(func(*badger.Txn) error { return nil }); err != nil {
		return fmt.Errorf("cannot merge the levels of the database: %w", err)
	}
	if err := s.db.Flatten(workers); err != nil {
		return fmt.Errorf("cannot merge the levels of the database: %w", err)
	}
	return nil
}

// sink moves the memory table and the tables of level 0 into the last level when all others are
// empty: Flatten does nothing then. It reports whether it did. From then on the last level has the
// control record at least. Batches wait for it, so it is for a store at rest.
func (s *Store) sink() (bool, error) {
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
	if !s.shallow() {
		return false, nil
	}
	// Badger compacts level 0, however little is in it, to drop a prefix. It must be that of a key
	// that is there.
	err := s.commitFiller(func(txn *badger.Txn) error { return txn.Set([]byte(fillerKey), nil) })
	if err != nil {
		return false, err
	}
	if err := s.db.DropPrefix([]byte(fillerKey)); err != nil {
		return false, fmt.Errorf("cannot merge level 0 of the database: %w", err)
	}
	// It began a new log, and wal may not miss one.
	return true, s.wal.committed()
}

// shallow tells whether all levels but level 0 are empty.
func (s *Store) shallow() bool {
	for _, level := range s.db.Levels()[1:] {
		if level.NumTables > 0 {
			return false
		}
	}
	return true
}

// upperBytes returns the size of the tables above the last level.
func (s *Store) upperBytes() (bytes int64) {
	levels := s.db.Levels()
	for _, level := range levels[:len(levels)-1] {
		bytes += level.Size
	}
	return bytes
}

// waitFlushed waits until Badger has written every full memory table out: it then removes the log.
// Badger gives no event for it.
func (s *Store) waitFlushed(ctx context.Context) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		logs, err := logNames(s.folder.name(dbName))
		if err != nil || len(logs) <= 1 {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// entries counts what is in tables, dead or live.
func (c *compaction) entries() (n int64) {
	for _, table := range c.s.db.Tables() {
		n += int64(table.KeyCount)
	}
	return n
}

// span writes tombstones of two keys that no packet or record can have, one before all others and
// one behind: the table they end up in overlaps every other table, so that a merge rewrites them
// all.
func (s *Store) span() error {
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
	return s.commitFiller(func(txn *badger.Txn) error {
		return errors.Join(txn.Delete([]byte(firstKey)), txn.Delete([]byte(lastKey)))
	})
}

// No key of the format is empty behind its space, or begins with another byte.
const (
	firstKey = " "
	lastKey  = "\xff"
)
