package broker

import (
	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// A unique push adds a packet unless another one of the queue has its id. The index says which one
// that is (index.Holder). On disk a record of its own says it (content.Unique).
//   - Without a window it goes with the packet, also to another queue. A packet that is dead or
//     done keeps its record, and does not hold the id.
//   - Until a claim it goes with the first claim, whatever becomes of the packet then.
//   - With a window it goes when that is over, or with the queue, whatever becomes of the packet.
//
// A start may find records that nothing needs, which are garbage.

// unique returns the id that a packet keeps, nil if it has none. It is valid until the next call.
func (m *Machine) unique(p index.Packet) []byte {
	unique, ok := m.ix.Unique(p.ID, m.uniqueScratch[:0])
	if !ok {
		return nil
	}
	m.uniqueScratch = unique
	return unique
}

// putUnique writes the record of a packet that has an id.
func (m *Machine) putUnique(q *queue, identity uint64, unique []byte, untilClaim bool) {
	if len(unique) > 0 {
		m.open.ops.PutUnique(&content.Unique{UniqueID: content.UniqueID{Queue: q.id, Identity: identity}, ID: unique, UntilClaim: untilClaim})
	}
}

// moveUnique takes the record of a packet along to another queue.
func (m *Machine) moveUnique(q *queue, p index.Packet, to *queue) {
	if p.HasUnique && to != q {
		m.open.ops.DeleteUnique(content.UniqueID{Queue: q.id, Identity: p.Identity})
		m.putUnique(to, p.Identity, m.unique(p), p.UntilClaim)
	}
}

// beginWork frees the id of a packet that is claimed, if it has that until then.
func (m *Machine) beginWork(q *queue, p index.Packet) {
	if p.UntilClaim {
		m.endUnique(q, p.Identity)
		m.ix.FreeUnique(p.ID)
	}
}

// endUnique deletes the record of a packet that is gone, or of a window.
func (m *Machine) endUnique(q *queue, identity uint64) {
	if id := (content.UniqueID{Queue: q.id, Identity: identity}); !m.open.ops.CancelUnique(id) {
		m.open.ops.DeleteUnique(id)
	}
}
