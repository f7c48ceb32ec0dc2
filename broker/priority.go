package broker

import (
	"fmt"

	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/storage"
)

// This file works on bare packets only: a key and a priority, and no payload, tags or expiry,
// neither delayed nor claimed. The index holds all of a bare packet, so it is moved and handed out
// without its record, and how often it was claimed is kept. Any other packet is refused with
// ErrNotBare: what only its record holds would be lost. The limit goes when the storage can move a
// record as it is.

// UpdatePriorityRequest is a bare packet to push or to move.
type UpdatePriorityRequest struct {
	Queue []byte
	Key   []byte // never nil; an empty key is a key like any other
	// To returns the priority that the packet is to have: 1 is best, 0 is never selected. It gets
	// the one that the packet has, or known false if the queue has no packet with this key.
	To func(old uint32, known bool) uint32
}

// UpdatePriority pushes the bare packet with a key. If the queue has it, it moves to the newest end
// of its new priority, and stays where it is if that does not change. The move is in one batch.
// ErrNotBare if the packet is more than its key, ErrShared if others have the key.
func (tx *Tx) UpdatePriority(r UpdatePriorityRequest) error {
	size := len(r.Queue) + len(r.Key)
	if size > tx.b.limits.record {
		return fmt.Errorf("%w: queue name and key have %d bytes together, the limit is %d", ErrTooLarge, size, tx.b.limits.record)
	}
	if err := tx.begin(Room{Records: 2, Bytes: size}); err != nil {
		return err
	}
	b := tx.b
	if b.spaceLevel(tx.now) >= storage.Stop {
		return ErrStopped
	}
	if q := b.queues.find(r.Queue); q != nil {
		if p, n := b.ix.Only(q.ix, r.Key); n > 0 {
			switch {
			case n > 1:
				return ErrShared
			case !b.bare(p, r.Key):
				return ErrNotBare
			}
			return tx.move(q, p, r)
		}
	}
	to := r.To(0, false)
	if err := tx.pushable(); err != nil {
		return err
	}
	return tx.push(r.Queue, to, &Packet{Key: r.Key, EnqueuedAt: tx.now})
}

// move gives a bare packet of q its new priority. It counts as enqueued now.
func (tx *Tx) move(q *queue, p index.Packet, r UpdatePriorityRequest) error {
	to := r.To(p.Priority, true)
	if to == p.Priority {
		return nil
	}
	if err := tx.pushable(); err != nil {
		return err
	}
	b := tx.b
	b.dropRecord(q, p)
	seq, op := b.put(q, to, &Packet{Key: r.Key, EnqueuedAt: tx.now, Attempts: uint32(p.Attempts)})
	b.ix.Move(p.ID, to, seq)
	b.ix.SetRef(p.ID, seq, b.cache.add(seq, b.open.ops.Record(op)))
	b.deliverQueue(q) // with priority 0 no subscriber could take it
	return nil
}

// PopKey takes the best packet of the queue, at the given end of its priority, with all that have
// its key. It appends that key to dst. ok is false if none is selectable. accept, if not nil, sees
// the key first; if it returns an error, PopKey takes nothing and returns that. It also takes
// nothing if one of the packets is not bare (ErrNotBare) or more than MaxBareGroup have the key
// (ErrManyShare).
func (tx *Tx) PopKey(name []byte, end End, accept func(key []byte) error, dst []byte) (key []byte, ok bool, err error) {
	if err := tx.begin(Room{}); err != nil {
		return dst, false, err
	}
	b := tx.b
	if b.spaceLevel(tx.now) >= storage.Stop {
		return dst, false, ErrStopped
	}
	q := b.queues.find(name)
	if q == nil {
		return dst, false, nil
	}
	key, ok, err = b.bestKey(q, end, dst)
	if !ok || err != nil {
		return dst, false, err
	}
	if accept != nil {
		if err := accept(key[len(dst):]); err != nil {
			return dst, false, err
		}
	}
	if tx.atomic {
		if err := tx.use(Room{Deletes: len(b.scratch)}); err != nil {
			return dst, false, err
		}
	}
	for _, p := range b.scratch {
		b.ix.Remove(p.ID)
		b.dropRecord(q, p)
	}
	b.markEmpty(q)
	return key, true, nil
}

// PeekKey appends to dst the key that PopKey would take, with the same errors, and takes nothing.
func (tx *Tx) PeekKey(name []byte, end End, dst []byte) (key []byte, ok bool, err error) {
	if err := tx.begin(Room{}); err != nil {
		return dst, false, err
	}
	q := tx.b.queues.find(name)
	if q == nil {
		return dst, false, nil
	}
	return tx.b.bestKey(q, end, dst)
}

// PriorityOf returns the priority of the bare packet with a key; ok is false if the queue has no
// packet with it. ErrNotBare and ErrShared as for UpdatePriority.
func (tx *Tx) PriorityOf(name, key []byte) (priority uint32, ok bool, err error) {
	if err := tx.begin(Room{}); err != nil {
		return 0, false, err
	}
	q := tx.b.queues.find(name)
	if q == nil {
		return 0, false, nil
	}
	p, n := tx.b.ix.Only(q.ix, key)
	switch {
	case n == 0:
		return 0, false, nil
	case n > 1:
		return 0, false, ErrShared
	case !tx.b.bare(p, key):
		return 0, false, ErrNotBare
	}
	return p.Priority, true, nil
}

// bestKey appends to dst the key of the packet that q selects, and leaves in b.scratch the packets
// that a pop would take.
func (b *Broker) bestKey(q *queue, end End, dst []byte) (key []byte, ok bool, err error) {
	best, ok := b.ix.Best(q.ix, index.Selection{End: end})
	if !ok {
		return dst, false, nil
	}
	key, ok = b.ix.Key(best.ID, dst)
	if !ok {
		return dst, false, ErrNotBare
	}
	b.scratch = b.ix.Group(best.ID, index.Selection{Limit: index.Limit{Packets: MaxBareGroup + 1}}, b.scratch[:0])
	if len(b.scratch) > MaxBareGroup {
		return dst, false, ErrManyShare
	}
	for _, p := range b.scratch {
		if !b.bare(p, key[len(dst):]) {
			return dst, false, ErrNotBare
		}
	}
	return key, true, nil
}

// bare says that the packet is only this key and a priority.
func (b *Broker) bare(p index.Packet, key []byte) bool {
	return p.State == index.Ready && p.Expiry == 0 && int(p.Size) == len(key) && p.Flags&storage.FlagMore == 0
}

// dropRecord removes a packet from the store whose record no reply needs.
func (b *Broker) dropRecord(q *queue, p index.Packet) {
	if _, ok := b.open.pushed(p.Seq); ok {
		b.stats.cancelled.Add(1)
	}
	b.deletePacket(q, p)
}
