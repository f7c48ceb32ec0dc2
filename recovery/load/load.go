// Package load stores the packets of a dump in a data folder.
//
// Load opens and prepares the folder (load.go), gives new numbers to queues that are merged
// (mergequeues.go), and stores packets (run.go), strings and hashes (keys.go) in batches. Each
// batch holds a checkpoint (checkpoint.go), so that a load that was cut short goes on where it
// stopped.
package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-queue/holdfast/recovery/contents"
	"github.com/holdfast-queue/holdfast/recovery/dump"
	"github.com/holdfast-queue/holdfast/storage"
)

// Errors of Load and Abandon. A load that was cut short, now or earlier, is
// storage.ErrLoadUnfinished.
var (
	// ErrNotEmpty means that the folder holds packets or settings, and Options.Merge was not given.
	ErrNotEmpty = errors.New("the data folder is not empty")
	// ErrOtherDump means that an unfinished load was of another dump, or was begun in another way. To
	// load that dump again finishes it, and Abandon keeps the part that is stored.
	ErrOtherDump = errors.New("the data folder holds a part of another dump")
	// ErrNothingToAbandon means that no load into the folder was cut short.
	ErrNothingToAbandon = errors.New("no load into the data folder was cut short")
)

// Options say how to load.
type Options struct {
	// Merge adds the packets to what the folder holds: to the queues of the same names, as the
	// newest of their priority, in their order. If the dump can be read twice, being an io.Seeker,
	// all of it is checked before the first packet is stored.
	Merge bool

	Now      int64               // Unix milliseconds: packets that have expired by then are left out; 0 is the wall clock
	Progress func(dump.Progress) // called now and then from the goroutine of Load, if not nil

	batchBytes, chunkBytes int // of a test: see loader.makeRoom and dump.Reader; 0 is the usual size
}

// Report says what a load stored.
type Report struct {
	Packets, Queues int64 // of the dump, those stored by earlier runs included
	Keys            int64 // strings and hashes, as well
	Taken           int64 // strings and hashes of the dump whose names the folder has; left out
	Resumed         int64 // packets that earlier runs had stored
	Expired         int64 // packets of the dump that have expired; left out
	Bytes           int64 // of the dump
	Took            time.Duration
}

// Load stores the packets of a dump in the folder dir, which it makes if there is none.
//
// A folder that holds nothing takes the dump as it is, with the numbers of queues, the sequences
// and the marks: a dump of that folder is the same dump, byte for byte. Any other folder needs
// Merge.
//
// Load writes in batches, each with a checkpoint. When it is stopped, by ctx, by an error or by the
// end of the process, a part of the dump may be stored. Then everything that serves the folder
// refuses it with storage.ErrLoadUnfinished. The same Load again goes on where it stopped and
// stores each packet once; Abandon keeps the part. The error says whether there is one. The last
// batch leaves no checkpoint: a merge that is killed behind it, and repeated, adds all packets
// again.
//
// Every record of the dump is checked before it is stored. The error names its line or number.
func Load(ctx context.Context, dir string, r io.Reader, o Options) (Report, error) {
	start := time.Now()
	o.Now = cmp.Or(o.Now, start.UnixMilli())
	l := &loader{Options: o, dir: dir, source: r}
	err := l.load(ctx)
	l.report.Took = time.Since(start)
	return l.report, err
}

// Abandon ends a load into the folder dir that was cut short, and keeps the part that is stored,
// which the report counts.
func Abandon(dir string) (Report, error) {
	l := &loader{dir: dir}
	if _, err := os.Stat(dir); err != nil { // opening would make the folder
		return l.report, fmt.Errorf("%w: %w", ErrNothingToAbandon, err)
	}
	if err := l.open(); err != nil {
		return l.report, err
	}
	err := l.close(l.abandon())
	return l.report, err
}

// loader is one load under way.
type loader struct {
	Options
	dir    string
	report Report

	source io.Reader // of the dump
	begin  int64     // where the dump begins in source, if that is an io.Seeker
	in     *dump.Reader

	store       *storage.Store
	limits      storage.Limits
	largeTables bool // the memory tables are those of a server

	resume checkpoint   // of the earlier load; its Offset is 0 if there is none
	passed bool         // the dump was read beyond resume.Offset
	state  checkpoint   // as of the packets put so far, but for Offset and Hash
	names  *mergeQueues // of a merge: the queues of the folder
	keys   keyLoad
	marks  storage.Marks // of the folder, once the load is done
	queue  uint32        // that packets are put into; 0: it has expired
	batch  *storage.Batch
	writer *batchWriter
}

func (l *loader) load(ctx context.Context) error {
	if s, ok := l.source.(io.Seeker); ok {
		if at, err := s.Seek(0, io.SeekCurrent); err == nil {
			l.begin = at
		} else { // a pipe is an *os.File, too
			l.source = io.MultiReader(l.source)
		}
	}
	if err := l.readHeader(); err != nil {
		return err
	}
	if err := l.open(); err != nil {
		return err
	}
	err := l.prepare(ctx)
	if err == nil && l.Merge {
		err = l.validate(ctx)
	}
	if err == nil {
		err = l.run(ctx)
	}
	return l.close(l.explain(err))
}

func (l *loader) readHeader() (err error) {
	if l.in, err = dump.NewReader(l.source); err != nil {
		return err
	}
	if !l.in.Payloads() {
		return errors.New("the dump was made without payloads: its packets cannot be stored; dump them again with their payloads")
	}
	l.in.ChunkBytes = cmp.Or(l.chunkBytes, l.in.ChunkBytes)
	return nil
}

func (l *loader) open() (err error) {
	l.store, err = storage.Open(l.dir, storage.Options{Sync: storage.SyncNever(), Unfinished: true})
	if err != nil {
		l.store = nil
		return err
	}
	l.limits = l.store.Limits()
	return nil
}

// plenty is so much free space that closing does not need the reserve.
const plenty = 1 << 30

// close closes the store and returns err, or else the error of closing. Where there is room it
// removes the reserve, which is small as the memory tables are: the next start makes its own.
func (l *loader) close(err error) error {
	if l.store == nil {
		return err
	}
	if l.store.Space().Free > plenty {
		_ = os.Remove(filepath.Join(l.dir, "reserve"))
	}
	if e := l.store.Close(); e != nil && err == nil {
		err = fmt.Errorf("close data folder: %w", e)
	}
	l.store = nil
	return err
}

func (l *loader) abandon() error {
	rec := l.store.Load()
	if rec == nil {
		return fmt.Errorf("%w: %s", ErrNothingToAbandon, l.dir)
	}
	if state, err := decodeCheckpoint(rec); err == nil {
		l.report.Packets, l.report.Queues, l.report.Expired = state.Packets, state.Queues, state.Expired
		l.report.Keys, l.report.Taken = state.Keys, state.Taken
	}
	var b storage.Batch
	b.SetLoad(nil)
	return l.store.Apply(&b)
}

// explain adds to an error in what state the folder is.
func (l *loader) explain(err error) error {
	if err == nil || l.store == nil || errors.Is(err, ErrNotEmpty) || errors.Is(err, ErrOtherDump) {
		return err
	}
	unfinished := l.store.Load() != nil
	switch {
	case errors.Is(err, storage.ErrUnknown):
		return fmt.Errorf("%w; load the dump again to see how much of it is stored", err)
	case unfinished && errors.Is(err, storage.ErrLoss):
		return fmt.Errorf("%w; a part of the dump is stored: load it into a new folder", err)
	case unfinished && !errors.Is(err, storage.ErrLoadUnfinished):
		return fmt.Errorf("%w; %w: a part of the dump is stored", err, storage.ErrLoadUnfinished)
	case unfinished:
		return err
	}
	return fmt.Errorf("%w; nothing was stored", err)
}

// prepare decides whether the folder may be loaded into, and from where on.
func (l *loader) prepare(ctx context.Context) error {
	l.batch = &storage.Batch{}
	l.state = checkpoint{Version: checkpointVersion, Merge: l.Merge}
	found, err := l.count(ctx)
	if err != nil {
		return err
	}
	control := l.store.Control()
	l.marks = l.in.Marks()
	l.marks.LastKey = control.LastKey
	rec := l.store.Load()
	switch {
	case rec != nil:
		if l.resume, err = decodeCheckpoint(rec); err != nil {
			return err
		}
		if l.resume.Merge != l.Merge {
			return fmt.Errorf("%w: the unfinished load is one %s", ErrOtherDump, mergeWords(l.resume.Merge))
		}
		l.state, l.report.Resumed = l.resume, l.resume.Packets
	case found.packets+found.keys > 0 && !l.Merge:
		what := fmt.Sprintf("%d packets", found.packets)
		if found.keys > 0 {
			what += fmt.Sprintf(" and %d strings and hashes", found.keys)
		}
		return fmt.Errorf("%w: %s holds %s; load into a new folder, or merge", ErrNotEmpty, l.dir, what)
	default:
		l.state.Base, l.state.KeyBase, l.state.QueueBase = control.NextSeq, control.LastKey, control.NextQueue
	}
	if found.dead {
		if err := contents.DeleteDead(ctx, l.store, l.Now, nil); err != nil {
			return err
		}
	}
	if l.Merge {
		return l.prepareMerge(ctx, control.Marks)
	}
	if l.resume.Offset == 0 {
		return l.clear(ctx)
	}
	return nil
}

func mergeWords(merge bool) string {
	if merge {
		return "that merges"
	}
	return "into a new folder"
}

// found is what the folder holds before the load.
type found struct {
	packets, keys int64 // that can be reached
	dead          bool  // there is something that cannot
}

// count counts what the folder holds and compares it with the control record: a folder that has
// lost packets must not look empty. Of a merge it notes which names are taken.
func (l *loader) count(ctx context.Context) (f found, err error) {
	queues := make(map[uint32]string) // of a merge: that can be reached
	tally, err := contents.Walk(ctx, l.store, l.Now, contents.Visitor{
		Queue: func(q *storage.Queue, dead bool) error {
			f.dead = f.dead || dead
			if l.Merge && !dead {
				queues[q.ID] = storage.FullName(q.Database, q.Name)
				if q.Settings != nil {
					l.takeList(queues, q.ID)
				}
			}
			return nil
		},
		Head: func(h *storage.Head, dead bool) error {
			if f.dead = f.dead || dead; !dead {
				f.keys++
				l.takeKey(h)
			}
			return nil
		},
		Field: func(_ *storage.Field, dead bool) error { f.dead = f.dead || dead; return nil },
		Packet: func(id storage.PacketID, _ *storage.Meta, _ *contents.Delivery, dead bool) error {
			if f.dead = f.dead || dead; !dead {
				f.packets++
				l.takeList(queues, id.Queue)
			}
			return nil
		},
		Orphan: func(*contents.Delivery) error { f.dead = true; return nil },
		Unique: func(_ storage.UniqueID, dead bool) error { f.dead = f.dead || dead; return nil },
	})
	if err != nil {
		return f, err
	}
	f.dead = f.dead || l.store.Flush() != (storage.Flush{})
	return f, l.store.Verify(tally)
}

// ended returns the error of ctx at every 2^12th of many short steps.
func ended(ctx context.Context, step int64) error {
	if step&0xfff != 0 {
		return nil
	}
	return ctx.Err()
}

// clear removes what is dead and empty queues from a folder whose numbers the dump is about to use.
func (l *loader) clear(ctx context.Context) error {
	err := l.store.Queues(func(q storage.Queue) error {
		if q.RestFields > 0 {
			return fmt.Errorf("%w: queue %q has settings that this version does not know; load into a new folder, or merge", ErrNotEmpty, q.Name)
		}
		if q.Settings != nil && !q.Expired(l.Now) {
			return fmt.Errorf("%w: queue %q has settings; load into a new folder, or merge", ErrNotEmpty, q.Name)
		}
		return nil
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
			return fmt.Errorf("remove the names of empty queues: %w", err)
		}
		b.Reset()
		return ctx.Err()
	}
	err = l.store.Uniques(func(u *storage.Unique) error {
		b.DeleteUnique(u.UniqueID)
		return apply(l.limits.MaxOps / 4) // deletes have few bytes
	})
	if err != nil {
		return err
	}
	err = l.store.Queues(func(q storage.Queue) error {
		b.DeleteQueue(q.ID)
		return apply(l.limits.MaxOps / 4)
	})
	if err != nil {
		return err
	}
	return apply(1)
}
