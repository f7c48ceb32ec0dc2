package broker

import (
	"fmt"

	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/storage"
)

// A packet that moves keeps its record as it is: key, payload, times and attempts. In the store a
// move is a delete and a put.

// move gives a packet a new place: at an end of a priority of the queue to, which may be its own.
func (b *Broker) move(q *queue, p index.Packet, record []byte, to *queue, priority uint32, end End) {
	b.moveTo(q, p, record, to, storage.PacketID{Queue: to.id, Priority: priority, Seq: b.nextSeq(end)}, p.Expiry)
}

// moveTo is move to a place, which may be the same with another expiry. Where the queue or the
// expiry is another, the packet's state becomes that of p. It returns the packet as it is then.
func (b *Broker) moveTo(q *queue, p index.Packet, record []byte, to *queue, id storage.PacketID, expiry int64) (moved index.Packet) {
	b.define(to)
	b.moveUnique(q, p, to)
	there := p
	there.Stored, there.HasUnique = 0, false // they stay
	b.deletePacket(q, there)
	record = b.putRecord(p, record, id, p.Identity, expiry)
	moved = p
	moved.Queue, moved.Priority, moved.Seq, moved.Expiry = to.ix, id.Priority, id.Seq, expiry
	moved.Flags = storage.Flags(expiry != 0, p.Flags&storage.FlagLarge != 0)
	if to == q && expiry == p.Expiry {
		b.ix.Move(p.ID, id.Priority, id.Seq)
	} else {
		moved.ID = b.moveEntry(moved)
		b.changed(q)
	}
	moved.Ref = b.cache.add(id.Seq, record)
	b.ix.SetRef(moved.ID, id.Seq, moved.Ref)
	b.changed(to)
	return moved
}

// putRecord puts a packet under a new id, with the record that p has elsewhere. That is changed
// where it has to say another identity or expiry. It returns the record as the batch has it.
func (b *Broker) putRecord(p index.Packet, record []byte, to storage.PacketID, identity uint64, expiry int64) []byte {
	if identity = ownIdentity(identity, to.Seq); expiry != p.Expiry || identity != ownIdentity(p.Identity, p.Seq) {
		changed, err := storage.AppendChanged(b.patched[:0], record, expiry, identity)
		if err != nil { // fetch has decoded what this program did not write
			panic(fmt.Sprintf("broker: record of packet %v: %v", to, err))
		}
		b.patched, record = changed, changed
	}
	op := b.open.ops.PutRecord(to, record)
	b.open.puts.add(to, op)
	return b.open.ops.Record(op)
}

// ownIdentity is what a packet's record says of its identity at a sequence: nothing if they are the
// same.
func ownIdentity(identity, seq uint64) uint64 {
	if identity == seq {
		return 0
	}
	return identity
}

// moveEntry brings the index entry of a packet to where that is now.
func (b *Broker) moveEntry(p index.Packet) index.ID {
	e := b.entryOf(p)
	b.ix.Remove(p.ID)
	return b.ix.Push(e, b.tx.now) // there is room: one has just gone
}

// entryOf is the entry of a packet in another place, or of another state, than the index has it.
func (b *Broker) entryOf(p index.Packet) index.Entry {
	key := b.key(p)
	tags, _ := b.ix.Tags(p.Lane)
	b.tags = append(b.tags[:0], tags...)
	return index.Entry{
		Queue:    p.Queue,
		Tags:     b.tags,
		Wide:     storage.IsWide(len(key), int(p.Size)-len(key)),
		Priority: p.Priority,
		Seq:      p.Seq,
		Identity: p.Identity,
		Unique:   b.unique(p),
		Key:      key,
		Hash:     b.ix.Hash(p.ID),
		Size:     p.Size,
		TagBytes: p.TagBytes,
		Expiry:   p.Expiry,
		Flags:    p.Flags,
		State:    p.State,
		Until:    p.Until,
		Delivery: b.ix.Delivery(p.ID),
	}
}

// weight is about how many bytes a packet's record has.
func weight(p index.Packet) int { return int(p.Size) + int(p.TagBytes) }

// weightOf is that of all of some packets.
func weightOf(packets []index.Packet) (bytes int) {
	for _, p := range packets {
		bytes += weight(p)
	}
	return bytes
}

// key returns the key of a packet, nil if it has none. It is valid until the next call.
func (b *Broker) key(p index.Packet) []byte {
	key, ok := b.ix.Key(p.ID, b.keyScratch[:0])
	if !ok {
		return nil
	}
	b.keyScratch = key
	if key == nil {
		return []byte{}
	}
	return key
}

// MoveEnd takes the element at one end of a list, replies with it to c, and adds it at an end of
// another list, or the same. ok is false, and nothing is replied, if from has no element.
func (tx *Tx) MoveEnd(c *Conn, from []byte, fromEnd End, to []byte, toEnd End, tag Tag) (ok bool, err error) {
	b := tx.b
	q, err := tx.openForTake(from)
	if q == nil || err != nil {
		return false, err
	}
	s := Selection{End: fromEnd}
	records := b.takeable(q, s, b.selection(q, s))
	if len(records) == 0 {
		return false, nil
	}
	p, record := b.scratch[0], records[0]
	if err := tx.useReply(weight(p)); err != nil {
		return false, err
	}
	if other := b.queueNamed(to); other != nil {
		if err := b.checkMove(q, other, p); err != nil {
			return false, err
		}
	}
	comes := load{packets: 1, bytes: int64(p.Size)}
	if string(to) == q.entry.Name() {
		comes = load{}
	}
	target, err := tx.useList(to, comes)
	if err != nil {
		return false, err
	}
	tx.useRole(q, consumerRole)
	first := len(b.open.records)
	b.move(q, p, record, target, ListPriority, toEnd)
	b.open.appendRecords(record)
	b.queueReply(c, first, replyPackets, tag, weight(p))
	b.deliverQueue(target)
	return true, nil
}
