package broker

import (
	"slices"

	"github.com/holdfast-queue/holdfast/broker/keyspace"
	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/storage"
)

// Copy copies what is called from, with its expiry, to a name of a database. ok is false if nothing
// is called from, or if something has that name and is not to be replaced.
func (tx *Tx) Copy(from, to []byte, db uint8, replace bool) (ok bool, err error) {
	b := tx.b
	e := b.named(from)
	if typeOf(e) == TypeNone || e.Database() == db && string(from) == string(to) {
		return typeOf(e) != TypeNone, tx.begin(Room{})
	}
	if err := b.checkNewName(e, to); err != nil {
		return false, err
	}
	if err := tx.pushable(); err != nil {
		return false, err
	}
	size := b.copySize(e, to)
	defer func() { tx.db = e.Database() }()
	tx.db = db
	if !replace && tx.Type(to) != TypeNone {
		return false, tx.begin(Room{})
	}
	if e.Kind() == keyspace.Queue {
		if err := b.checkCopy(b.queues.of(e.Queue()), to); err != nil {
			return false, err
		}
	}
	if _, err := tx.drop(to, size); err != nil {
		return false, err
	}
	if e.Kind() == keyspace.Queue {
		return true, b.copyQueue(b.queues.of(e.Queue()), to)
	}
	c := b.addValue(to, e.Kind())
	b.names.SetExpiry(c, e.Expiry())
	if e.Kind() == keyspace.Hash {
		b.copyHash(e, c)
	} else {
		b.copyString(e, c)
	}
	b.changedName(c)
	return true, nil
}

// CopyRoom returns what a Copy may bring.
func (tx *Tx) CopyRoom(from, to []byte) Room {
	e := tx.b.named(from)
	if typeOf(e) == TypeNone {
		return Room{}
	}
	return tx.b.copySize(e, to).Plus(Room{Records: 1, Bytes: len(to), Deletes: dropAtOnce})
}

// copySize is what a copy puts.
func (b *Broker) copySize(e *keyspace.Entry, to []byte) Room {
	r := Room{Records: 1, Bytes: len(to)}
	switch e.Kind() {
	case keyspace.String:
		r.Bytes += e.Len()
	case keyspace.Hash:
		e.EachField(func(f *keyspace.Field) bool {
			r = r.Plus(Room{Records: 1, Bytes: len(f.Name()) + f.Len()})
			return true
		})
	default:
		n := b.ix.Counts(e.Queue())
		r = r.Plus(Room{Records: n.Len(), Bytes: int(n.Bytes)})
		if n.Ready > b.limits.MaxOps { // no batch takes so many
			return r
		}
		b.scratch = b.ix.Next(e.Queue(), index.Selection{}, 0, n.Ready, b.scratch[:0])
		for _, p := range b.scratch {
			r.Bytes += int(p.TagBytes)
			if p.HasUnique {
				r.Records++
			}
		}
	}
	return r
}

// checkCopy says why a list cannot be copied to a name, in place of what has that. A copy is a
// push, so it does not overtake those that wait.
func (b *Broker) checkCopy(q *queue, to []byte) error {
	switch other := b.queueNamed(to); {
	case other != nil && other.line != nil:
		return errOthersWait
	case !b.ix.HasRoom(b.ix.Counts(q.ix).Ready):
		return ErrTooManyPackets
	case other == nil || b.flushesReused():
		return b.checkNewQueue(to)
	}
	return nil
}

func (b *Broker) copyString(e, c *keyspace.Entry) {
	if value, ok := b.valueAtHand(stringOf(e)); ok {
		b.putString(c, value)
		return
	}
	note := b.note(valueEvent{kind: valueCopy, value: stringOf(e)})
	b.putLateString(c, e.Len())
	note.target = stringOf(c)
}

func (b *Broker) copyHash(e, c *keyspace.Entry) {
	b.putHead(c)
	e.EachField(func(f *keyspace.Field) bool {
		n := c.AddField([]byte(f.Name()), b.nextKey())
		if value, ok := b.valueAtHand(fieldOf(e, f)); ok {
			b.putField(c, n, value)
			return true
		}
		note := b.note(valueEvent{kind: valueCopy, value: fieldOf(e, f)})
		b.storeField(c, n, &storage.Field{Size: f.Len()})
		b.expectValue(fieldOf(c, n), f.Len())
		note.target = fieldOf(c, n)
		return true
	})
}

// copyQueue copies the elements of q, which has some, to a list of a name that nothing has
// (checkCopy).
func (b *Broker) copyQueue(q *queue, name []byte) error {
	c, err := b.makeQueue(name)
	if err != nil {
		return err
	}
	b.define(c)
	elements := b.ix.Next(q.ix, index.Selection{}, 0, b.ix.Counts(q.ix).Ready, nil)
	for _, p := range slices.Backward(elements) {
		b.copyPacket(q, p, c)
	}
	b.changed(c)
	if at := q.expiry(); at != 0 && c.entry.Kind() == keyspace.Queue {
		b.setExpiry(c.entry, at)
	}
	b.deliverQueue(c)
	return nil
}

// copyPacket copies a packet to the newest end of its priority in another queue.
func (b *Broker) copyPacket(q *queue, p index.Packet, to *queue) {
	c := p
	c.Queue, c.Seq = to.ix, b.nextSeq(Newest)
	op := b.putLocated(b.locate(q.packet(p), p.Ref), p, to.packet(c), c.Seq, p.Expiry)
	e := b.entryOf(c)
	e.Identity, e.Delivery = c.Seq, index.Delivery{}
	c.ID = b.ix.Push(e, b.tx.now) // there is room, see checkCopy
	b.putUnique(to, c.Seq, e.Unique)
	if b.open.ops.Record(op) == nil {
		b.open.late[len(b.open.late)-1].entry = c.ID
	}
}
