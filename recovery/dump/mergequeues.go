package dump

import (
	"fmt"
	"math"

	"github.com/holdfast-queue/holdfast/storage"
)

// lastQueueMark is the last mark of the next queue, and above every number of a queue. With it
// numbers that are free again are given.
const lastQueueMark = math.MaxUint32

// mergeQueues are the queues of a folder that a dump is merged into, and gives numbers to new ones:
// the next ones, and when these have come to their end those that nothing in the folder has.
type mergeQueues struct {
	hasher  nameHasher
	numbers map[nameHash]uint32
	bytes   int    // of names
	next    uint32 // the mark of the next queue

	taken map[uint32]bool // numbers that are not free; nil until one is needed
	last  uint32          // of taken: the number that was given last
}

func newMergeQueues(next uint32) *mergeQueues {
	return &mergeQueues{hasher: newNameHasher(), numbers: make(map[nameHash]uint32), next: next}
}

// add notes a queue that is there.
func (m *mergeQueues) add(name []byte, id uint32) {
	m.numbers[m.hasher.of(name)] = id
	m.bytes += len(name)
	if m.taken != nil {
		m.taken[id] = true
	}
}

// room returns an error if so many new queues, with so many bytes of names, are more than a server holds.
func (m *mergeQueues) room(queues, bytes int) error {
	if len(m.numbers)+queues > storage.MaxQueues || m.bytes+bytes > storage.MaxNameBytes {
		return fmt.Errorf("the folder and the dump together have more than %d queues, or names of more than %d bytes, "+
			"and no server holds more: load the dump into a folder of its own", storage.MaxQueues, storage.MaxNameBytes)
	}
	return nil
}

// has reports whether there is a queue called name.
func (m *mergeQueues) has(name []byte) bool {
	_, there := m.numbers[m.hasher.of(name)]
	return there
}

// number returns the number of the queue called name, which is new if it was not there. Packets of
// the folder are asked for only when the next numbers have come to their end.
func (m *mergeQueues) number(name []byte, packets func(func(storage.PacketID, *storage.Meta) error) error) (id uint32, fresh bool, err error) {
	if id, there := m.numbers[m.hasher.of(name)]; there {
		return id, false, nil
	}
	if err := m.room(1, len(name)); err != nil {
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
