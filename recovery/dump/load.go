package dump

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-queue/holdfast/storage"
)

// Errors of Load.
var (
	// ErrNotEmpty means that the folder holds packets or settings, and LoadOptions.Merge was not given.
	ErrNotEmpty = errors.New("the data folder is not empty")
	// ErrOtherDump means that the folder holds a part of another dump, or of one that was loaded in
	// another way.
	ErrOtherDump = errors.New("the data folder holds a part of what another load brings")
	// ErrAlike means that the dump begins like the one that was loaded last and is another one,
	// which showed only at its end, and that it was read from where nobody can go back to its start.
	ErrAlike = errors.New("the dump is another one than that which was loaded last, but begins like it: " +
		"it must be read twice, and what it is read from can be read only once")
	// ErrNothingToAbandon means that no load into the folder was cut short.
	ErrNothingToAbandon = errors.New("no load into the data folder was cut short")
)

// LoadOptions say how to load.
type LoadOptions struct {
	// Merge adds the packets to what the folder holds: to the queues of the same names, as the
	// newest of their priority, in their order. If r is an io.Seeker the whole dump is checked
	// before the first packet is stored.
	Merge bool

	// Again loads the dump even if it is the very one that was loaded last, in the same way, and
	// nothing was stored or removed since: else such a load does nothing, and LoadReport.Already says so.
	// Such a load that ended without a word is begun again without it.
	Again bool

	// Abandon keeps what an earlier load has stored and gives the rest of it up; r is not read.
	Abandon bool

	Now      int64          // Unix milliseconds: packets that have expired by then are left out; 0 is the wall clock
	Progress func(Progress) // called now and then from the goroutine of Load, if not nil
	Logger   *slog.Logger   // nil is silence

	tune loadTuning
}

// loadTuning is what tests make small; 0 is the usual size.
type loadTuning struct {
	chunk, batch int // bytes
}

// LoadReport says what a load stored.
type LoadReport struct {
	Packets, Queues int64 // of the dump, those stored by earlier runs included
	Resumed         int64 // packets that earlier runs had stored
	Expired         int64 // packets of the dump whose time had passed; left out
	Bytes           int64 // of the dump
	Already         bool  // it was loaded already, and nothing was done: the counts are those of then
	Ignored         int64 // fields and records of a later version that were passed over
	Took            time.Duration
}

// Load stores the packets of a dump in the folder dir, which it makes if it is not there.
//
// A folder without packets takes them over with their queue numbers, sequences and marks, so that
// a dump of it is the dump that was loaded, byte for byte. One that holds packets needs Merge.
//
// Load writes in batches, each with a record that says how far it has come. When it is stopped, by
// ctx, by an error or by the end of the process, the folder is either as it was, or new and empty,
// or holds a part of the dump and is refused with storage.ErrLoadUnfinished by everything that serves
// it. The same Load goes on where that one was, each packet is stored once; Abandon ends it. The
// error says which. Also when it was stopped after its last batch: then the same Load finds that
// all was done.
//
// Every record of the dump is checked before it is stored, and the error names its line or number.
func Load(ctx context.Context, dir string, r io.Reader, o LoadOptions) (LoadReport, error) {
	start := time.Now()
	o.Now = cmp.Or(o.Now, start.UnixMilli())
	l := &loader{LoadOptions: o, dir: dir}
	var err error
	if o.Abandon {
		err = l.abandon()
	} else {
		err = l.load(ctx, r)
	}
	l.report.Took = time.Since(start)
	return l.report, err
}

// loader is one load under way.
type loader struct {
	LoadOptions
	dir    string
	store  *storage.Store
	r      io.Reader // of the dump
	seeker io.Seeker // goes back to begin in r; nil if r cannot
	begin  int64     // where the dump begins in r
	head   uint64    // hash of its beginning
	in     *input
	check  *checker
	report LoadReport

	state   loadState    // as of the packets put so far
	resume  loadState    // as the folder was found; its Offset is 0 in a new load
	names   *mergeQueues // of a merge: the queues of the store
	marks   storage.Marks
	queue   uint32 // that packets are put into
	limits  storage.Limits
	closed  bool
	fresh   bool           // the data folder was made by this load
	cleared bool           // what was of no use in the folder was removed
	faulty  bool           // the error is about what is in the dump
	roomy   bool           // the memory tables are those of a server
	batch   *storage.Batch // being filled

	apply   chan *storage.Batch // to the goroutine that writes
	applied chan error          // an answer for each
	spare   *storage.Batch
	writing bool // a batch is with the goroutine
}

// loadMemTable keeps memory below 300 MB: a compaction maps twenty tables of this size, and what it
// makes of them. A server's, twice as large, load no faster; half of it is slower by the syncs, one a batch.
const loadMemTable = 4 << 20

func (l *loader) open() (err error) {
	var s *storage.Store
	o := storage.Options{MemTable: loadMemTable, Unfinished: true, Offline: true, Logger: l.Logger}
	if !l.roomy {
		s, err = storage.Open(l.dir, o)
	}
	if l.roomy || errors.Is(err, storage.ErrFull) {
		o.MemTable = 0 // as a server chooses, which on a small disk is less
		l.roomy = true
		s, err = storage.Open(l.dir, o)
	}
	if err != nil {
		return err
	}
	l.store, l.limits, l.closed = s, s.Limits(), false
	return nil
}

// enlarge opens the store again, with memory tables that take longer records.
func (l *loader) enlarge() error {
	if err := l.settle(); err != nil {
		return err
	}
	if err := l.close(nil); err != nil {
		return err
	}
	l.roomy = true
	return l.open()
}

// roomToRemove is free space beside which the reserve is nothing that closing could need.
const roomToRemove = 1 << 30

// close removes the reserve, too, where there is room: that of small memory tables is small, and
// the next start makes its own.
func (l *loader) close(err error) error {
	if l.closed {
		return err
	}
	l.closed = true
	if l.store.Space().Free > roomToRemove {
		_ = os.Remove(filepath.Join(l.dir, "reserve"))
	}
	if e := l.store.Close(); e != nil && err == nil {
		err = fmt.Errorf("close data folder: %w", e)
	}
	return err
}

// abandon removes the load record.
func (l *loader) abandon() error {
	if _, err := os.Stat(l.dir); err != nil { // opening would make the folder
		return fmt.Errorf("%w: %w", ErrNothingToAbandon, err)
	}
	if err := l.open(); err != nil {
		return err
	}
	err := func() error {
		rec := l.store.Load()
		if rec == nil {
			return fmt.Errorf("%w: %s", ErrNothingToAbandon, l.dir)
		}
		if state, err := decodeLoadState(rec); err == nil {
			l.report.Packets, l.report.Queues, l.report.Expired = state.Packets, state.Queues, state.Expired
		}
		var b storage.Batch
		b.SetLoad(nil)
		return l.store.Apply(&b)
	}()
	return l.close(err)
}

func (l *loader) load(ctx context.Context, r io.Reader) (err error) {
	l.r = r
	l.seeker, l.begin = startOf(r)
	if l.head, r, err = headOf(r); err != nil {
		return err
	}
	if err := l.begun(r); err != nil {
		return err
	}
	if err := l.open(); err != nil {
		return err
	}
	l.fresh = l.store.Epoch() == 1
	already, err := l.loaded(ctx)
	if already || err != nil {
		return l.close(l.explain(err))
	}
	err = l.prepare(ctx)
	if err == nil && l.Merge && l.seeker != nil {
		err = l.rehearse(ctx)
	}
	if err == nil {
		err = l.run(ctx)
	}
	return l.close(l.explain(err))
}

// startOf returns where r stands, and what brings it back there if it can.
func startOf(r io.Reader) (s io.Seeker, at int64) {
	s, ok := r.(io.Seeker)
	if !ok {
		return nil, 0
	}
	at, err := s.Seek(0, io.SeekCurrent)
	if err != nil {
		return nil, 0
	}
	return s, at
}

// explain adds to an error the state of the folder.
func (l *loader) explain(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrNotEmpty), errors.Is(err, ErrOtherDump), errors.Is(err, ErrAlike), errors.Is(err, errLoadRecord):
		return err // they say it themselves
	case errors.Is(err, storage.ErrLoss) && l.store.Load() == nil:
		return fmt.Errorf("%w; nothing was stored: load into a new folder, or compact this one first, accepting the loss", err)
	case errors.Is(err, storage.ErrLoss):
		return fmt.Errorf("%w; it happened to a folder that holds a part of the dump: load it into a new folder", err)
	case errors.Is(err, storage.ErrUnknown):
		return fmt.Errorf("%w; how much of the dump is stored shows when it is loaded again", err)
	case l.store.Load() == nil && l.cleared:
		return fmt.Errorf("%w; nothing was stored: from the folder only expired packets and the names of empty queues were removed", err)
	case l.store.Load() == nil && l.fresh:
		return fmt.Errorf("%w; nothing was stored: the folder is new and empty", err)
	case l.store.Load() == nil:
		return fmt.Errorf("%w; nothing was stored: the folder is as it was", err)
	}
	again := "load the same dump again"
	switch {
	case l.faulty:
		again = "mend the dump and load it again"
	}
	return fmt.Errorf("%w; a part of the dump is stored, and the folder cannot be served yet: "+
		"%s to go on where it stopped, or abandon the load with --abandon, which keeps the part", err, again)
}

// prepare judges the folder, and makes state what the first batch starts from.
func (l *loader) prepare(ctx context.Context) error {
	l.batch, l.spare = &storage.Batch{}, &storage.Batch{}
	l.state = loadState{Version: loadVersion, Merge: l.Merge}
	found, err := l.scan(ctx)
	if err != nil {
		return err
	}
	control := l.store.Control()
	l.marks = l.check.header.marks
	if rec := l.store.Load(); rec != nil {
		if l.resume, err = decodeLoadState(rec); err != nil {
			return err
		}
		if l.resume.Merge != l.Merge {
			return fmt.Errorf("%w: a load %s was cut short; go on with it as it was begun", ErrOtherDump, mergeWords(l.resume.Merge))
		}
		l.state, l.report.Resumed = l.resume, l.resume.Packets
	} else if found.live > 0 && !l.Merge {
		return fmt.Errorf("%w: %s holds %d packets; load into a new folder, or merge", ErrNotEmpty, l.dir, found.live)
	} else {
		l.state.Base = control.NextSeq
	}
	if l.Merge {
		return l.prepareMerge(ctx, control.Marks)
	}
	if l.resume.Offset == 0 {
		return l.clear(ctx, found.expired > 0)
	}
	return nil
}

func mergeWords(merge bool) string {
	if merge {
		return "that merges"
	}
	return "into a new folder"
}

// prepareMerge makes room for the sequences of the dump above those of the store. They keep the
// distances they had, so that their order stays and no list of them is needed.
func (l *loader) prepareMerge(ctx context.Context, m storage.Marks) error {
	span := l.check.header.marks.NextSeq - l.check.header.marks.LowSeq - 1
	if l.state.Base > 1<<64-1-sequenceMargin-span {
		return fmt.Errorf("the folder's next sequence is %d and the dump needs %d from there on, which is more than there are: load it into a folder of its own", l.state.Base, span)
	}
	l.marks = storage.Marks{NextSeq: l.state.Base + span, LowSeq: m.LowSeq, NextQueue: m.NextQueue}
	l.names = newMergeQueues(m.NextQueue)
	return l.store.Queues(func(q storage.Queue) error {
		l.names.add(q.Name, q.ID)
		return ended(ctx, int64(len(l.names.numbers)))
	})
}

// merged returns the sequence that a packet of the dump gets in a merge.
func (l *loader) merged(seq uint64) uint64 {
	return l.state.Base + (seq - l.check.header.marks.LowSeq - 1)
}

// loadScan counts the packets of a folder.
type loadScan struct {
	live, expired int64
}

// scan looks at every packet of the folder: what is lost must not be taken for what was never there.
func (l *loader) scan(ctx context.Context) (loadScan, error) {
	var found loadScan
	var tally storage.Tally
	err := l.store.Packets(func(id storage.PacketID, m *storage.Meta) error {
		tally.Add(id, m.Expiry)
		if m.Expired(l.Now) {
			found.expired++
		} else {
			found.live++
		}
		return ended(ctx, found.live+found.expired)
	})
	if err != nil {
		return found, fmt.Errorf("read packets: %w", err)
	}
	return found, l.store.Verify(tally)
}

// ended returns the error of ctx at every 2^12th of many short steps.
func ended(ctx context.Context, step int64) error {
	if step&0xfff != 0 {
		return nil
	}
	return ctx.Err()
}

// clear takes expired packets and the names of empty queues out of a folder that the numbers of the
// dump are about to be used in.
func (l *loader) clear(ctx context.Context, expired bool) error {
	names := int64(0)
	err := l.store.Queues(func(q storage.Queue) error {
		if q.RestFields > 0 {
			return fmt.Errorf("%w: queue %q has settings that this version does not know; load into a new folder, or merge", ErrNotEmpty, q.Name)
		}
		names++
		return ended(ctx, names)
	})
	if err != nil {
		return err
	}
	var b storage.Batch
	apply := func(atLeast int) error {
		if b.Len() < atLeast {
			return nil
		}
		if err := l.store.Apply(&b); err != nil {
			return fmt.Errorf("remove expired packets and the names of empty queues: %w", err)
		}
		b.Reset()
		l.cleared = true
		return ctx.Err()
	}
	full := l.limits.MaxOps / 4 // their bytes are few
	if expired {                // what is read is the store as it was before the first batch
		err = l.store.Packets(func(id storage.PacketID, m *storage.Meta) error {
			if m.Expired(l.Now) {
				b.Delete(id, storage.Removed{Expires: true, Large: m.Large})
			}
			return apply(full)
		})
		if err != nil {
			return err
		}
	}
	err = l.store.Queues(func(q storage.Queue) error {
		b.DeleteQueue(q.ID)
		return apply(full)
	})
	if err != nil {
		return err
	}
	return apply(1)
}
