package broker

import (
	"slices"

	"github.com/holdfast-queue/holdfast/index"
)

// DeletePackets deletes packets of a queue by their ids, whatever their state, and returns how many
// there were.
func (tx *Tx) DeletePackets(name []byte, ids []ID) (n int, err error) {
	if err := tx.beginTake(); err != nil {
		return 0, err
	}
	m := tx.m
	q, err := m.findQueue(name)
	if q == nil || err != nil {
		return 0, err
	}
	for _, id := range ids {
		if p, ok := m.find(q, id); ok {
			m.ix.Remove(p.ID)
			m.deletePacket(q, p)
			n++
		}
	}
	if n > 0 {
		m.changed(q)
	}
	return n, nil
}

// MovePackets moves packets to another queue, with their priority, age and state, and returns how
// many there were. Claimed and damaged ones stay.
func (tx *Tx) MovePackets(name []byte, ids []ID, to []byte) (n int, err error) {
	if err := tx.begin(); err != nil {
		return 0, err
	}
	m := tx.m
	q, err := m.findQueue(name)
	if q == nil || err != nil {
		return 0, err
	}
	packets := tx.movable(q, ids)
	if len(packets) == 0 {
		return 0, nil
	}
	return tx.moveAll(q, packets, to)
}

// moveAll moves packets of a queue to another, or the same: all of them, or none, but for those
// that cannot be read. It returns how many have moved.
func (tx *Tx) moveAll(q *queue, packets []index.Packet, to []byte) (n int, err error) {
	if err := tx.CanStore(); err != nil {
		return 0, err
	}
	m := tx.m
	target, err := m.makeQueue(to)
	if err != nil {
		return 0, err
	}
	if target == q {
		return len(packets), nil
	}
	if err := tx.mayMove(packets); err != nil {
		return 0, err
	}
	records, err := m.fetchToMove(q, packets)
	if err != nil {
		missing := -1
		packets = slices.DeleteFunc(packets, func(index.Packet) bool { missing++; return records[missing] == nil })
		records = slices.DeleteFunc(records, func(r []byte) bool { return r == nil })
	}
	if err := tx.checkMoveIn(q, target, packets...); err != nil {
		return 0, err
	}
	for i, p := range packets {
		id := q.packet(p)
		id.Queue = target.id
		m.moveTo(q, p, records[i], target, id, p.Expiry)
	}
	return len(packets), nil
}

// movable says that a packet may move to another queue.
func movable(p index.Packet) bool { return p.State != Claimed && p.State != Damaged }

// movable returns the packets of a queue with some ids that may move, each once.
func (tx *Tx) movable(q *queue, ids []ID) (packets []index.Packet) {
	seen := make(map[ID]bool, len(ids))
	for _, id := range ids {
		if p, ok := tx.m.find(q, id); ok && movable(p) && !seen[id] {
			seen[id] = true
			packets = append(packets, p)
		}
	}
	return packets
}

// SetPriority gives a packet another priority, in any state; ok is false if the queue has none with
// that id, or it expired while it was claimed. A packet without a key cannot have priority 0:
// ErrNoKey. ErrUnknownQueue.
func (tx *Tx) SetPriority(name []byte, id ID, priority uint32) (ok bool, err error) {
	if err := tx.begin(); err != nil {
		return false, err
	}
	m := tx.m
	q, err := m.knownQueue(name)
	if err != nil {
		return false, err
	}
	p, ok := m.find(q, id)
	if !ok || m.expired(p) { // the store may have dropped its record
		return false, nil
	}
	if p.Priority == priority {
		return true, nil
	}
	if _, keyed := m.ix.Key(p.ID, nil); priority == 0 && !keyed {
		return false, ErrNoKey
	}
	if err := tx.CanStore(); err != nil {
		return false, err
	}
	record, err := m.record(q, p)
	if err != nil {
		return false, err
	}
	to := q.packet(p)
	to.Priority = priority
	m.moveTo(q, p, record, q, to, p.Expiry)
	return true, nil
}
