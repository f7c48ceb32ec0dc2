package storage

import (
	"errors"
	"fmt"
	"time"

	"github.com/dgraph-io/badger/v4"
)

// Badger gives the room of deleted packets back only when compactions carry their tombstones down
// to where the packets are, and it compacts a level only when that overflows. At full speed levels
// overflow all the time, so what is dead stays within Bound. When little is written, or nothing, a
// queue that was drained would keep its room: the tombstones wait in a memory table that nothing
// fills, or in a level that nothing makes overflow. So when too much is dead, or room is short,
// the levels are merged here.
//
// Not at full speed: a merge is not over while level 0 gets new tables, and keeps Badger's own
// compactions from working. Those do it then.
type tidier struct {
	batch   uint64 // seen a second ago, without fillers
	quiet   int    // seconds without a batch
	free    int64  // a second ago, or 0 if this goroutine itself used some
	rotated uint64 // deletes up to which the memory table was written out
	logs    []int  // number of the newest log in the last seconds

	unknown bool   // there was no merge since the store was opened
	deleted uint64 // packets deleted before the last merge

	hindered int // seconds until it is looked again whether a merge would be safe

	wait  int // seconds until the next merge at the earliest
	pause int // what a merge that gained little waits for; more each time
	// spanned is set when all tables were rewritten and still are mostly dead:
	// a reader holds them.
	spanned bool
}

const (
	quietSeconds = 2
	rateSeconds  = 16 // over which the speed of writing is taken

	// tidyTables and tidyLimit bound what is merged without being asked, in memory tables: less
	// garbage is not worth it, and more work would hold Close up, or batches that begin to come at
	// full speed, for more than a second or so. urgentLimit is the bound where dead bytes have
	// passed Bound, as those of a large queue that was drained slowly do, or where room is short:
	// some seconds are better than that.
	tidyTables  = 4
	tidyLimit   = 16
	urgentLimit = 64
	// surgeLogs is how many logs may be made while a merge runs.
	surgeLogs  = 2
	surgeEvery = 50 * time.Millisecond

	// Dead bytes for each live one, at rest and while something is written: then half of maxDead,
	// because more dies while a merge runs.
	deadAtRest = 1
	deadAtWork = maxDead / 2

	mergeSpeed  = 64 << 20 // bytes a second, on a slow machine
	littleShare = 4        // a merge that gives less than this part back gained little
	minPause    = 8
	maxPause    = 4096

	hinderedPause = 600
)

// scene is what one look sees.
type scene struct {
	stored, upper int64 // bytes of tables: all, and those above the last level
	table         int64 // bytes of a memory table
	allowance     int64 // dead bytes that there may always be
	live, dying   int64 // bytes that live packets take, and those deleted since the last merge took: estimates
	deleted       uint64
	short         bool // of room
	filling       bool // little room is left and it becomes less
	seconds, logs int  // logs made in the last seconds
}

// tidy is called once a second by one goroutine.
func (s *Store) tidy(t *tidier) {
	now, ok := t.look(s)
	if !ok || !t.wants(&now) {
		return
	}
	if !t.sound(s) {
		return
	}
	ready, err := t.prepare(s, &now)
	if err != nil {
		s.fail(err)
	}
	if err != nil || !ready {
		return // merged a second later, when the table is there
	}
	if err := s.mergeAlone(); err != nil {
		s.opt.Logger.Warn("cannot merge the levels of the database", "error", err)
	}
	left := s.tableBytes()
	s.guard.refresh(left)
	t.learn(&now, left)
}

// sound checks the tables before they are merged: a merge ends early at a bad block and removes
// what it read all the same, and one that may not open more files may lose what it writes. The
// room of what is dead is then not given back here.
func (t *tidier) sound(s *Store) bool {
	err := s.checkBlocks()
	what := "a table became bad; stop the server and dump what can be read before Badger meets it"
	if err == nil {
		err, what = s.checkMergeFiles(), "there are too many tables"
	}
	if err == nil || errors.Is(err, ErrClosed) {
		return err == nil
	}
	t.hindered = hinderedPause
	s.opt.Logger.Error("the levels of the database are not merged: "+what, "error", err)
	return false
}

// mergeAlone merges the levels. When batches begin to come at full speed meanwhile they are held
// until it is done, which is soon then: it would go on as long as they come, without Badger's own
// compactions.
func (s *Store) mergeAlone() error {
	newest := func() int {
		s.wal.mu.Lock()
		defer s.wal.mu.Unlock()
		return s.wal.next
	}
	first := newest()
	merged := make(chan error, 1)
	go func() { merged <- s.flatten(1) }() // ends by itself; waited for below
	tick := time.NewTicker(surgeEvery)
	defer tick.Stop()
	for {
		select {
		case err := <-merged:
			return err
		case <-tick.C:
			if newest() >= first+surgeLogs {
				s.commitMu.Lock()
				defer s.commitMu.Unlock()
				return <-merged
			}
		}
	}
}

// prepare writes what a merge needs into level 0, or at rest does what Flatten does not. It
// reports whether all of it is there.
func (t *tidier) prepare(s *Store, now *scene) (ready bool, err error) {
	rest := t.quiet >= quietSeconds
	if rest {
		if sunk, err := s.sink(); sunk || err != nil {
			return sunk, err
		}
	}
	span := rest && t.pause > minPause && !t.spanned && s.mostlyDead()
	// At work the memory table fills by itself, and rotating holds batches up.
	needed := t.quiet > 0 || now.short || t.pause > minPause
	if !span && (now.deleted == t.rotated || !needed) {
		return true, nil
	}
	if span {
		t.spanned = true
		if err := s.span(); err != nil {
			return false, err
		}
	}
	t.rotated, t.free = now.deleted, 0
	return false, s.rotate()
}

// mostlyDead counts whether the tables hold more dead entries than live ones.
func (s *Store) mostlyDead() bool {
	c := compaction{s: s}
	err := c.measure(func() error {
		select {
		case <-s.stop:
			return ErrClosed
		default:
			return nil
		}
	})
	return err == nil && c.entries() > 2*c.live+deadAllowed
}

// look takes the second's readings; ok is false when the store has failed.
func (t *tidier) look(s *Store) (now scene, ok bool) {
	s.mu.Lock()
	control, failed, batch := s.control, s.failed, s.control.Batch-s.fillers
	now.deleted = s.deleted
	s.mu.Unlock()
	if t.quiet++; batch != t.batch {
		t.batch, t.quiet = batch, 0
	}
	t.wait, t.hindered = max(0, t.wait-1), max(0, t.hindered-1)
	s.wal.mu.Lock()
	t.logs = append(t.logs, s.wal.next)
	s.wal.mu.Unlock()
	t.logs = t.logs[max(0, len(t.logs)-rateSeconds):]
	now.seconds, now.logs = len(t.logs), t.logs[len(t.logs)-1]-t.logs[0]

	space := s.guard.get()
	now.stored, now.upper = s.tableBytes(), s.upperBytes()
	now.table, now.allowance = s.guard.sizing.memTable, s.guard.sizing.allowance()
	records := control.Live + control.Keys + control.Deliveries
	now.short = space.Level != Normal && (now.deleted-t.deleted > records/8 || t.unknown)
	now.filling = s.guard.tight() && space.Free < t.free-now.table/4
	t.free = space.Free
	// Packets with an expiry are not counted: a merge for them gains little, and then the next one
	// waits.
	packet := s.packetBytes()
	now.live, now.dying = int64(float64(records)*packet), int64(float64(now.deleted-t.deleted)*packet)
	return now, failed == nil
}

// wants decides whether to merge.
func (t *tidier) wants(now *scene) bool {
	if t.hindered > 0 {
		return false
	}
	if now.filling && t.quiet > 0 {
		return false // by somebody else: what is left is for work under way
	}
	work, limit := now.upper+min(now.live, now.stored), tidyLimit*now.table
	dead, allowed := now.stored-now.live, deadAtWork*now.live
	if now.short || dead > max(maxDead*now.live, now.allowance) {
		limit = urgentLimit * now.table
	}
	if work > limit {
		return false
	}
	if now.short {
		return true
	}
	if t.quiet >= quietSeconds {
		allowed = deadAtRest * now.live
	}
	switch {
	case t.wait > 0 && now.dying < now.stored:
		return false
	case dead <= allowed+tidyTables*now.table:
		return false
	case now.upper == now.stored && t.quiet < quietSeconds:
		return false // Flatten does nothing, and sink holds batches up
	}
	// While a merge runs, no table must come into level 0, or it goes on.
	needed := 2 * float64(work) / mergeSpeed
	return now.logs == 0 || float64(now.seconds)/float64(now.logs) > needed
}

// learn looks at what a merge left.
func (t *tidier) learn(before *scene, left int64) {
	t.deleted, t.unknown = before.deleted, false
	if before.stored-left >= before.stored/littleShare {
		t.pause, t.spanned = minPause, false
	} else {
		t.pause = min(max(2*t.pause, 2*minPause), maxPause)
	}
	t.wait = t.pause
}

// packetBytes is what a packet, a head, a field or a delivery state takes in the last level, where
// most are live, or in all while that is empty. The entry of a payload that is kept apart is no
// packet of its own.
func (s *Store) packetBytes() float64 {
	tables := s.db.Tables()
	last := 0
	for _, table := range tables {
		last = max(last, table.Level)
	}
	bytes, packets := 0.0, 0.0
	for _, table := range tables {
		if table.Level != last {
			continue
		}
		bytes += float64(table.OnDiskSize)
		if !onlyPayloads(table.Left, table.Right) {
			packets += float64(table.KeyCount)
		}
	}
	return bytes / max(1, packets)
}

// rotate fills the active memory table up, so that Badger writes it out.
func (s *Store) rotate() error {
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
	part := s.limits.MaxBytes / 2
	if s.guard.look(s.guard.sizing.memTable) != nil {
		return nil // no room even for that
	}
	filler := make([]byte, min(part, s.limits.MaxRecord))
	for range s.guard.sizing.memTable/int64(len(filler)) + 1 {
		if err := s.commitFiller(func(txn *badger.Txn) error { return txn.Set([]byte(fillerKey), filler) }); err != nil {
			return err
		}
	}
	return s.commitFiller(func(txn *badger.Txn) error { return txn.Delete([]byte(fillerKey)) })
}

// commitFiller commits what changes no packet. It counts as a batch: with the number of the one
// before, pieces of a filler that a crash cut would look like pieces of a batch that was on the
// device. The caller holds commitMu. After a batch whose outcome is not known the control record
// here may be older than the one on disk, and putting it there would make the packets of that
// batch look like ones that came back: so a store that has stopped gets nothing more.
func (s *Store) commitFiller(fill func(*badger.Txn) error) error {
	s.mu.Lock()
	next, failed := s.control, s.failed
	s.mu.Unlock()
	if failed != nil {
		return fmt.Errorf("cannot fill a memory table: the store stopped before it: %w", failed)
	}
	next.Epoch = s.epoch
	next.Batch++
	// Synced like a batch: what checkLogs says of a torn log holds only as long as one transaction
	// is in flight.
	err := s.transact(fill, &next)
	if err == nil && s.opt.Sync.kind == syncAlways {
		err = s.anchor.write(s.mark(next.Batch))
	}
	if err != nil {
		s.fail(err)
		return fmt.Errorf("cannot fill a memory table: %w", err)
	}
	s.mu.Lock()
	s.control = next
	s.fillers++
	s.mu.Unlock()
	return nil
}
