package broker

import (
	"fmt"
	"time"

	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/storage"
)

// Tx is the right to change queues: it holds the broker's lock, so the calls of one Do are one
// after the other in the order of the world, with nobody else's between them, unless the open
// batch is full and a call has to wait for the next. Valid only inside Do.
type Tx struct {
	b   *Broker
	now int64 // Unix milliseconds
}

// Do runs fn with the lock held. fn must not block or call the broker but through tx.
func (b *Broker) Do(fn func(tx *Tx) error) error {
	b.mu.Lock()
	tx := &b.tx
	*tx = Tx{b: b, now: b.clock()}
	err := fn(tx)
	wake := b.ripe()
	b.mu.Unlock()
	if wake {
		b.signal()
	}
	return err
}

// begin makes sure that the broker accepts calls, that nothing that is due is left undone, and
// that the open batch has room for one call that brings so many bytes to disk. It may wait for a
// fresh batch.
func (tx *Tx) begin(bytes int) error {
	b := tx.b
	for {
		if b.closing || b.failure != nil {
			return ErrClosed
		}
		if tx.advance() && !b.open.full(b.limits) && b.open.fits(b.limits, bytes) {
			b.trim()
			return nil
		}
		if b.level(tx.now) >= storage.Stop {
			return ErrStopped // the batch ahead may be waiting for room on the disk
		}
		b.signal()
		b.room.Wait()
		tx.now = b.clock()
	}
}

// advance does what is due by now: expired packets go, delayed and leased ones come back. It
// returns false if the batch was full before all was done.
func (tx *Tx) advance() bool {
	b := tx.b
	for {
		due, ok := b.ix.Deadline()
		if !ok || due > tx.now {
			return true
		}
		if b.open.full(b.limits) {
			return false
		}
		b.events = b.ix.Advance(tx.now, timersAtOnce, b.events[:0])
		for _, e := range b.events {
			q := b.queues.of(e.Packet.Queue)
			if e.Packet.Expiry != 0 && e.Kind == index.Expired {
				b.delete(q, e.Packet)
				b.retire(q)
				continue
			}
			b.deliver(q)
		}
	}
}

// PushRequest is a packet to push.
type PushRequest struct {
	Queue    []byte
	Priority uint32        // 1 is best; 0 is never selected (pinpriq document, section push)
	TTL      time.Duration // 0 never expires; counted in whole milliseconds
	Key      []byte        // nil: belongs to no key group; an empty key is a key like any other
	Payload  []byte
}

// Push adds a packet. It is on disk when a later reply to any consumer is handed out. The
// request's bytes are copied.
func (tx *Tx) Push(r PushRequest) error {
	size := len(r.Queue) + len(r.Key) + len(r.Payload)
	if size > tx.b.limits.record {
		return fmt.Errorf("%w: queue name, key and payload have %d bytes together, the limit is %d", ErrTooLarge, size, tx.b.limits.record)
	}
	if err := tx.begin(size); err != nil {
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

// pushable says whether the disk's free space allows pushes.
func (tx *Tx) pushable() error {
	switch level := tx.b.level(tx.now); {
	case level >= storage.Stop:
		return ErrStopped
	case level >= storage.NoPush:
		return ErrNoSpace
	}
	return nil
}

// push adds p to the queue, known or new, and to what its waiting subscribers are given.
func (tx *Tx) push(name []byte, priority uint32, p *Packet) error {
	b := tx.b
	q, err := b.makeQueue(name)
	if err != nil {
		return err
	}
	b.define(q)
	if err := b.insert(q, priority, p, tx.now); err != nil {
		return err
	}
	b.deliver(q)
	return nil
}

// insert puts p at the newest end of its priority: into the open batch, the cache, the index.
func (b *Broker) insert(q *queue, priority uint32, p *Packet, now int64) error {
	seq, op := b.put(q, priority, p)
	e := index.Entry{
		Queue:    q.ix,
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

// put appends p to the open batch, at the newest end of its priority.
func (b *Broker) put(q *queue, priority uint32, p *Packet) (seq uint64, op int) {
	seq = b.marks.NextSeq
	b.marks.NextSeq++
	op = b.open.ops.Put(storage.PacketID{Queue: q.id, Priority: priority, Seq: seq}, p)
	b.open.pushes = append(b.open.pushes, int32(op))
	return seq, op
}

// End is which end of equal priority a consumer takes from.
type End = index.End

// The two ends. The choice is the consumer's, not the queue's.
const (
	Newest = index.Newest // last pushed first (pinpriq document, section pop)
	Oldest = index.Oldest // first pushed first
)

// Pop takes the best packet of the queue, at the newest or oldest end of its priority, with all
// that have its key, for c. The reply goes to c's receiver: no packets if none is selectable,
// which an unknown queue answers as well (pinpriq document, section pop).
func (tx *Tx) Pop(c *Consumer, name []byte, end End) error {
	if err := tx.begin(0); err != nil {
		return err
	}
	b := tx.b
	if b.level(tx.now) >= storage.Stop {
		return ErrStopped
	}
	q := b.queues.find(name)
	if q == nil || !b.take(q, end, c) {
		b.answer(c, len(b.open.records), replyPackets, 0)
	}
	return nil
}

// take pops from q for c. It returns false, and answers nothing, if nothing is selectable.
func (b *Broker) take(q *queue, end End, c *Consumer) bool {
	limit := index.Limit{Packets: b.limits.group, Bytes: MaxGroupBytes}
	b.scratch = b.ix.Pop(q.ix, end, nil, true, limit, b.scratch[:0])
	if len(b.scratch) == 0 {
		return false
	}
	first, owed := len(b.open.records), 0
	for _, p := range b.scratch {
		b.open.records = append(b.open.records, b.withdraw(q, p))
		owed += int(p.Size)
	}
	if len(b.open.misses) > 0 && b.open.missed == nil {
		b.open.missed, b.open.missedEnd = q, end
	}
	b.answer(c, first, replyPackets, owed)
	b.retire(q)
	return true
}

// answer appends a reply of the records from first on.
func (b *Broker) answer(c *Consumer, first int, kind replyKind, owed int) {
	owed += replyOverhead
	c.queuedBytes.Add(int64(owed))
	c.queuedReplies.Add(1)
	b.open.owed += owed
	b.open.replies = append(b.open.replies, reply{
		to: c, first: int32(first), last: int32(len(b.open.records)), kind: kind, owed: owed,
	})
}

// withdraw removes a packet that left the index and returns its record, or nil after noting
// that the committer has to read it.
func (b *Broker) withdraw(q *queue, p index.Packet) []byte {
	if op, ok := b.open.pushed(p.Seq); ok {
		b.stats.cancelled.Add(1)
		record := b.open.ops.Record(op)
		b.open.ops.Cancel(op)
		return record
	}
	b.delete(q, p)
	if record := b.cache.get(p.Ref, p.Seq); record != nil {
		return b.open.copy(record)
	}
	b.stats.misses.Add(1)
	b.open.misses = append(b.open.misses, miss{id: q.packet(p), record: int32(len(b.open.records)), expiry: p.Expiry})
	return nil
}

// delete removes a packet that left the index from the store.
func (b *Broker) delete(q *queue, p index.Packet) {
	if op, ok := b.open.pushed(p.Seq); ok {
		b.open.ops.Cancel(op)
		return
	}
	b.open.ops.Delete(q.packet(p), storage.Removed{
		Expires: p.Flags&storage.FlagExpires != 0,
		Large:   p.Flags&storage.FlagLarge != 0,
	})
}

func (q *queue) packet(p index.Packet) storage.PacketID {
	return storage.PacketID{Queue: q.id, Priority: p.Priority, Seq: p.Seq}
}
