package load

import (
	"context"
	"fmt"
	"math"

	"github.com/holdfast-queue/holdfast/recovery/dump"
	"github.com/holdfast-queue/holdfast/storage"
)

// lastQueueMark is the last mark of the next queue: above every number that a queue can have.
const lastQueueMark = math.MaxUint32

// mergeQueues are the queues of a folder that a dump is merged into. New ones get the next numbers.
type mergeQueues struct {
	numbers map[string]uint32 // by full name
	bytes   int               // of names
	next    uint32            // the mark of the next queue
}

func newMergeQueues(next uint32) *mergeQueues {
	return &mergeQueues{numbers: make(map[string]uint32), next: next}
}

func (m *mergeQueues) add(db uint8, name []byte, id uint32) {
	m.numbers[storage.FullName(db, name)] = id
	m.bytes += len(name)
}

// checkRoom returns an error if the folder cannot take so many new queues, with names of so many
// bytes.
func (m *mergeQueues) checkRoom(queues, bytes int) error {
	switch {
	case len(m.numbers)+queues > storage.MaxQueues || m.bytes+bytes > storage.MaxNameBytes:
		return fmt.Errorf("the folder and the dump together have more than %d queues, or names of more than %d bytes, "+
			"and no server holds more: load the dump into a folder of its own", storage.MaxQueues, storage.MaxNameBytes)
	case queues > int(lastQueueMark-m.next):
		return fmt.Errorf("the folder has numbers for %d more queues and the dump has %d or more new ones: "+
			"merge a dump of the folder, and then this one, into a new folder", lastQueueMark-m.next, queues)
	}
	return nil
}

// has reports whether there is a queue called name in a database.
func (m *mergeQueues) has(db uint8, name []byte) bool {
	_, there := m.numbers[storage.FullName(db, name)]
	return there
}

// number returns the number of the queue called name in a database, which is fresh if it was not
// there.
func (m *mergeQueues) number(db uint8, name []byte) (id uint32, fresh bool, err error) {
	if id, there := m.numbers[storage.FullName(db, name)]; there {
		return id, false, nil
	}
	if err := m.checkRoom(1, len(name)); err != nil {
		return 0, false, err
	}
	id = m.next
	m.next++
	m.add(db, name, id)
	return id, true, nil
}

// prepareMerge makes room for the sequences of the dump above those of the folder. They keep their
// distances, so their order stays and no list of them is needed.
func (l *loader) prepareMerge(ctx context.Context, m storage.Marks) error {
	const last = 1<<64 - 1 - dump.SequenceMargin
	span := l.marks.NextSeq - l.marks.LowSeq - 1
	if l.state.Base > last-span {
		return fmt.Errorf("the folder's next sequence is %d and the dump needs %d from there on, which is more than there are: load it into a folder of its own", l.state.Base, span)
	}
	l.marks = storage.Marks{NextSeq: l.state.Base + span, LowSeq: m.LowSeq, NextQueue: m.NextQueue, LastKey: m.LastKey}
	l.names = newMergeQueues(m.NextQueue)
	return l.store.Queues(func(q storage.Queue) error {
		l.names.add(q.Database, q.Name, q.ID)
		return ended(ctx, int64(len(l.names.numbers)))
	})
}

// isNew says that the folder did not have a queue of that number before the load.
func (l *loader) isNew(id uint32) bool { return l.state.QueueBase > 0 && id >= l.state.QueueBase }

// merge fits a packet and its delivery state into the folder: there they go by another sequence,
// and tokens mean nothing, so claims end. A queue of the origin's name is made if there is none:
// its own record may still come.
func (l *loader) merge(db uint8, id *storage.PacketID, p *storage.Packet, d *dump.Delivery) (err error) {
	id.Seq = l.merged(id.Seq)
	p.Identity = 0
	if d == nil {
		return nil
	}
	if d.State == storage.Claimed {
		d.State, d.Until = storage.Ready, 0
	}
	d.Identity, d.Token = id.Seq, 0
	if d.OriginName == nil {
		return nil
	}
	fresh := false
	if d.Origin, fresh, err = l.names.number(db, d.OriginName); fresh {
		l.batch.PutQueue(storage.Queue{ID: d.Origin, Database: db, Name: d.OriginName})
		l.marks.NextQueue = l.names.next
	}
	return err
}

// merged returns the sequence that a packet of the dump gets in a merge.
func (l *loader) merged(seq uint64) uint64 {
	return l.state.Base + (seq - l.in.Marks().LowSeq - 1)
}
