package load

import (
	"fmt"
	"math"

	"github.com/holdfast-queue/holdfast/recovery/dump"
	"github.com/holdfast-queue/holdfast/storage"
)

// lastQueueMark is the last mark of the next queue: above every number that a queue can have.
const lastQueueMark = math.MaxUint32

// merge is what a merge knows of the folder, and what it gives out there. Names are full names.
type merge struct {
	numbers map[string]uint32 // of all queues, also those of the dump so far
	bytes   int               // of names of queues
	keys    map[string]bool   // strings and hashes of the folder
	taken   map[string]bool   // names that no string or hash of the dump gets: both
	first   uint32            // the number of the first queue that is only in the dump
	base    uint64            // the sequence of the oldest packet of the dump, less the dump's low mark
	checked *storage.Queue    // the last one that mergeList looked at
}

// beginMerge makes room for the sequences of the dump above those of the folder. They keep their
// distances, so their order stays and no list of them is needed. It reads which names the folder
// has; what is dropped or has expired has none.
func (l *loader) beginMerge(in, there storage.Marks) error {
	const last = 1<<64 - 1 - dump.SequenceMargin
	span := in.NextSeq - in.LowSeq - 1
	if there.NextSeq > last-span {
		return fmt.Errorf("the folder's next sequence is %d and the dump needs %d from there on, which is more than there are: load it into a folder of its own", there.NextSeq, span)
	}
	l.marks = there
	l.marks.NextSeq += span
	m := &l.merge
	*m = merge{
		numbers: make(map[string]uint32), keys: make(map[string]bool), taken: make(map[string]bool),
		first: there.NextQueue, base: there.NextSeq - in.LowSeq - 1,
	}
	flush, names := l.store.Flush(), make(map[uint32]string)
	err := l.store.Queues(func(q storage.Queue) error {
		if !flush.DropsQueue(&q) && !q.Expired(l.Now) {
			name := storage.FullName(q.Database, q.Name)
			m.numbers[name], names[q.ID] = q.ID, name
			m.bytes += len(q.Name)
			m.taken[name] = q.Settings != nil
		}
		return l.ctx.Err()
	})
	if err != nil {
		return err
	}
	err = l.store.Packets(func(id storage.PacketID, p *storage.Meta) error {
		if name, there := names[id.Queue]; there && !p.Expired(l.Now) {
			m.taken[name] = true
			delete(names, id.Queue)
		}
		return l.ctx.Err()
	})
	if err != nil {
		return err
	}
	return l.store.Items(func(v storage.ValueID, h *storage.Head, _ *storage.Field, damage error) error {
		switch {
		case damage != nil && !v.IsField:
			return damage
		case h != nil && !h.Expired(l.Now) && !flush.Drops(h):
			name := storage.FullName(h.Database, h.Name)
			m.keys[name], m.taken[name] = true, true
		}
		return l.ctx.Err()
	})
}

// mergeQueue gives a queue its number in the folder, and reports whether the folder has it: then
// its own settings stay.
func (l *loader) mergeQueue(q *storage.Queue) (known bool, err error) {
	if q.Settings != nil {
		if err := l.mergeList(); err != nil {
			return false, err
		}
	}
	q.ID, err = l.number(q.Database, q.Name)
	return q.ID < l.merge.first, err
}

// number returns the number of the queue called name in a database. New ones get the next numbers.
func (l *loader) number(db uint8, name []byte) (uint32, error) {
	m, full := &l.merge, storage.FullName(db, name)
	if id, there := m.numbers[full]; there {
		return id, nil
	}
	switch {
	case len(m.numbers) >= storage.MaxQueues || m.bytes+len(name) > storage.MaxNameBytes:
		return 0, fmt.Errorf("the folder and the dump together have more than %d queues, or names of more than %d bytes, "+
			"and no server holds more: load the dump into a folder of its own", storage.MaxQueues, storage.MaxNameBytes)
	case l.marks.NextQueue == lastQueueMark:
		return 0, fmt.Errorf("the folder has no number for the queue %.100q: merge a dump of the folder, and then this one, into a new folder", name)
	}
	id := l.marks.NextQueue
	l.marks.NextQueue++
	m.numbers[full] = id
	m.bytes += len(name)
	return id, nil
}

// mergeList refuses packets or settings of a queue whose name is that of a string or hash of the
// folder.
func (l *loader) mergeList() error {
	q := l.queue
	if q != l.merge.checked && l.merge.keys[storage.FullName(q.Database, q.Name)] {
		return fmt.Errorf("the folder has a string or hash called %.100q, and the dump has a queue of that name with packets or settings: "+
			"load the dump into a folder of its own", q.Name)
	}
	l.merge.checked = q
	return nil
}

// mergePacket fits a packet and its delivery state into the folder: there they go by another
// sequence, and tokens mean nothing, so claims end. A queue of the origin's name is made if there
// is none: its own record may still come.
func (l *loader) mergePacket(id *storage.PacketID, p *storage.Packet, d *dump.Delivery) (err error) {
	if err := l.mergeList(); err != nil {
		return err
	}
	id.Seq += l.merge.base
	p.Identity = 0
	if d == nil {
		return nil
	}
	if d.State == storage.Claimed {
		d.State, d.Until = storage.Ready, 0
	}
	if d.Identity, d.Token = id.Seq, 0; d.OriginName == nil {
		return nil
	}
	next := l.marks.NextQueue
	if d.Origin, err = l.number(l.queue.Database, d.OriginName); l.marks.NextQueue > next {
		l.batch.PutQueue(storage.Queue{ID: d.Origin, Database: l.queue.Database, Name: d.OriginName})
	}
	return err
}
