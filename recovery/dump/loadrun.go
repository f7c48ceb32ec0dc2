package dump

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-queue/holdfast/storage"
)

// batchBytes is what a batch of a load grows to: enough that the sync it ends with costs little.
const batchBytes = 4 << 20

// run stores the dump, from where an earlier run stopped. One batch is written while the next one
// is filled. Batches end where chunks end.
func (l *loader) run(ctx context.Context) error {
	l.in.start(cmp.Or(l.tune.chunk, min(chunkBytes, l.limits.MaxBytes/16)), l.resume.Offset)
	defer l.in.close()
	l.report.Ignored = l.in.passed
	l.apply, l.applied = make(chan *storage.Batch), make(chan error, 1)
	go func() { // ends when apply is closed
		for b := range l.apply {
			l.applied <- l.store.Apply(b)
		}
	}()
	err := l.chunks(ctx)
	if e := l.settle(); err == nil {
		err = e
	}
	close(l.apply)
	if err != nil {
		return err
	}
	return l.finish()
}

func (l *loader) chunks(ctx context.Context) error {
	tell := time.Now()
	for {
		c, err := l.in.next(ctx)
		if err != nil {
			return l.otherDump(err)
		}
		if c == nil {
			break
		}
		if err := l.chunk(c); err != nil {
			return err
		}
		l.in.release(c)
		if now := time.Now(); l.Progress != nil && now.After(tell) {
			tell = now.Add(progressEvery)
			l.Progress(Progress{Packets: int64(l.check.packets), Bytes: l.report.Bytes})
		}
	}
	if l.report.Bytes < l.resume.Offset {
		return l.otherDump(errSeam)
	}
	err := l.check.finish()
	l.faulty = err != nil
	return err
}

// otherDump tells that the input does not begin like the one that is stored in part.
func (l *loader) otherDump(err error) error {
	if errors.Is(err, errSeam) {
		return fmt.Errorf("%w: that dump's first %d bytes are not those of this one; go on with that dump",
			ErrOtherDump, l.resume.Offset)
	}
	return err
}

// inDump notes that an error is about what is in the dump, unless the dump could not be read.
func (l *loader) inDump(err error) error {
	l.faulty = !errors.Is(err, errRead)
	return l.otherDump(err)
}

// chunk puts the packets of a chunk into the batch, unless an earlier run has stored them.
func (l *loader) chunk(c *chunk) error {
	stored := c.end <= l.resume.Offset
	if c.err != nil && len(c.entries) == 0 {
		return l.inDump(c.err)
	}
	if c.end == l.resume.Offset && c.hash != l.resume.Hash {
		return l.otherDump(errSeam)
	}
	if !stored && (l.batch.Bytes()+len(c.data) > l.limits.MaxBytes*3/4 || l.batch.Len()+2*len(c.entries) > l.limits.MaxOps*3/4) {
		if err := l.send(); err != nil {
			return err
		}
	}
	for i := range c.entries {
		e := &c.entries[i]
		if err := l.check.check(e); err != nil {
			return l.inDump(fmt.Errorf("%s: %w", l.in.place(e.at), err))
		}
		switch e.kind {
		case entryQueue:
			if err := l.putQueue(stored); err != nil {
				return fmt.Errorf("%s: %w", l.in.place(e.at), err)
			}
		case entryPacket:
			if stored {
				continue
			}
			if err := l.putPacket(e); err != nil {
				return fmt.Errorf("%s: %w", l.in.place(e.at), err)
			}
		}
	}
	if c.err != nil {
		return l.inDump(c.err)
	}
	l.report.Bytes = c.end
	l.report.Ignored += c.ignored
	if stored {
		return nil
	}
	l.state.Offset, l.state.Hash = c.end, c.hash
	if l.batch.Bytes() < cmp.Or(l.tune.batch, min(batchBytes, l.limits.MaxBytes*5/8)) {
		return nil
	}
	return l.send()
}

// putQueue makes the checker's queue the one that packets are put into.
func (l *loader) putQueue(stored bool) error {
	q := *l.check.queue
	l.queue = q.ID
	if !stored {
		l.state.Queues++
	}
	if l.Merge {
		id, fresh, err := l.names.number(q.Name, l.store.Packets)
		if err != nil {
			return err
		}
		l.marks.NextQueue = l.names.next
		l.queue, q.ID = id, id
		if !fresh {
			return nil // its own settings stay
		}
	}
	if !stored {
		l.batch.PutQueue(q)
	}
	return nil
}

func (l *loader) putPacket(e *entry) error {
	p := &e.packet
	if p.Expired(l.Now) {
		l.state.Expired++
		return nil
	}
	id := storage.PacketID{Queue: l.queue, Priority: e.id.Priority, Seq: e.id.Seq}
	if l.Merge {
		id.Seq = l.merged(id.Seq)
	}
	if n := recordBound(p); n > l.limits.MaxRecord && !l.roomy {
		if err := l.enlarge(); err != nil {
			return err
		}
	}
	if n := len(l.batch.Record(l.batch.Put(id, p))); n > l.limits.MaxRecord {
		return fmt.Errorf("the packet has a record of %d bytes: a folder on a disk this small takes at most %d", n, l.limits.MaxRecord)
	}
	l.state.Packets++
	return nil
}

// send has the batch written, with the load record as of its last packet. Without packets there is
// no need for either: what was read is read again.
func (l *loader) send() error {
	if l.batch.Len() == 0 {
		return nil
	}
	rec, err := l.state.encode()
	if err != nil {
		return err
	}
	l.batch.SetLoad(rec)
	return l.write()
}

// finish writes what is left, and puts the loaded record in the place of the load record.
func (l *loader) finish() error {
	s := &l.state
	loaded := loadedState{Version: loadedVersion, Merge: l.Merge, Size: s.Offset, Hash: s.Hash, Head: l.head,
		Packets: s.Packets, Queues: s.Queues, Expired: s.Expired}
	rec, err := loaded.encode()
	if err != nil {
		return err
	}
	l.batch.SetLoad(nil)
	l.batch.SetLoaded(rec)
	l.batch.SetMarks(l.marks)
	if err := l.store.Apply(l.batch); err != nil {
		return fmt.Errorf("store packets: %w", err)
	}
	l.report.Packets, l.report.Queues, l.report.Expired = s.Packets, s.Queues, s.Expired
	if l.Progress != nil {
		l.Progress(Progress{Packets: int64(l.check.packets), Bytes: l.report.Bytes})
	}
	return nil
}

// write hands the batch to the goroutine that writes, once that has written the one before.
func (l *loader) write() error {
	if err := l.settle(); err != nil {
		return err
	}
	l.batch.SetMarks(l.marks)
	l.writing = true
	l.apply <- l.batch
	l.batch, l.spare = l.spare, l.batch
	l.batch.Reset()
	return nil
}

// settle waits for the batch that is being written, so that the spare one is free.
func (l *loader) settle() error {
	if !l.writing {
		return nil
	}
	l.writing = false
	if err := <-l.applied; err != nil {
		return fmt.Errorf("store packets: %w", err)
	}
	return nil
}
