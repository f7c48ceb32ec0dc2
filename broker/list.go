package broker

import (
	"fmt"
	"slices"

	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/storage"
)

// ListPriority is the priority of a list's packets: the middle of what pinpriq can say.
const ListPriority = 128

// A list is a queue whose packets are seen in order: the best priority first, the newest of it at
// the left. Only packets that a pop can select are its elements. Every call below is made inside
// Atomic. Any of them returns ErrWrongType if the name is that of a string or hash.

// findList returns the queue called name and how many elements it has. It is nil if there is none.
func (b *Broker) findList(name []byte) (q *queue, length int, err error) {
	if q, err = b.findQueue(name); q == nil || err != nil {
		return nil, 0, err
	}
	return q, b.ix.Counts(q.ix).Ready, nil
}

// useList returns the queue called name, which is made if it is not known. The queue gets packets
// now, as l says, unless it does not take them in.
func (tx *Tx) useList(name []byte, l load) (*queue, error) {
	b := tx.b
	if err := tx.beginPut(); err != nil {
		return nil, err
	}
	q, err := b.makeQueue(name)
	if err != nil {
		return nil, err
	}
	if err := tx.checkPush(q, l); err != nil {
		return nil, err
	}
	b.define(q)
	return q, nil
}

// Len returns the number of elements; 0 for an unknown name.
func (tx *Tx) Len(name []byte) (int, error) {
	_, n, err := tx.b.findList(name)
	return n, err
}

// PushEnd adds values at an end of the list, one after the other, and returns the new length.
// Waiters get them after the Atomic.
func (tx *Tx) PushEnd(name []byte, end End, values [][]byte) (length int, err error) {
	b, bytes := tx.b, 0
	for _, v := range values {
		if err := b.checkSize(name, len(v)); err != nil {
			return 0, err
		}
		bytes += len(v)
	}
	q, err := tx.useList(name, load{len(values), int64(bytes), ListPriority})
	if err != nil {
		return 0, err
	}
	for _, v := range values {
		b.insert(q, ListPriority, end, &Packet{Payload: v, EnqueuedAt: tx.now}, tx.now)
	}
	length = b.ix.Counts(q.ix).Ready
	b.deliverQueue(q)
	return length, nil
}

// Range replies to c with the n elements from position from on, counted from the left; it takes
// none. The list has that many: Len tells. If some cannot be read there are fewer.
func (tx *Tx) Range(c *Conn, name []byte, from, n int, tag Tag) error {
	b := tx.b
	q, length, err := b.findList(name)
	if err != nil {
		return err
	}
	if from < 0 || from+n > length {
		return fmt.Errorf("%w: %d elements from %d on, the list has %d", ErrNoElement, n, from, length)
	}
	first, bytes := len(b.open.records), 0
	if n > 0 {
		b.scratch = b.ix.Next(q.ix, index.Selection{}, from, n, b.scratch[:0])
		bytes = weightOf(b.scratch)
		if err := tx.useReply(bytes + n*packetOverhead); err != nil {
			return err
		}
		records, err := b.fetch(q, b.scratch, nil)
		for ; err != nil; records, err = b.fetch(q, b.scratch, nil) { // what is damaged is no element any more
			b.scratch = b.ix.Next(q.ix, index.Selection{}, from, n, b.scratch[:0])
		}
		b.open.appendRecords(records...)
	}
	b.queueReply(c, first, replyPackets, tag, bytes)
	return nil
}

// SetAt puts a value in the place of the element at a position; ok is false if there is none. The
// value has no key and the element's expiry.
func (tx *Tx) SetAt(name []byte, at int, value []byte) (ok bool, err error) {
	b := tx.b
	q, length, err := b.findList(name)
	if err != nil || at < 0 || at >= length {
		return false, err
	}
	b.scratch = b.ix.Next(q.ix, index.Selection{}, at, 1, b.scratch[:0])
	p := b.scratch[0]
	if err := b.checkSize(name, len(value)); err != nil {
		return false, err
	}
	if err := tx.beginPut(); err != nil {
		return false, err
	}
	if err := tx.checkPush(q, load{bytes: int64(len(value)) - int64(p.Size)}); err != nil {
		return false, err
	}
	b.replace(q, p, &Packet{Payload: value, Expiry: p.Expiry, EnqueuedAt: tx.now}, tx.now)
	b.deliverQueue(q) // a subscriber may take this value, and not the one before
	return true, nil
}

// replace puts a packet in the place of another, whose expiry it has.
func (b *Broker) replace(q *queue, old index.Packet, p *Packet, now int64) {
	id, hash, op := q.packet(old), setHash(p), 0
	b.leaveConsumer(old)
	if old.HasUnique {
		b.endUnique(q, old.Identity)
	}
	if at, ok := b.open.puts.find(id); ok {
		b.open.ops.Cancel(at)
		b.deleteDelivery(old)
		op = b.open.ops.Put(id, p)
	} else {
		op = b.open.ops.Replace(id, p, removed(old))
	}
	b.open.puts.add(id, op)
	b.ix.Remove(old.ID)
	b.ix.Push(b.entry(q, id, hash, p, op), now) // there is room: one has just gone
	b.changed(q)
}

// Find appends to dst the positions of elements that equal value: at most max if that is not 0,
// counted from the left, or from the right end leftwards if end is Oldest. An element with a key is
// passed over.
func (tx *Tx) Find(name, value []byte, end End, max int, dst []int) ([]int, error) {
	b := tx.b
	if _, err := b.findValue(name, value, end, max); err != nil {
		return dst, err
	}
	at := 0
	for i, p := range b.scratch {
		if i == 0 {
			at = b.ix.Position(p.ID)
		} else {
			at += b.ix.Distance(b.scratch[i-1].ID, p.ID)
		}
		dst = append(dst, at)
	}
	return dst, nil
}

// findValue leaves in b.scratch the elements of a list that equal value, at most max if that is not
// 0, from an end on. It returns the queue, nil if there is none.
func (b *Broker) findValue(name, value []byte, end End, max int) (*queue, error) {
	b.scratch = b.scratch[:0]
	q, err := b.findQueue(name)
	if q != nil {
		b.scratch = b.ix.FindValue(q.ix, storage.ValueHash(value), end, max, b.scratch)
		b.scratch = slices.DeleteFunc(b.scratch, func(p index.Packet) bool { return int(p.Size) != len(value) })
	}
	return q, err
}

// RemoveValue deletes elements that equal value, at most max if that is not 0, from an end on, and
// returns how many. An element with a key is passed over.
func (tx *Tx) RemoveValue(name, value []byte, end End, max int) (int, error) {
	b := tx.b
	q, err := b.findValue(name, value, end, max)
	if err == nil && len(b.scratch) > 0 {
		err = tx.beginTake()
	}
	if err != nil || len(b.scratch) == 0 {
		return 0, err
	}
	b.dropNow(q, b.scratch)
	return len(b.scratch), nil
}
