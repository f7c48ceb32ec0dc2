package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-queue/holdfast/storage/content"
	"github.com/holdfast-queue/holdfast/storage/disk"
	"github.com/holdfast-queue/holdfast/storage/journal"
	"github.com/holdfast-queue/holdfast/storage/tables"
)

// Store is an open data folder. Apply and Close belong to one goroutine at a time, and nothing may
// run when Close is called; every other method may be called from any goroutine.
//
// A batch is one record of the journal. What a window of the journal leaves becomes tables in the
// background, by flushNext, and mergeNext takes out of the tables what nobody needs.
//
// A store that was opened can be read, and its folder is as it was. It begins with Verify, or with
// the first batch of who does without. One of several begins when it is opened.
type Store struct {
	parts
	opt      Options
	layers   layers
	epoch    uint64   // of this start: one more than any before
	kept     bool     // by Keep, or nobody knows
	late     bool     // the control record in tables is of an earlier batch than they are
	accepted findings // losses that Open accepted

	commitMu sync.Mutex // one commit at a time; guards what follows
	begun    bool
	record   []byte       // a control record
	body     [][]byte     // the pieces of a batch
	hides    []uint32     // what its entries hide
	head     []byte       // what other machines get before them
	shared   [][]byte     // all that they get
	term     Term         // nil: the journal decides batches, or another machine
	clock    func() int64 // of batches, Unix milliseconds
	segment  uint64       // of the last batch

	pace pace // of the goroutine that applies

	flushing sync.Mutex // of one window at a time
	reads    sync.Pool  // of *readState

	noSegment atomic.Bool // the journal had no room for a batch

	dead    atomic.Int64  // bytes of tables that nobody needs, about
	unsure  atomic.Bool   // there may be far more: who follows scans nothing at a start
	tight   atomic.Bool   // MakeRoom was called
	again   atomic.Int64  // when MakeRoom may merge again behind a merge that failed, in Unix nanoseconds
	rested  time.Time     // until then the merger rests; its own
	scanned atomic.Int64  // bytes that the walks of a start showed, and 1 for each, until Verify
	flushed atomic.Int64  // when a window was written out last, in Unix nanoseconds
	expired atomic.Uint64 // the second by which a merge leaves out what has expired; 0: batches delete that

	mu      sync.Mutex // guards what follows
	records            // of the last batch applied
	commits Commits
	failed  error // why nothing is accepted any more

	troubles troubles

	frozen, room, merge, beside, next chan struct{} // each tells one goroutine that there may be something to do

	ctx  context.Context // ended by Close, with stop
	stop context.CancelFunc
	done sync.WaitGroup // the goroutines that this ends
}

// parts holds the parts of an open folder, also for who only looks.
type parts struct {
	folder  *folder
	anchor  *anchor
	guard   *guard // nil for who only looks
	sizes   sizes
	journal *journal.Journal
	tables  *tables.Set
}

// Open opens the data folder dir, making it when it is empty or not there. The error wraps one of
// the opening errors of this package or ErrFull, and says what is wrong; a damaged folder is never
// a panic.
func Open(dir string, o Options) (_ *Store, err error) {
	o.fill()
	s := &Store{opt: o, clock: func() int64 { return time.Now().UnixMilli() }}
	s.ctx, s.stop = context.WithCancel(context.Background())
	for _, tell := range []*chan struct{}{&s.frozen, &s.room, &s.merge, &s.beside, &s.next} {
		*tell = make(chan struct{}, 1)
	}
	defer func() {
		if err != nil {
			err = explainRefusal(err)
			s.release()
		}
	}()

	// Ours alone, and of a format that this program reads. Of a node only the cell's log decides.
	if _, err := disk.Lstat(filepath.Join(dir, CellName, MemberName)); err == nil && o.Release == nil {
		return nil, fmt.Errorf("%w: %s", ErrNode, dir)
	}
	if s.folder, err = openFolder(dir); err != nil {
		return nil, err
	}
	if s.anchor, err = openAnchor(s.folder); err != nil {
		return nil, err
	}
	if s.guard, err = newGuard(s.folder, &o); err != nil {
		return nil, err
	}
	s.sizes = s.guard.sizes

	// All into tables, whatever the journal has, and whether that is all there was.
	if s.journal, err = s.openJournal(s.folder.name(journalName)); err != nil {
		return nil, err
	}
	if err := s.gather(); err != nil {
		return nil, err
	}
	if err := s.readControl(); err != nil {
		return nil, err
	}
	if o.Release != nil { // what the others are told that its tables have must be on the device
		s.commitMu.Lock()
		defer s.commitMu.Unlock()
		if err := s.begin(); err != nil {
			return nil, err
		}
		o.Release(s.tables.List().Floor.Batch)
	}
	return s, nil
}

// damaged turns damage of tables or of the journal into damage of the folder.
func damaged(err error) error {
	if errors.Is(err, tables.ErrDamaged) || errors.Is(err, journal.ErrDamage) {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err
}

// emptyFolder makes a folder, or removes what is in it.
func emptyFolder(path string) error {
	if err := disk.RemoveAll(path); err != nil {
		return fmt.Errorf("cannot empty a folder: %w", err)
	}
	if err := disk.Mkdir(path, 0o700); err != nil {
		return fmt.Errorf("cannot make a folder: %w", err)
	}
	return nil
}

// Jump is how far a clock may be from what is expected of it before that is told, and before the
// times of batches run back to it.
const Jump = time.Minute

// GoBy has a clock give the times of batches from here on, in Unix milliseconds. They never run
// back but here: where the last batch's is ahead of the clock by more than Jump, the next one's is
// the clock's.
func (s *Store) GoBy(clock func() int64) {
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
	s.clock = clock
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := clock(); s.control.Time-now > Jump.Milliseconds() {
		s.control.Time = now
	}
}

// Control returns the control record of the last batch that Apply wrote, or of the store as it was
// opened.
func (s *Store) Control() content.Control {
	control, _ := s.state()
	return control
}

// Epoch returns the number of this start of the store: 1 or more, and higher than of any before.
func (s *Store) Epoch() uint64 { return s.epoch }

// Limits returns the limits of one batch.
func (s *Store) Limits() content.Limits { return s.opt.Limits }

// Space returns the state of the disk. It is cheap: a clock keeps it up to date.
func (s *Store) Space() Space {
	space := s.guard.get()
	space.Stored, space.Wait = s.tables.List().Bytes, s.dataWait()
	s.troubles.mu.Lock()
	defer s.troubles.mu.Unlock()
	space.Failures, space.Repeats, space.Repeated = s.troubles.count, s.troubles.repeats, s.troubles.repeated
	return space
}

// Accepted returns the losses that Open met and passed over because of Options.AcceptLoss. It is
// empty without that.
func (s *Store) Accepted() []Finding { return s.accepted.all() }

// Close writes everything into tables, and gives the folder up. It returns the error that stopped
// the store, if one did. When the disk is full it gives an error that wraps ErrFull: then nothing
// is lost, and the next start reads the journal.
func (s *Store) Close() error {
	s.stop()
	s.done.Wait() // the last window may need the room that a merge under way has
	s.mu.Lock()
	failed := s.failed
	s.failed = ErrClosed
	s.mu.Unlock()
	if errors.Is(failed, ErrClosed) {
		return nil
	}
	var err error
	sound := s.begun && failed == nil && !s.opt.Whole
	if sound {
		err = errors.Join(s.settle(), s.anchorLast())
	}
	if sound && err == nil {
		err = s.journal.Clear()
	}
	if !s.begun || s.opt.Whole { // what was not kept goes
		err = emptyFolder(s.folder.name(buildName))
	}
	s.release()
	return cmp.Or(failed, err)
}

// Keep makes all batches of a store with Options.Whole stay: from one moment to the next they are
// in the folder. After it the store can only be closed. An error that wraps ErrUnknown leaves it to
// the next Open whether they stay; after any other none of them does.
func (s *Store) Keep() error {
	s.stop()
	s.done.Wait() // as in Close
	if err := s.settle(); err != nil {
		return err
	}
	err := s.tables.Begin()
	if err == nil {
		err = s.anchorLast()
	} else if !errors.Is(err, tables.ErrUnknown) {
		return full(err)
	}
	s.kept = true
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	return err
}

// settle brings all that was applied into tables. Where it cannot, the journal is brought to the
// device.
func (s *Store) settle() error {
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
	if err := s.begin(); err != nil {
		return err
	}
	s.layers.freeze()
	for w := s.layers.oldest(); w != nil; w = s.layers.oldest() {
		if err := s.flushOne(w); err != nil {
			return errors.Join(full(err), s.journal.Sync())
		}
	}
	return nil
}

// anchorLast makes the anchor tell of the last batch, which is on the device.
func (s *Store) anchorLast() error {
	if err := s.anchor.write(s.mark(s.Control().Batch)); err != nil {
		return err
	}
	return s.anchor.flush()
}

// sync makes what was applied durable, beside what is applied meanwhile: the anchor is its own
// where batches are not synced one by one.
func (s *Store) sync() error {
	control, failed := s.state()
	if failed != nil || control.Batch == s.anchor.last.batch {
		return failed
	}
	start := time.Now()
	err := s.journal.Sync()
	if err == nil {
		s.mu.Lock()
		s.commits.Sync.AddTime(time.Since(start))
		s.mu.Unlock()
		err = s.anchor.write(s.mark(control.Batch))
	}
	if err != nil {
		s.fail(err)
	}
	return err
}

func (s *Store) mark(batch uint64) anchorMark {
	return anchorMark{epoch: s.epoch, batch: batch, always: s.opt.Sync == SyncAlways()}
}

func (s *parts) release() {
	if s.journal != nil {
		_ = s.journal.Close()
	}
	if s.tables != nil {
		s.tables.Close()
	}
	if s.anchor != nil {
		_ = s.anchor.file.Close()
	}
	if s.folder != nil {
		s.folder.close()
	}
}

// release removes a folder that was made for what is not kept, before others may open it.
func (s *Store) release() {
	if s.opt.Whole && !s.kept && s.folder != nil && s.folder.fresh {
		s.folder.unmake()
	}
	s.parts.release()
}

// housekeeping freezes a window that is old, or when nothing was written for a while.
func (s *Store) housekeeping() {
	if err := s.anchor.flush(); err != nil {
		s.fail(err)
	}
	s.keepSpares()
	s.wake(s.beside) // the merge that it waits for may be another one
	s.layers.mu.RLock()
	begun, last := s.layers.at, s.layers.last
	s.layers.mu.RUnlock()
	now := time.Now()
	rest := now.Sub(last) > restAfter && now.Sub(time.Unix(0, s.flushed.Load())) > restEvery
	if !begun.IsZero() && (rest || now.Sub(begun) > maxAge) {
		s.commitMu.Lock()
		s.freeze()
		s.commitMu.Unlock()
	}
}

// freeze closes the open window, if fewer wait than may. Who holds commitMu calls it.
func (s *Store) freeze() {
	if _, _, waiting := s.layers.waiting(); waiting < maxFrozen {
		s.layers.freeze()
		s.wake(s.frozen)
	}
}

// freezeIfFull freezes the open window once it has enough for tables, or enough of the journal:
// where the disk is full before the journal needs another file.
func (s *Store) freezeIfFull() {
	most := journalWindows * s.sizes.window
	if s.guard.get().Level >= NoPush {
		most = s.sizes.segment
	}
	s.layers.mu.RLock()
	w := s.layers.open
	full := w.bytes >= s.sizes.window || w.logged >= most
	s.layers.mu.RUnlock()
	if full {
		s.freeze()
	}
}

// look looks at the disk. A store whose folder is lost writes nothing more.
func (s *Store) look() {
	s.guard.refresh()
	if err := s.guard.get().Lost; err != nil {
		s.fail(err)
	}
}

// every runs do on a clock until Close.
func (s *Store) every(d time.Duration, do func()) {
	tick := time.NewTicker(d)
	defer tick.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-tick.C:
			do()
		}
	}
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

// Flush returns the flush record of the last batch applied, or of the store as it was opened.
func (s *Store) Flush() content.Flush {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.flush
}
