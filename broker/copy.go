package broker

import (
	"slices"

	"github.com/holdfast-queue/holdfast/index"
	"github.com/holdfast-queue/holdfast/storage"
)

// Copy copies what is called from, with its expiry, to the name to, in place of what has that name.
// ok is false if nothing is called from.
func (tx *Tx) Copy(from, to []byte) (ok bool, err error) {
	b := tx.b
	k, q := b.keys.Find(from), b.listNamed(from)
	if k == nil && q == nil || string(from) == string(to) {
		return k != nil || q != nil, tx.begin(Room{})
	}
	if err := b.checkNewName(k, to); err != nil {
		return false, err
	}
	if err := tx.pushable(); err != nil {
		return false, err
	}
	if _, err := tx.drop(to, tx.copySize(from, to)); err != nil {
		return false, err
	}
	if q != nil {
		return true, b.copyQueue(q, to)
	}
	c := b.keys.Add(to, k.Kind(), b.nextKey())
	b.keys.SetExpiry(c, k.Expiry())
	if k.Kind() == index.HashKey {
		b.copyHash(k, c)
	} else {
		b.copyString(k, c)
	}
	b.touchName(c.Name())
	return true, nil
}

// CopyRoom returns what a Copy may bring.
func (tx *Tx) CopyRoom(from, to []byte) Room {
	return tx.copySize(from, to).Plus(dropRoom(string(to), dropAtOnce))
}

// copySize is what a copy puts.
func (tx *Tx) copySize(from, to []byte) Room {
	b := tx.b
	r := Room{Records: 1, Bytes: len(to)}
	if k := b.keys.Find(from); k != nil && k.Kind() == index.HashKey {
		k.EachField(func(f *index.Field) bool {
			r = r.Plus(Room{Records: 1, Bytes: len(f.Name()) + f.Len()})
			return true
		})
	} else if k != nil {
		r.Bytes += k.Len()
	}
	if q := b.listNamed(from); q != nil {
		n := b.ix.Counts(q.ix)
		r = r.Plus(Room{Records: n.Len(), Bytes: int(n.Bytes)})
		if n.Ready > b.limits.MaxOps { // no batch takes so many
			return r
		}
		b.scratch = b.ix.Next(q.ix, index.Selection{}, 0, n.Ready, b.scratch[:0])
		for _, p := range b.scratch {
			r.Bytes += int(p.Extra)
			if p.HasUnique {
				r.Records++
			}
		}
	}
	return r
}

func (b *Broker) copyString(k, c *index.Key) {
	if value, ok := b.valueAtHand(stringOf(k)); ok {
		b.putString(c, value)
		return
	}
	e := b.note(valueEvent{kind: valueCopy, value: stringOf(k)})
	b.putLateString(c, k.Len())
	e.target = stringOf(c)
}

func (b *Broker) copyHash(k, c *index.Key) {
	b.putHead(c)
	k.EachField(func(f *index.Field) bool {
		n := c.AddField([]byte(f.Name()), b.nextKey())
		if value, ok := b.valueAtHand(fieldOf(k, f)); ok {
			b.putField(c, n, value)
			return true
		}
		e := b.note(valueEvent{kind: valueCopy, value: fieldOf(k, f)})
		b.storeField(c, n, &storage.Field{Size: f.Len()})
		b.expectValue(fieldOf(c, n), f.Len())
		e.target = fieldOf(c, n)
		return true
	})
}

// copyQueue copies the elements of q to a list of a name that nothing has.
func (b *Broker) copyQueue(q *queue, name []byte) error {
	c, err := b.makeQueue(name)
	if err != nil {
		return err
	}
	b.define(c)
	if at := b.keys.QueueExpiry(q.ix); at != 0 {
		b.setQueueExpiry(c, at)
	}
	elements := b.ix.Next(q.ix, index.Selection{}, 0, b.ix.Counts(q.ix).Ready, nil)
	for _, p := range slices.Backward(elements) {
		if err := b.copyPacket(q, p, c); err != nil {
			return err
		}
	}
	b.touch(c)
	b.deliverQueue(c)
	return nil
}

// copyPacket copies a packet to the newest end of its priority in another queue.
func (b *Broker) copyPacket(q *queue, p index.Packet, to *queue) error {
	c := p
	c.Queue, c.Seq = to.ix, b.nextSeq(Newest)
	op := b.putLocated(b.locate(q.packet(p), p.Ref), p, to.packet(c), c.Seq, p.Expiry)
	e := b.entryOf(c)
	e.Identity, e.Delivery = c.Seq, index.Delivery{}
	if c.ID = b.ix.Push(e, b.tx.now); c.ID == 0 {
		b.open.ops.Cancel(op)
		return ErrTooManyPackets
	}
	b.putUnique(to, c.Seq, e.Unique)
	if b.open.ops.Record(op) == nil {
		b.open.late[len(b.open.late)-1].entry = c.ID
	}
	return nil
}
