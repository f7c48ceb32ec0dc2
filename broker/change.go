package broker

import (
	"github.com/holdfast-queue/holdfast/index"
)

// DeletePackets deletes packets of a queue by their ids, whatever their state, and returns how many
// there were. It brings a Deletes for each.
func (tx *Tx) DeletePackets(name []byte, ids []ID) (n int, err error) {
	if err := tx.beginTake(Room{Deletes: len(ids)}); err != nil {
		return 0, err
	}
	b := tx.b
	q, err := b.findQueue(name)
	if q == nil || err != nil {
		return 0, err
	}
	for _, id := range ids {
		if p, ok := b.find(q, id); ok {
			b.ix.Remove(p.ID)
			b.deletePacket(q, p)
			n++
		}
	}
	if n > 0 {
		b.changed(q)
	}
	return n, nil
}

// MovePackets moves packets to another queue, with their priority, age and state, and returns how
// many there were. Claimed ones stay. It brings what MoveRoom says.
func (tx *Tx) MovePackets(name []byte, ids []ID, to []byte) (n int, err error) {
	if err := tx.begin(tx.MoveRoom(name, ids, to)); err != nil {
		return 0, err
	}
	b := tx.b
	q, err := b.findQueue(name)
	if q == nil || err != nil {
		return 0, err
	}
	packets := tx.movable(q, ids)
	if len(packets) == 0 {
		return 0, nil
	}
	if err := tx.moveAll(q, packets, to); err != nil {
		return 0, err
	}
	return len(packets), nil
}

// moveAll moves packets of a queue to another, or the same: all of them, or none.
func (tx *Tx) moveAll(q *queue, packets []index.Packet, to []byte) error {
	if err := tx.pushable(); err != nil {
		return err
	}
	b := tx.b
	target, err := b.makeQueue(to)
	if err != nil || target == q {
		return err
	}
	if err := tx.checkMoveIn(q, target, packets...); err != nil {
		return err
	}
	for _, p := range packets {
		id := q.packet(p)
		id.Queue = target.id
		b.moveTo(q, p, target, id, p.Expiry)
	}
	b.deliverQueue(target)
	return nil
}

// movable returns the packets of a queue with some ids that are not claimed, each once.
func (tx *Tx) movable(q *queue, ids []ID) (packets []index.Packet) {
	seen := make(map[ID]bool, len(ids))
	for _, id := range ids {
		if p, ok := tx.b.find(q, id); ok && p.State != Claimed && !seen[id] {
			seen[id] = true
			packets = append(packets, p)
		}
	}
	return packets
}

// MoveRoom is what MovePackets brings.
func (tx *Tx) MoveRoom(name []byte, ids []ID, to []byte) Room {
	q := tx.b.queueNamed(name)
	if q == nil {
		return Room{}
	}
	room := Room{Records: 1, Bytes: len(to)}
	for _, p := range tx.movable(q, ids) {
		room = room.Plus(Room{Records: 1, Bytes: weight(p), Deletes: 1})
	}
	return room
}

// SetPriority gives a packet another priority, in any state; ok is false if the queue has none with
// that id, or it expired while it was claimed. A packet without a key cannot have priority 0:
// ErrNoKey. ErrUnknownQueue. It brings what PriorityRoom says.
func (tx *Tx) SetPriority(name []byte, id ID, priority uint32) (ok bool, err error) {
	if err := tx.begin(tx.PriorityRoom(name, id)); err != nil {
		return false, err
	}
	b := tx.b
	q, err := b.knownQueue(name)
	if err != nil {
		return false, err
	}
	p, ok := b.find(q, id)
	if !ok || b.expired(p) { // the store may have dropped its record
		return false, nil
	}
	if p.Priority == priority {
		return true, nil
	}
	if _, keyed := b.ix.Key(p.ID, nil); priority == 0 && !keyed {
		return false, ErrNoKey
	}
	if err := tx.pushable(); err != nil {
		return false, err
	}
	to := q.packet(p)
	to.Priority = priority
	b.moveTo(q, p, q, to, p.Expiry)
	b.deliverQueue(q)
	return true, nil
}

// PriorityRoom is what SetPriority brings.
func (tx *Tx) PriorityRoom(name []byte, id ID) Room {
	q := tx.b.queueNamed(name)
	if q == nil {
		return Room{}
	}
	p, ok := tx.b.find(q, id)
	if !ok {
		return Room{}
	}
	return Room{Records: 1, Bytes: weight(p), Deletes: 1}
}
