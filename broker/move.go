package broker

import (
	"fmt"

	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// A packet that moves keeps its record as it is: key, payload, times and attempts. In the store a
// move is a delete and a put.

// move gives a packet a new place: at an end of a priority of the queue to, which may be its own.
func (m *Machine) move(q *queue, p index.Packet, record []byte, to *queue, priority uint32, end End) (moved index.Packet) {
	return m.moveTo(q, p, record, to, content.PacketID{Queue: to.id, Priority: priority, Seq: m.nextSeq(end)}, p.Expiry)
}

// moveTo is move to a place, which may be the same with another expiry. It returns the packet as it
// is then.
func (m *Machine) moveTo(q *queue, p index.Packet, record []byte, to *queue, id content.PacketID, expiry int64) (moved index.Packet) {
	m.tellMove(q, p, to, id.Priority)
	m.define(to)
	if m.ix.Counts(to.ix).Damaged > 0 && m.hasDamaged(to, id) {
		id.Seq = m.nextSeq(Newest)
	}
	m.moveUnique(q, p, to)
	there := p
	there.Stored, there.HasUnique = 0, false // they stay
	m.deletePacket(q, there)
	record = m.putRecord(p, record, id, expiry)
	moved = p
	moved.Queue, moved.Priority, moved.Seq, moved.Expiry = to.ix, id.Priority, id.Seq, expiry
	moved.Flags = content.Flags(expiry != 0, p.Flags&content.FlagLarge != 0)
	m.ix.Move(moved)
	moved.Ref = m.cache.Add(id.Seq, record)
	m.ix.SetRef(moved.ID, id.Seq, moved.Ref)
	if to != q {
		m.changed(q)
	}
	m.changed(to)
	return moved
}

// hasDamaged says that a queue has a packet at a place that a start found twice in the folder.
func (m *Machine) hasDamaged(q *queue, at content.PacketID) bool {
	for p := range m.ix.Each(q.ix, Damaged, index.Place{Priority: at.Priority, Seq: at.Seq - 1}, nil, nil) {
		return p.Priority == at.Priority && p.Seq == at.Seq
	}
	return false
}

// tellMove tells those who tail the queues that a packet gets another queue or priority.
func (m *Machine) tellMove(q *queue, p index.Packet, to *queue, priority uint32) {
	if q == to && p.Priority == priority {
		return
	}
	there := p
	there.Priority = priority
	if q == to {
		m.tail(q, there, EventMoved)
		return
	}
	if q.tailed {
		m.tailEvent(q, p, Event{Kind: EventMoved, To: to.entry.Name()})
	}
	m.tail(to, there, EventArrived)
}

// putRecord puts a packet under a new id, with the record that p has elsewhere. That is changed
// where it has to say its identity or another expiry. It returns the record as the batch has it.
func (m *Machine) putRecord(p index.Packet, record []byte, to content.PacketID, expiry int64) []byte {
	if identity := ownIdentity(p.Identity, to.Seq); expiry != p.Expiry || identity != ownIdentity(p.Identity, p.Seq) {
		changed, err := content.AppendChanged(m.patched[:0], record, expiry, identity)
		if err != nil { // fetch has decoded what this program did not write
			panic(fmt.Sprintf("broker: record of packet %v: %v", to, err))
		}
		m.patched, record = changed, changed
	}
	op := m.open.ops.PutRecord(to, record)
	m.open.puts.add(to, op)
	return m.open.ops.Record(op)
}

// ownIdentity returns the identity that a packet's record names at a sequence: none if they are
// equal.
func ownIdentity(identity, seq uint64) uint64 {
	if identity == seq {
		return 0
	}
	return identity
}

// mayMove counts packets that are about to move or to be retained. ErrTooManyChanged.
func (tx *Tx) mayMove(packets ...index.Packet) error { return tx.change(written(packets...)) }

// written returns how many changes it counts as to write packets again. One packet may always be.
func written(packets ...index.Packet) (n int) {
	for _, p := range packets {
		n += min(1+weight(p)/writtenUnit, MaxChanged)
	}
	return n
}
