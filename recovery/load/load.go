// Package load stores a dump in a data folder.
package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/holdfast-queue/holdfast/recovery/dump"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// ErrNotEmpty means that the folder holds something.
var ErrNotEmpty = errors.New("the data folder is not empty")

// Options say how to load.
type Options struct {
	Now      int64               // Unix milliseconds: what has expired by then is left out; 0 is the wall clock
	Progress func(dump.Progress) // called now and then from the goroutine of Load, if not nil

	batchBytes int // of a test: the size of a batch; 0 is the usual one
}

// Report says what a load stored.
type Report struct {
	Packets, Queues int64
	Keys            int64 // strings and hashes
	Taken           int64 // strings and hashes whose names a server has; left out
	Expired         int64 // packets of the dump that have expired; left out
	Bytes           int64 // of the dump
	Took            time.Duration
}

// Load stores a dump in the folder dir, which it makes if there is none.
//
// The folder must hold nothing. It takes the dump as it is, with the numbers of queues, the
// sequences and the marks: a dump of that folder is the same dump, byte for byte.
//
// A load is whole or nothing: when it is stopped, by ctx, by an error or by the end of the process,
// the folder holds what it held before. An error that wraps storage.ErrUnknown leaves it to the
// next start which of the two is so.
//
// Every record of the dump is checked before it is stored. The error names its line or number.
func Load(ctx context.Context, dir string, r io.Reader, o Options) (Report, error) {
	start := time.Now()
	o.Now = cmp.Or(o.Now, start.UnixMilli())
	l := &loader{Options: o, ctx: ctx, dir: dir, batch: &content.Batch{}, spare: &content.Batch{}, written: func() error { return nil }}
	read, err := dump.Read(ctx, r, l.record, o.Progress)
	err = l.end(err)
	l.report.Bytes, l.report.Took = read.Bytes, time.Since(start)
	if err == nil && o.Progress != nil {
		o.Progress(dump.Progress{Counts: read})
	}
	return l.report, err
}

// loader is one load under way.
type loader struct {
	Options
	ctx    context.Context
	dir    string
	report Report
	store  *storage.Store

	marks content.Marks // of the folder, once the load is done
	id    uint32        // the number of the queue whose packets come; 0: it has expired
	share uint64        // the number of the last of its shares
	key   uint64        // the number of the last string or hash; 0: it was left out, and so are its fields
	batch *content.Batch
	spare *content.Batch // the one that is being written

	written func() error // waits for that one
}

// record stores a record, and writes the batch if it is full.
func (l *loader) record(r *dump.Record) error {
	switch r.Type {
	case dump.TypeHeader:
		return l.begin(r)
	case dump.TypeQueue:
		l.putQueue(r.Definition())
	case dump.TypeShare:
		l.putShare(r.Share())
	case dump.TypeWindow:
		l.putWindow(r.Window())
	case dump.TypePacket:
		l.putPacket(r.Packet())
	case dump.TypeString, dump.TypeHash:
		l.putHead(r.Head())
	case dump.TypeField:
		if f := r.Field(); l.key != 0 {
			l.marks.LastKey++
			f.Hash, f.ID, f.Version = l.key, l.marks.LastKey, l.marks.LastKey
			l.batch.PutField(f, content.Mark{})
		}
	}
	return l.room()
}

// begin opens the folder, and decides whether it can be loaded into.
func (l *loader) begin(r *dump.Record) error {
	if r.Payload != nil {
		return errors.New("the dump was made without payloads: its packets cannot be stored; dump them again with their payloads")
	}
	var err error
	if l.store, err = storage.Open(l.dir, storage.Options{Whole: true}); err != nil {
		return err
	}
	l.marks = r.Marks()
	l.marks.LastKey = l.store.Control().LastKey
	return l.empty()
}

// empty refuses a folder whose numbers the dump cannot use. It goes by the counts: a folder that
// has lost its packets must not look empty.
func (l *loader) empty() error {
	queues := 0
	if err := l.store.Walk(storage.Visitor{Queue: func(content.Queue) error { queues++; return nil }}); err != nil {
		return err
	}
	if c := l.store.Control(); queues > 0 || c.Live > 0 || c.Keys > 0 || c.Deliveries > 0 {
		what := "strings or hashes"
		if queues > 0 {
			what = fmt.Sprintf("queues: %d", queues)
		}
		return fmt.Errorf("%w: %s holds %s; load into a new folder", ErrNotEmpty, l.dir, what)
	}
	return nil
}

// end writes the last batch, keeps all of them and closes the store. err is why the dump was not
// read to its end.
func (l *loader) end(err error) error {
	if l.store == nil {
		return fmt.Errorf("%w; nothing was stored", err)
	}
	if e := l.written(); err == nil {
		err = e
	}
	if err == nil {
		l.batch.SetMarks(l.marks)
		l.batch.MustWrite()
		err = l.store.Apply(l.batch)
	}
	said := "nothing was stored"
	if err == nil {
		if err = l.store.Keep(); errors.Is(err, storage.ErrUnknown) {
			said = "the dump is stored as a whole, or nothing of it: see which before you load it again"
		}
	}
	closing := l.store.Close()
	switch {
	case err == nil && closing != nil:
		return fmt.Errorf("close data folder: %w", closing)
	case err == nil, errors.Is(err, ErrNotEmpty):
		return err
	}
	return fmt.Errorf("%w; %s", err, said)
}

// putQueue makes a queue the one that packets are put into.
func (l *loader) putQueue(q *content.Queue) {
	if l.id = 0; q.Expired(l.Now) {
		return
	}
	l.report.Queues++
	l.id, l.share = q.ID, 0
	l.batch.PutQueue(*q)
}

func (l *loader) putPacket(id content.PacketID, p *content.Packet, d *dump.Delivery) {
	if p.Expired(l.Now) && !d.Leased(l.Now) || l.id == 0 {
		l.report.Expired++
		return
	}
	if id.Queue = l.id; p.Key == nil && content.IsLarge(len(p.Payload)) {
		p.Hash = content.ValueHash(p.Payload) // which no dump has
	}
	l.batch.Put(id, p)
	if len(p.Unique) > 0 {
		l.batch.PutUnique(&content.Unique{UniqueID: content.UniqueID{Queue: id.Queue, Identity: cmp.Or(p.Identity, id.Seq)}, ID: p.Unique, UntilClaim: p.UntilClaim})
	}
	if d != nil {
		l.batch.PutDelivery(&d.Delivery, 0)
	}
	l.report.Packets++
}

func (l *loader) putWindow(u *content.Unique) {
	if u.Expired(l.Now) || l.id == 0 {
		return
	}
	u.Queue = l.id
	l.batch.PutUnique(u)
}

// putShare stores what a share has of its own. Those of a queue get numbers in their order.
func (l *loader) putShare(s *content.Share) {
	if l.id == 0 {
		return
	}
	l.share++
	s.ShareID = content.ShareID{Queue: l.id, Number: l.share}
	l.batch.PutShare(s, true)
}

// putHead stores a string or a hash. The dump has no numbers of them: they get the next ones, in
// their order, which are versions, too.
func (l *loader) putHead(h *content.Head) {
	if l.key = 0; h.Expired(l.Now) {
		return
	}
	l.marks.LastKey++
	l.key = l.marks.LastKey
	h.ID, h.Version = l.key, l.key
	l.batch.PutHead(h, content.Mark{})
	l.report.Keys++
}

// A batch grows to batchBytes: enough that the sync at its end costs little.
const batchBytes = 4 << 20

// room writes the batch if it is full, while the next one is filled.
func (l *loader) room() error {
	if l.batch.Bytes() < cmp.Or(l.batchBytes, batchBytes) {
		return nil
	}
	if err := l.written(); err != nil {
		return fmt.Errorf("store packets: %w", err)
	}
	full := l.batch
	full.SetMarks(l.marks)
	l.batch, l.spare = l.spare, full
	l.batch.Reset()
	done := make(chan error, 1)
	go func() { done <- l.store.Apply(full) }() // ends before end returns
	l.written = sync.OnceValue(func() error { return <-done })
	return nil
}
