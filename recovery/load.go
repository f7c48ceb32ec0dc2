package recovery

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
	// ErrNotEmpty means that the folder holds packets, and LoadOptions.Merge was not given.
	ErrNotEmpty = errors.New("the data folder holds packets")
	// ErrOtherDump means that the folder holds a part of another dump.
	ErrOtherDump = errors.New("the data folder holds a part of another dump")
	// ErrNothingToAbandon means that no load into the folder was cut short.
	ErrNothingToAbandon = errors.New("no load into the data folder was cut short")
)

// LoadOptions say how to load.
type LoadOptions struct {
	// Merge adds the packets to what the folder holds: to the queues of the same names, as the
	// newest of their priority, in their order. If r is an io.Seeker the whole dump is checked
	// before the first packet is stored.
	Merge bool

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
	Ignored         int64 // fields and records of a later version that were passed over
	Took            time.Duration
}

// Load stores the packets of a dump in the folder dir, which it makes if it is not there.
//
// A folder without packets takes them over with their queue numbers, sequences and marks, so that
// a dump of it is the dump that was loaded, byte for byte. One that holds packets needs Merge.
//
// Load writes in batches, each with a record that says how far it has come. When it is stopped, by
// ctx, by an error or by the end of the process, the folder is either as it was, or holds a part of
// the dump and is refused with storage.ErrUnfinished by everything that serves it. The same Load
// goes on where that one was, each packet is stored once; Abandon ends it. The error says which.
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
	in     *input
	check  *checker
	report LoadReport

	state  loadState         // as of the packets put so far
	resume loadState         // as the folder was found; its Offset is 0 in a new load
	names  map[string]uint32 // of a merge: the queues of the store
	marks  storage.Marks
	queue  uint32 // that packets are put into
	limits storage.Limits
	closed bool
	roomy  bool           // the memory tables are those of a server
	batch  *storage.Batch // being filled

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
	o := storage.Options{MemTable: loadMemTable, Unfinished: true, Logger: l.Logger}
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

func (l *loader) load(ctx context.Context, r io.Reader) error {
	begin, seekable := startOf(r)
	var err error
	if l.in, err = openInput(r); err != nil {
		return err
	}
	if l.check, err = newChecker(&l.in.first); err != nil {
		return fmt.Errorf("%s: %w", l.in.place(1), err)
	}
	if l.check.header.payload == None {
		return errors.New("the dump was made without payloads: its packets cannot be stored; dump them again with their payloads")
	}
	if err := l.open(); err != nil {
		return err
	}
	err = l.prepare()
	if err == nil && l.Merge && seekable {
		err = l.rehearse(ctx, r.(io.Seeker), begin, r)
	}
	if err == nil {
		err = l.run(ctx)
	}
	return l.close(l.explain(err))
}

// startOf returns where r stands, if it can be brought back there.
func startOf(r io.Reader) (at int64, seekable bool) {
	s, ok := r.(io.Seeker)
	if !ok {
		return 0, false
	}
	at, err := s.Seek(0, io.SeekCurrent)
	return at, err == nil
}

// rehearse reads the whole dump before anything is stored, and goes back to its start.
func (l *loader) rehearse(ctx context.Context, s io.Seeker, begin int64, r io.Reader) error {
	for _, then := range []func() error{
		func() error { _, err := ReadDump(ctx, r, ReadOptions{}); return err },
		func() (err error) { l.in, err = openInput(r); return err },
	} {
		if _, err := s.Seek(begin, io.SeekStart); err != nil {
			return fmt.Errorf("cannot go back to the start of the dump: %w", err)
		}
		if err := then(); err != nil {
			return err
		}
	}
	return nil
}

// explain adds to an error the state of the folder.
func (l *loader) explain(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrNotEmpty), errors.Is(err, ErrOtherDump), errors.Is(err, storage.ErrLoss):
		return err // they say it themselves
	case errors.Is(err, storage.ErrUnknown):
		return fmt.Errorf("%w; how much of the dump is stored shows when it is loaded again", err)
	case l.store.Load() == nil:
		return fmt.Errorf("%w; nothing was stored: the folder is as it was", err)
	}
	return fmt.Errorf("%w; a part of the dump is stored, and the folder cannot be served yet: "+
		"load the same dump again to go on where it stopped, or abandon the load to keep the part", err)
}

// prepare judges the folder, and makes state what the first batch starts from.
func (l *loader) prepare() error {
	l.batch, l.spare = &storage.Batch{}, &storage.Batch{}
	l.state = loadState{Version: loadVersion, Merge: l.Merge}
	found, err := l.scan()
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
			return fmt.Errorf("%w: a load %s was cut short; go on with it as it was begun, or abandon it", ErrOtherDump, mergeWords(l.resume.Merge))
		}
		l.state, l.report.Resumed = l.resume, l.resume.Packets
	} else if found.live > 0 && !l.Merge {
		return fmt.Errorf("%w: %s; load into a new folder, or merge", ErrNotEmpty, l.dir)
	} else {
		l.state.Base = control.NextSeq
	}
	if l.Merge {
		return l.prepareMerge(control.Marks)
	}
	if l.resume.Offset == 0 {
		return l.clear(found)
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
func (l *loader) prepareMerge(m storage.Marks) error {
	span := l.check.header.marks.NextSeq - l.check.header.marks.LowSeq - 1
	if l.state.Base > 1<<64-1-sequenceMargin-span {
		return fmt.Errorf("the folder's sequences end at %d and the dump needs %d more: there is no room for them", l.state.Base, span)
	}
	l.marks = storage.Marks{NextSeq: l.state.Base + span, LowSeq: m.LowSeq, NextQueue: m.NextQueue}
	l.names = make(map[string]uint32)
	return l.store.Queues(func(q storage.Queue) error {
		l.names[string(q.Name)] = q.ID
		return nil
	})
}

// merged returns the sequence that a packet of the dump gets in a merge.
func (l *loader) merged(seq uint64) uint64 {
	return l.state.Base + (seq - l.check.header.marks.LowSeq - 1)
}

// loadScan is what a folder holds.
type loadScan struct {
	live    int64 // packets that have not expired
	expired []loadLeftover
}

type loadLeftover struct {
	id    storage.PacketID
	large bool
}

// scan looks at every packet of the folder: what is lost must not be taken for what was never there.
// More expired ones than a clearing takes at once are left for the next.
func (l *loader) scan() (loadScan, error) {
	var found loadScan
	var live, hash uint64
	err := l.store.Packets(func(id storage.PacketID, m *storage.Meta) error {
		if m.Expiry == 0 {
			live++
			hash += storage.SetHash(id)
		}
		if m.Expiry == 0 || m.Expiry > l.Now {
			found.live++
		} else if len(found.expired) < l.clearAtOnce() {
			found.expired = append(found.expired, loadLeftover{id, m.Large})
		}
		return nil
	})
	if err != nil {
		return found, fmt.Errorf("read packets: %w", err)
	}
	return found, l.store.Verify(live, hash)
}

// clearAtOnce is how many leftovers one batch removes: each may be two entries.
func (l *loader) clearAtOnce() int { return l.limits.MaxOps / 4 }

// clear takes expired packets and the names of empty queues out of a folder that the numbers of the
// dump are about to be used in.
func (l *loader) clear(found loadScan) error {
	for len(found.expired) > 0 {
		var b storage.Batch
		for _, p := range found.expired {
			b.Delete(p.id, storage.Removed{Expires: true, Large: p.large})
		}
		if err := l.store.Apply(&b); err != nil {
			return fmt.Errorf("remove expired packets: %w", err)
		}
		var err error
		if found, err = l.scan(); err != nil {
			return err
		}
	}
	for {
		var b storage.Batch
		err := l.store.Queues(func(q storage.Queue) error {
			if q.RestFields > 0 {
				return fmt.Errorf("%w, and settings of queue %q that this version does not know: load into a new folder, or merge", ErrNotEmpty, q.Name)
			}
			if b.Len() < l.clearAtOnce() {
				b.DeleteQueue(q.ID)
			}
			return nil
		})
		if err != nil || b.Len() == 0 {
			return err
		}
		if err := l.store.Apply(&b); err != nil {
			return fmt.Errorf("remove the names of empty queues: %w", err)
		}
	}
}
