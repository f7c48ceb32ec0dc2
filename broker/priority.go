package broker

import (
	"fmt"

	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// UpdatePriorityRequest is a packet to push or to move.
type UpdatePriorityRequest struct {
	Queue []byte
	Key   []byte // never nil; an empty key is a key like any other
	// To returns the priority that the packet is to have: 1 is best, 0 is never selected. It gets
	// the one that the packet has, or known false if the queue has no packet with this key.
	To func(old uint32, known bool) uint32
}

// UpdatePriority gives the packet with a key a new priority. It moves to the newest end of that,
// and stays where it is if the priority does not change. If the queue has no packet with the key,
// but for those that are done, one is pushed that is nothing but the key. ErrShared if several
// packets have the key.
func (tx *Tx) UpdatePriority(r UpdatePriorityRequest) error {
	m, size := tx.m, len(r.Queue)+len(r.Key)
	if size > MaxRecord {
		return fmt.Errorf("%w: queue name and key have %d bytes together, the limit is %d", ErrTooLarge, size, MaxRecord)
	}
	q, err := tx.open(r.Queue, changes)
	if err != nil {
		return err
	}
	if q != nil {
		switch p, n := m.only(q, r.Key); n {
		case 1:
			return tx.changePriority(q, p, r)
		case 2:
			return ErrShared
		}
	}
	_, err = tx.push(&PushRequest{Queue: r.Queue, Priority: r.To(0, false), Key: r.Key}, [][]byte{nil})
	return err
}

// changePriority moves a packet to its new priority.
func (tx *Tx) changePriority(q *queue, p index.Packet, r UpdatePriorityRequest) error {
	to := r.To(p.Priority, true)
	if to == p.Priority {
		return nil
	}
	if err := tx.CanStore(); err != nil {
		return err
	}
	m := tx.m
	if isBare(p, r.Key) {
		tx.moveBare(q, p, to, r.Key)
	} else {
		record, err := m.record(q, p)
		if err != nil {
			return err
		}
		m.move(q, p, record, q, to, Newest)
	}
	return nil
}

// isBare says that the index holds all of a packet that still matters, but when it was enqueued.
func isBare(p index.Packet, key []byte) bool {
	return p.Expiry == 0 && int(p.Size) == len(key) && p.TagBytes == 0
}

// moveBare moves a bare packet without its record: most moves would have to read that from the
// disk. The packet counts as enqueued now.
func (tx *Tx) moveBare(q *queue, p index.Packet, priority uint32, key []byte) {
	m := tx.m
	m.tellMove(q, p, q, priority)
	there := p
	there.Stored, there.HasUnique = 0, false // they stay
	m.deletePacket(q, there)
	id := content.PacketID{Queue: q.id, Priority: priority, Seq: m.nextSeq(Newest)}
	bare := Packet{Key: key, EnqueuedAt: tx.now, Identity: ownIdentity(p.Identity, id.Seq)}
	if p.State == index.Delayed {
		bare.NotBefore = p.Until
	}
	op := m.open.ops.Put(id, &bare)
	m.open.puts.add(id, op)
	p.Priority, p.Seq = priority, id.Seq
	m.ix.Move(p)
	m.ix.SetRef(p.ID, id.Seq, m.cache.Add(id.Seq, m.open.ops.Record(op)))
	m.changed(q)
}

// PopKey takes the best packet of the queue, at the given end of its priority, with all that have
// its key. It appends that key to dst, and gives nobody the payloads. ok is false if none is
// selectable. accept, if not nil, sees the key first; if it returns an error, PopKey takes nothing
// and returns that. ErrNoKey if the best packet has no key.
func (tx *Tx) PopKey(name []byte, end End, accept func(key []byte) error, dst []byte) (key []byte, ok bool, err error) {
	m, s := tx.m, Selection{End: end, Group: true, unread: true}
	t, err := tx.take(name, s, MaxGroup)
	if len(t.packets) == 0 || err != nil {
		return dst, false, err
	}
	if key, ok = m.ix.Key(t.packets[0].ID, dst); !ok {
		return dst, false, ErrNoKey
	}
	if accept != nil {
		if err := accept(key[len(dst):]); err != nil {
			return dst, false, err
		}
	}
	tx.useRole(t.q, consumerRole)
	tx.remove(t, s)
	return key, true, nil
}

// PeekKey appends to dst the key that PopKey would take, with the same errors, and takes nothing.
func (tx *Tx) PeekKey(name []byte, end End, dst []byte) (key []byte, ok bool, err error) {
	q, err := tx.open(name, looks)
	if q == nil || err != nil {
		return dst, false, err
	}
	m, s := tx.m, &Selection{End: end}
	selection := m.selection(q, s)
	selection.Limits = false
	best, err := m.selectAlive(q, s, &selection)
	if len(best) == 0 {
		return dst, false, err
	}
	if key, ok = m.ix.Key(best[0].ID, dst); !ok {
		return dst, false, ErrNoKey
	}
	return key, true, nil
}

// PriorityOf returns the priority of the packet with a key; ok is false if the queue has no packet
// with it. ErrShared as for UpdatePriority.
func (tx *Tx) PriorityOf(name, key []byte) (priority uint32, ok bool, err error) {
	q, err := tx.open(name, looks)
	if q == nil || err != nil {
		return 0, false, err
	}
	p, n := tx.m.only(q, key)
	if n > 1 {
		return 0, false, ErrShared
	}
	return p.Priority, n == 1, nil
}
