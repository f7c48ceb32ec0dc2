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
	m := tx.m
	e := m.named(from)
	if e.Kind() == TypeNone || e.Database() == db && string(from) == string(to) {
		return e.Kind() != TypeNone, nil
	}
	if err := checkNewName(e, to); err != nil {
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
		return false, nil
	}
	if e.Kind() == keyspace.Queue {
		return tx.copyQueue(m.queues.of(e.Queue()), to)
	}
	values, err := m.valuesOf(e)
	if err != nil {
		return false, err
	}
	m.vacate(to)
	c := m.addValue(to, e.Kind())
	m.names.SetExpiry(c, e.Expiry())
	if e.Kind() == keyspace.Hash {
		m.copyHash(e, c, values)
	} else {
		m.putString(c, values[0])
	}
	m.changedName(c)
	return true, nil
}

// mayCopy returns an error if what has a name is more than one call copies.
func (tx *Tx) mayCopy(e *keyspace.Entry) error {
	m, n, bytes := tx.m, 0, e.Len()
	switch e.Kind() {
	case keyspace.Hash:
		n = e.Fields()
		e.EachField(func(f *keyspace.Field) bool { bytes += len(f.Name()) + f.Len(); return true })
	case keyspace.Queue:
		if n = m.ix.Counts(e.Queue()).Ready; n*copyOverhead <= MaxCopy {
			m.scratch = m.ix.Next(e.Queue(), index.Selection{}, 0, n, m.scratch[:0])
			bytes = weightOf(m.scratch)
		}
	}
	if bytes += n * copyOverhead; bytes > MaxCopy {
		return fmt.Errorf("%w: a copy of %d bytes, the limit is %d", ErrTooLarge, bytes, MaxCopy)
	}
	return tx.mayBring(n, bytes)
}

// checkCopy says why a list cannot be copied to a name, in place of what has that. A copy is a
// push, so it does not overtake those that wait.
func (m *Machine) checkCopy(q *queue, to []byte) error {
	switch other := m.queueNamed(to); {
	case other != nil && other.line != nil:
		return errOthersWait
	case !m.ix.HasRoom(m.ix.Counts(q.ix).Ready):
		return ErrTooManyPackets
	case other == nil || m.flushesReused():
		return m.checkNewQueue(to)
	}
	return nil
}

// valuesOf returns copies of a string's value, or of those of the fields of a hash in their order.
func (m *Machine) valuesOf(e *keyspace.Entry) (values [][]byte, err error) {
	add := func(s valueRef) bool {
		var value []byte
		value, err = m.read(s)
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

func (m *Machine) copyHash(e, c *keyspace.Entry, values [][]byte) {
	m.putHead(c)
	i := 0
	e.EachField(func(f *keyspace.Field) bool {
		m.putField(c, c.AddField([]byte(f.Name()), m.nextKey()), values[i])
		i++
		return true
	})
}

// copyQueue copies the elements of q to a list, in place of what has its name.
func (tx *Tx) copyQueue(q *queue, to []byte) (ok bool, err error) {
	m := tx.m
	if err := m.checkCopy(q, to); err != nil {
		return false, err
	}
	elements := m.ix.Next(q.ix, index.Selection{}, 0, m.ix.Counts(q.ix).Ready, nil)
	records, err := m.fetchToMove(q, elements)
	if err != nil {
		return false, err
	}
	m.vacate(to)
	c, err := m.makeQueue(to)
	if err != nil {
		return false, err
	}
	m.define(c)
	for i, p := range slices.Backward(elements) {
		m.copyPacket(p, records[i], c)
	}
	m.changed(c)
	if at := q.expiry(); at != 0 && c.entry.Kind() == keyspace.Queue {
		m.setExpiry(c.entry, at)
	}
	return true, nil
}

// copyPacket copies a packet to the newest end of its priority in another queue.
func (m *Machine) copyPacket(p index.Packet, record []byte, to *queue) {
	c := p
	c.Queue, c.Seq = to.ix, m.nextSeq(Newest)
	m.putRecord(p, record, to.packet(c), c.Seq, p.Expiry)
	e := m.entryOf(c)
	e.Identity, e.Delivery = c.Seq, index.Delivery{}
	m.ix.Push(e, m.tx.now) // there is room, see checkCopy
	m.putUnique(to, c.Seq, e.Unique)
	c.Identity = c.Seq
	m.tail(to, c, EventPushed)
}
