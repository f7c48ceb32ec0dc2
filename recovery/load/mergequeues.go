package load

import (
	"context"
	"fmt"
	"math"

	"github.com/holdfast-queue/holdfast/recovery/dump"
	"github.com/holdfast-queue/holdfast/storage"
)

// lastQueueMark is the last mark of the next queue, and above every number of a queue. With it
// numbers that are free again are given.
const lastQueueMark = math.MaxUint32

// mergeQueues are the queues of a folder that a dump is merged into, and gives numbers to new ones:
// the next ones, and when these have come to their end those that nothing in the folder has.
type mergeQueues struct {
	numbers map[string]uint32 // by name
	bytes   int               // of names
	next    uint32            // the mark of the next queue

	taken map[uint32]bool // numbers that are not free; nil until one is needed
	last  uint32          // of taken: the number that was given last
}

func newMergeQueues(next uint32) *mergeQueues {
	return &mergeQueues{numbers: make(map[string]uint32), next: next}
}

// add notes a queue that is there.
func (m *mergeQueues) add(name []byte, id uint32) {
	m.numbers[string(name)] = id
	m.bytes += len(name)
	if m.taken != nil {
		m.taken[id] = true
	}
}

// checkRoom returns an error if so many new queues, with so many bytes of names, are more than a
// server holds.
func (m *mergeQueues) checkRoom(queues, bytes int) error {
	if len(m.numbers)+queues > storage.MaxQueues || m.bytes+bytes > storage.MaxNameBytes {
		return fmt.Errorf("the folder and the dump together have more than %d queues, or names of more than %d bytes, "+
			"and no server holds more: load the dump into a folder of its own", storage.MaxQueues, storage.MaxNameBytes)
	}
	return nil
}

// has reports whether there is a queue called name.
func (m *mergeQueues) has(name []byte) bool {
	_, there := m.numbers[string(name)]
	return there
}

// number returns the number of the queue called name, which is new if it was not there. Packets of
// the folder are asked for only when the next numbers have come to their end.
func (m *mergeQueues) number(name []byte, packets func(func(storage.PacketID, *storage.Meta) error) error) (id uint32, fresh bool, err error) {
	if id, there := m.numbers[string(name)]; there {
		return id, false, nil
	}
	if err := m.checkRoom(1, len(name)); err != nil {
		return 0, false, err
	}
	if id = m.next; id < lastQueueMark {
		m.next++
	} else if id, err = m.free(packets); err != nil {
		return 0, false, err
	}
	m.add(name, id)
	return id, true, nil
}

// free returns a number that no queue has, and no packet either: those whose queue is not defined
// would be in the new queue else.
func (m *mergeQueues) free(packets func(func(storage.PacketID, *storage.Meta) error) error) (uint32, error) {
	if m.taken == nil {
		m.taken = make(map[uint32]bool, len(m.numbers))
		for _, id := range m.numbers {
			m.taken[id] = true
		}
		err := packets(func(id storage.PacketID, _ *storage.Meta) error {
			m.taken[id.Queue] = true
			return nil
		})
		if err != nil {
			m.taken = nil
			return 0, fmt.Errorf("read packets: %w", err)
		}
	}
	for ok := false; !ok; ok = !m.taken[m.last] { // there are far more numbers than queues
		if m.last++; m.last == lastQueueMark {
			m.last = 1
		}
	}
	return m.last, nil
}

// prepareMerge makes room for the sequences of the dump above those of the folder. They keep their
// distances, so their order stays and no list of them is needed.
func (l *loader) prepareMerge(ctx context.Context, m storage.Marks) error {
	const last = 1<<64 - 1 - dump.SequenceMargin
	span := l.marks.NextSeq - l.marks.LowSeq - 1
	if l.state.Base > last-span {
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
	return l.state.Base + (seq - l.in.Marks().LowSeq - 1)
}
