package load

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/holdfast-queue/holdfast/recovery/dump"
	"github.com/holdfast-queue/holdfast/storage"
)

// batchBytes is what a batch grows to: enough that the sync at its end costs little.
const batchBytes = 4 << 20

// validate reads the whole dump before anything of it is merged, and goes back to its start. It
// does nothing if the dump cannot be read twice.
func (l *loader) validate(ctx context.Context) error {
	seeker, ok := l.source.(io.Seeker)
	if !ok {
		return nil
	}
	queues, bytes := 0, 0
	packet := func(q *storage.Queue, _ storage.PacketID, _ *storage.Packet, _ *dump.Delivery) error {
		return l.checkList(q)
	}
	err := l.in.Run(ctx, dump.ReadOptions{Packet: packet, Queue: func(q *storage.Queue) error {
		if l.names.has(q.Database, q.Name) {
			return nil
		}
		if err := l.checkSettings(q); err != nil {
			return err
		}
		queues++
		bytes += len(q.Name)
		return l.names.checkRoom(queues, bytes)
	}})
	if err != nil {
		return err
	}
	if _, err := seeker.Seek(l.begin, io.SeekStart); err != nil {
		return fmt.Errorf("cannot go back to the start of the dump: %w", err)
	}
	return l.readHeader()
}

// run stores the dump, from where an earlier load stopped. One batch is written while the next is
// filled.
func (l *loader) run(ctx context.Context) error {
	l.writer = newBatchWriter()
	err := l.in.Run(ctx, dump.ReadOptions{
		Queue: l.putQueue, Window: l.putWindow, Packet: l.putPacket, Head: l.putHead, Field: l.putField, Progress: l.Progress,
	})
	if err == nil && !l.passed && l.resume.Offset > 0 {
		err = l.otherDump()
	}
	if e := l.writer.wait(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	l.batch.SetLoad(nil)
	l.batch.SetMarks(l.marks)
	if err := l.store.Apply(l.batch); err != nil {
		return fmt.Errorf("store packets: %w", err)
	}
	s := &l.state
	l.report.Packets, l.report.Queues, l.report.Expired, l.report.Bytes = s.Packets, s.Queues, s.Expired, l.in.Offset()
	l.report.Keys, l.report.Taken = s.Keys, s.Taken
	if l.Progress != nil {
		l.Progress(dump.Progress{Packets: s.Packets + s.Expired, Bytes: l.report.Bytes})
	}
	return nil
}

// stored reports whether an earlier load has stored the record that is being handed out. The bytes
// before the first that is not stored must be those of then.
func (l *loader) stored() (bool, error) {
	at := l.in.Offset()
	if at < l.resume.Offset {
		return true, nil
	}
	if !l.passed && l.resume.Offset > 0 && (at != l.resume.Offset || l.in.Hash() != l.resume.Hash) {
		return false, l.otherDump()
	}
	l.passed = true
	return false, nil
}

func (l *loader) otherDump() error {
	return fmt.Errorf("%w: the %d bytes that are stored are not the beginning of this dump", ErrOtherDump, l.resume.Offset)
}

// putQueue makes a queue the one that packets are put into.
func (l *loader) putQueue(defined *storage.Queue) error {
	stored, err := l.stored()
	if err != nil {
		return err
	}
	q, fresh := *defined, true
	if q.Expired(l.Now) {
		l.queue = 0
		return nil
	}
	if l.Merge {
		if q.ID, fresh, err = l.names.number(q.Database, q.Name); err != nil {
			return err
		}
		l.marks.NextQueue = l.names.next
	}
	l.queue = q.ID
	if stored {
		return nil
	}
	if err := l.makeRoom(queueBound(&q)); err != nil {
		return err
	}
	if err := l.checkSettings(defined); err != nil {
		return err
	}
	l.state.Queues++
	if fresh || l.Merge && l.isNew(q.ID) { // else its own settings stay
		l.batch.PutQueue(q)
	}
	return nil
}

// checkSettings is checkList for the settings of a queue, by which it has its name also while it is
// empty.
func (l *loader) checkSettings(q *storage.Queue) error {
	if q.Settings == nil {
		return nil
	}
	return l.checkList(q)
}

// queueBound is at least the length of a queue's definition.
func queueBound(q *storage.Queue) int {
	const overhead = 256
	n := overhead + len(q.Name) + len(q.Rest)
	if q.Settings != nil {
		n += q.Settings.Room()
	}
	return n
}

func (l *loader) putPacket(q *storage.Queue, id storage.PacketID, p *storage.Packet, d *dump.Delivery) error {
	if stored, err := l.stored(); stored || err != nil {
		return err
	}
	leased := d.Leased(l.Now) && !l.Merge
	if p.Expired(l.Now) && !leased || l.queue == 0 {
		l.state.Expired++
		return nil
	}
	if err := l.checkList(q); err != nil {
		return err
	}
	id.Queue = l.queue
	if p.Key == nil && storage.IsLarge(len(p.Payload)) {
		p.Hash = storage.ValueHash(p.Payload) // which no dump has
	}
	if err := l.roomFor(dump.RecordBound(p), deliveryBound(d)); err != nil {
		return err
	}
	if l.Merge {
		if err := l.merge(q.Database, &id, p, d); err != nil {
			return err
		}
	}
	if n := len(l.batch.Record(l.batch.Put(id, p))); n > l.limits.MaxRecord {
		return fmt.Errorf("the packet has a record of %d bytes: a folder on a disk this small takes at most %d", n, l.limits.MaxRecord)
	}
	if len(p.Unique) > 0 {
		l.batch.PutUnique(&storage.Unique{UniqueID: storage.UniqueID{Queue: id.Queue, Identity: cmp.Or(p.Identity, id.Seq)}, ID: p.Unique})
	}
	if d != nil {
		l.batch.PutDelivery(&d.Delivery, 0)
	}
	l.state.Packets++
	return nil
}

// putWindow stores a window. In a merge it goes by another sequence, as its packet does.
func (l *loader) putWindow(u *storage.Unique) error {
	if stored, err := l.stored(); stored || err != nil || u.Expired(l.Now) || l.queue == 0 {
		return err
	}
	const overhead = 64
	if err := l.makeRoom(overhead + len(u.ID)); err != nil {
		return err
	}
	put := storage.Unique{UniqueID: storage.UniqueID{Queue: l.queue, Identity: u.Identity}, ID: u.ID, Until: u.Until}
	if l.Merge {
		put.Identity = l.merged(u.Identity)
	}
	l.batch.PutUnique(&put)
	return nil
}

// deliveryBound is at least what a delivery state adds to a batch, with a queue for its origin.
func deliveryBound(d *dump.Delivery) int {
	const overhead = 512
	if d == nil {
		return 0
	}
	return overhead + len(d.Consumer) + len(d.OriginName) + len(d.Reason) + len(d.Progress)
}

// roomFor makes room for a record of at most n bytes, and for more bytes of others.
func (l *loader) roomFor(n, more int) error {
	if n > l.limits.MaxRecord && !l.largeTables {
		if err := l.enlarge(); err != nil {
			return err
		}
	}
	return l.makeRoom(n + more)
}

// enlarge opens the store again, with memory tables that take longer records.
func (l *loader) enlarge() error {
	if err := l.writer.wait(); err != nil {
		return err
	}
	if err := l.close(nil); err != nil {
		return err
	}
	l.largeTables = true
	return l.open()
}

// makeRoom writes the batch if it is full, or would be with the record of n bytes that is being
// handed out. The checkpoint covers all that lies before that record.
func (l *loader) makeRoom(n int) error {
	size, ops := l.batch.Bytes(), l.batch.Len()
	if size < cmp.Or(l.batchBytes, min(batchBytes, l.limits.MaxBytes*5/8)) &&
		size+n <= l.limits.MaxBytes*3/4 && ops < l.limits.MaxOps*3/4 || ops == 0 {
		return nil
	}
	l.state.Offset, l.state.Hash = l.in.Offset(), l.in.Hash()
	rec, err := l.state.encode()
	if err != nil {
		return err
	}
	l.batch.SetLoad(rec)
	l.batch.SetMarks(l.marks)
	l.batch, err = l.writer.write(l.store, l.batch)
	return err
}

// batchWriter writes one batch while the caller fills another.
type batchWriter struct {
	spare   *storage.Batch
	done    chan error
	writing bool
}

func newBatchWriter() *batchWriter {
	return &batchWriter{spare: &storage.Batch{}, done: make(chan error, 1)}
}

// write begins to write a batch, once the one before is written, and returns an empty one.
func (w *batchWriter) write(s *storage.Store, b *storage.Batch) (*storage.Batch, error) {
	if err := w.wait(); err != nil {
		return b, err
	}
	w.writing = true
	go func() { w.done <- s.Apply(b) }() // ends before wait returns
	empty := w.spare
	w.spare = b
	empty.Reset()
	return empty, nil
}

// wait waits for the batch that is being written.
func (w *batchWriter) wait() error {
	if !w.writing {
		return nil
	}
	w.writing = false
	if err := <-w.done; err != nil {
		return fmt.Errorf("store packets: %w", err)
	}
	return nil
}
