package broker

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/holdfast-queue/holdfast/broker/keyspace"
	"github.com/holdfast-queue/holdfast/index"
)

// Copy copies what is called from, with its expiry, to a name of a database. ok is false if nothing
// is called from, or if something has that name and is not to be replaced.
func (tx *Tx) Copy(from, to []byte, db uint8, replace bool) (ok bool, err error) {
	b := tx.b
	e := b.named(from)
	if typeOf(e) == TypeNone || e.Database() == db && string(from) == string(to) {
		return typeOf(e) != TypeNone, tx.begin()
	}
	if err := b.checkNewName(e, to); err != nil {
		return false, err
	}
	if err := tx.CanStore(); err != nil {
		return false, err
	}
	if err := tx.mayCopy(e); err != nil {
		return false, err
	}
	defer func() { tx.db = e.Database() }()
	tx.db = db
	if !replace && tx.Type(to) != TypeNone {
		return false, tx.begin()
	}
	if e.Kind() == keyspace.Queue {
		return tx.copyQueue(b.queues.of(e.Queue()), to)
	}
	values, err := b.valuesOf(e)
	if err != nil {
		return false, err
	}
	if _, err := tx.Delete(to); err != nil {
		return false, err
	}
	c := b.addValue(to, e.Kind())
	b.names.SetExpiry(c, e.Expiry())
	if e.Kind() == keyspace.Hash {
		b.copyHash(e, c, values)
	} else {
		b.putString(c, values[0])
	}
	b.changedName(c)
	return true, nil
}

// mayCopy returns an error if what has a name is more than one call copies.
func (tx *Tx) mayCopy(e *keyspace.Entry) error {
	b, n, bytes := tx.b, 0, e.Len()
	switch e.Kind() {
	case keyspace.Hash:
		n = e.Fields()
		e.EachField(func(f *keyspace.Field) bool { bytes += len(f.Name()) + f.Len(); return true })
	case keyspace.Queue:
		if n = b.ix.Counts(e.Queue()).Ready; n*copyOverhead <= MaxCopy {
			b.scratch = b.ix.Next(e.Queue(), index.Selection{}, 0, n, b.scratch[:0])
			bytes = weightOf(b.scratch)
		}
	}
	if bytes += n * copyOverhead; bytes > MaxCopy {
		return fmt.Errorf("%w: a copy of %d bytes, the limit is %d", ErrTooLarge, bytes, MaxCopy)
	}
	return tx.mayBring(n, bytes)
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

// valuesOf returns copies of a string's value, or of those of the fields of a hash in their order.
func (b *Broker) valuesOf(e *keyspace.Entry) (values [][]byte, err error) {
	add := func(s valueRef) bool {
		var value []byte
		value, err = b.read(s)
		values = append(values, bytes.Clone(value))
		return err == nil
	}
	if e.Kind() == keyspace.Hash {
		e.EachField(func(f *keyspace.Field) bool { return add(fieldOf(e, f)) })
	} else if e.Kind() == keyspace.String {
		add(stringOf(e))
	}
	return values, err
}

func (b *Broker) copyHash(e, c *keyspace.Entry, values [][]byte) {
	b.putHead(c)
	i := 0
	e.EachField(func(f *keyspace.Field) bool {
		b.putField(c, c.AddField([]byte(f.Name()), b.nextKey()), values[i])
		i++
		return true
	})
}

// copyQueue copies the elements of q to a list, in place of what has its name.
func (tx *Tx) copyQueue(q *queue, to []byte) (ok bool, err error) {
	b := tx.b
	if err := b.checkCopy(q, to); err != nil {
		return false, err
	}
	elements := b.ix.Next(q.ix, index.Selection{}, 0, b.ix.Counts(q.ix).Ready, nil)
	records, err := b.fetch(q, elements, nil)
	if err != nil {
		return false, err
	}
	if _, err := tx.Delete(to); err != nil {
		return false, err
	}
	c, err := b.makeQueue(to)
	if err != nil {
		return false, err
	}
	b.define(c)
	for i, p := range slices.Backward(elements) {
		b.copyPacket(p, records[i], c)
	}
	b.changed(c)
	if at := q.expiry(); at != 0 && c.entry.Kind() == keyspace.Queue {
		b.setExpiry(c.entry, at)
	}
	b.deliverQueue(c)
	return true, nil
}

// copyPacket copies a packet to the newest end of its priority in another queue.
func (b *Broker) copyPacket(p index.Packet, record []byte, to *queue) {
	c := p
	c.Queue, c.Seq = to.ix, b.nextSeq(Newest)
	b.putRecord(p, record, to.packet(c), c.Seq, p.Expiry)
	e := b.entryOf(c)
	e.Identity, e.Delivery = c.Seq, index.Delivery{}
	b.ix.Push(e, b.tx.now) // there is room, see checkCopy
	b.putUnique(to, c.Seq, e.Unique)
}
