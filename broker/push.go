package broker

import (
	"fmt"
	"time"

	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/storage"
)

// PushRequest is a packet to push.
type PushRequest struct {
	Queue    []byte
	Priority uint32        // 1 is best; 0 is never selected (pinpriq document, section push)
	TTL      time.Duration // 0 never expires; cut to whole milliseconds, at least one
	Key      []byte        // nil: belongs to no key group; an empty key is a key like any other
	Payload  []byte
}

// Push adds a packet at the newest end of its priority. It is on disk when the reply of any later
// call is handed out, whoever made that. The request's bytes are copied.
func (tx *Tx) Push(r PushRequest) error {
	size := len(r.Queue) + len(r.Key) + len(r.Payload)
	if size > tx.b.limits.record {
		return fmt.Errorf("%w: queue name, key and payload have %d bytes together, the limit is %d", ErrTooLarge, size, tx.b.limits.record)
	}
	if err := tx.begin(Room{Records: 2, Bytes: size}); err != nil { // the packet, and its queue
		return err
	}
	if err := tx.pushable(); err != nil {
		return err
	}
	p := Packet{Key: r.Key, Payload: r.Payload, EnqueuedAt: tx.now}
	if r.TTL > 0 {
		p.Expiry = tx.now + max(1, r.TTL.Milliseconds())
	}
	return tx.push(r.Queue, r.Priority, &p)
}

// CanStore returns the error that a push or a write would get because of the disk's free space. It
// does not change within a transaction.
func (tx *Tx) CanStore() error { return tx.pushable() }

// pushable returns the error of a push that the disk's free space does not allow.
func (tx *Tx) pushable() error {
	switch level := tx.b.spaceLevel(tx.now); {
	case level >= storage.Stop:
		return ErrStopped
	case level >= storage.NoPush:
		return ErrNoSpace
	}
	return nil
}

// push adds p to the queue, which is made if it is not known, and delivers from that.
func (tx *Tx) push(name []byte, priority uint32, p *Packet) error {
	b := tx.b
	q, err := b.makeQueue(name)
	if err != nil {
		return err
	}
	b.define(q)
	if err := b.insert(q, priority, p, tx.now); err != nil {
		b.markEmpty(q)
		return err
	}
	b.deliverQueue(q)
	return nil
}

// insert puts p into the open batch, the cache and the index.
func (b *Broker) insert(q *queue, priority uint32, p *Packet, now int64) error {
	seq, op := b.put(q, priority, p)
	e := index.Entry{
		Queue:    q.ix,
		Wide:     storage.IsWide(len(p.Key), len(p.Payload)),
		Priority: priority,
		Seq:      seq,
		Key:      p.Key,
		Size:     uint32(len(p.Key) + len(p.Payload)),
		Expiry:   p.Expiry,
		Flags:    storage.Flags(p.Expiry != 0, storage.IsLarge(len(p.Payload)), false),
		Ref:      b.cache.add(seq, b.open.ops.Record(op)),
	}
	if b.ix.Push(e, now) == 0 {
		b.open.ops.Cancel(op)
		return ErrTooManyPackets
	}
	return nil
}

// put appends p to the open batch under a new sequence, the highest so far.
func (b *Broker) put(q *queue, priority uint32, p *Packet) (seq uint64, op int) {
	seq = b.marks.NextSeq
	b.marks.NextSeq++
	op = b.open.ops.Put(storage.PacketID{Queue: q.id, Priority: priority, Seq: seq}, p)
	b.open.pushes = append(b.open.pushes, int32(op))
	return seq, op
}
