package broker

import (
	"errors"
	"fmt"

	"github.com/holdfast-queue/holdfast/index/keyspace"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// Databases is how many there are, from number 0. Each is a space of names of its own.
const Databases = content.Databases

// Type is what a name stands for.
type Type = keyspace.Kind

// The types. A queue that holds nothing and has no settings does not have its name.
const (
	TypeNone   = keyspace.None
	TypeList   = keyspace.Queue
	TypeString = keyspace.String
	TypeHash   = keyspace.Hash
)

// ErrWrongType: a name stands for something of another type.
var ErrWrongType = errors.New("the name belongs to a value of another type")

// Select chooses the database in which a consumer's calls find their names, from the present call
// on. Without it they use database 0.
func (tx *Tx) Select(c *Conn, db uint8) { c.db, tx.db = db, db }

// Database is the one that the consumer's names are in.
func (c *Conn) Database() uint8 { return c.db }

// named returns the entry of a name in the database of the present call, nil if there is none. What
// has expired goes now, if its turn has not come yet.
func (m *Machine) named(name []byte) *keyspace.Entry {
	e := m.names.Find(m.tx.db, name)
	if e != nil && e.Expiry() != 0 && e.Expiry() <= m.tx.now {
		m.deleteNamed(e)
		e = m.names.Find(m.tx.db, name)
	}
	return e
}

// Every call below is made inside Atomic.

// Type returns the type of a name; TypeNone if nothing has it.
func (tx *Tx) Type(name []byte) Type { return tx.m.named(name).Kind() }

// Delete deletes whatever has the name. existed is false if nothing had it.
func (tx *Tx) Delete(name []byte) (existed bool, err error) { return tx.m.vacate(name), nil }

// vacate is Delete for a name that something else may get.
func (m *Machine) vacate(name []byte) (existed bool) {
	e := m.named(name)
	if existed = e.Kind() != TypeNone; existed {
		m.deleteNamed(e)
	}
	if q := m.queueNamed(name); q != nil && m.ix.HasWindow(q.ix) { // the windows of an empty queue end, too
		m.dropQueue(q)
	}
	return existed
}

// Drop is Delete for a queue. ok is true also if nothing had the name but windows of unique pushes.
func (tx *Tx) Drop(name []byte) (ok bool, err error) {
	q := tx.m.queueNamed(name)
	windows := q != nil && tx.m.ix.HasWindow(q.ix)
	return tx.m.vacate(name) || windows, nil
}

// deleteNamed deletes what an entry stands for.
func (m *Machine) deleteNamed(e *keyspace.Entry) {
	if e.Kind() == keyspace.Queue {
		m.dropQueue(m.queues.of(e.Queue())) // which ends the expiry, on disk, too
	} else {
		m.deleteValue(e)
	}
}

// Rename gives what is called from the name to, in place of what has that name. ok is false if
// nothing is called from.
func (tx *Tx) Rename(from, to []byte) (ok bool, err error) {
	m := tx.m
	e := m.named(from)
	if e.Kind() == TypeNone || string(from) == string(to) {
		return e.Kind() != TypeNone, nil
	}
	if err := checkNewName(e, to); err != nil {
		return false, err
	}
	if e.IsValue() {
		m.vacate(to)
		m.changedName(e)
		value := m.names.Detach(e)
		e = m.names.Make(tx.db, to)
		m.names.Attach(e, value)
		m.putHead(e)
		m.changedName(e)
		return true, nil
	}
	q := m.queues.of(e.Queue())
	if exclusive(q.settings, consumerRole) {
		if _, err := m.onlyConsumer(q.roles[consumerRole], m.waitersFor(to)); err != nil {
			return false, err
		}
	}
	if q.own == nil {
		if err := tx.mayRename(q, orDefaults(m.defaultsOf(string(to)))); err != nil {
			return false, err
		}
	}
	m.vacate(to)
	m.renameQueue(q, to)
	return true, nil
}

// checkName returns ErrTooLarge if the name is too long, or its record with a value of that length.
func checkName(name []byte, value int) error {
	if len(name) > content.MaxName {
		return fmt.Errorf("%w: the name has %d bytes, the limit is %d", ErrTooLarge, len(name), content.MaxName)
	}
	return checkSize(name, value, MaxRecord)
}

// checkNewName is checkName for the new name of a string; or of a hash or list, whose elements have
// records of their own.
func checkNewName(e *keyspace.Entry, name []byte) error {
	if !e.IsValue() {
		return checkName(name, 0)
	}
	return checkName(name, e.Len())
}

// checkSize returns ErrTooLarge if name and value together have more than most bytes.
func checkSize(name []byte, value, most int) error {
	if n := len(name) + value; n > most {
		return fmt.Errorf("%w: name and value have %d bytes together, the limit is %d", ErrTooLarge, n, most)
	}
	return nil
}

// Expiry returns when a name expires, in Unix milliseconds, 0 for never; ok is false if nothing has
// it.
func (tx *Tx) Expiry(name []byte) (at int64, ok bool) {
	if e := tx.m.named(name); e.Kind() != TypeNone {
		return e.Expiry(), true
	}
	return 0, false
}

// SetExpiry lets a name expire at a moment in Unix milliseconds, 0 for never. A moment that is past
// deletes it. ok is false if nothing has the name.
func (tx *Tx) SetExpiry(name []byte, at int64) (ok bool, err error) {
	m := tx.m
	if at != 0 && at <= tx.now {
		return tx.Delete(name)
	}
	e := m.named(name)
	if e.Kind() == TypeNone {
		return false, nil
	}
	if was := e.Expiry(); was == 0 && at == 0 {
		return true, nil
	} else if was != at {
		m.setExpiry(e, at)
	}
	m.changedName(e)
	return true, nil
}

// setExpiry lets what has a name expire, and brings that to disk.
func (m *Machine) setExpiry(e *keyspace.Entry, at int64) {
	m.names.SetExpiry(e, at)
	if e.Kind() == keyspace.Queue {
		m.open.ops.PutQueue(m.definition(m.queues.of(e.Queue())))
	} else {
		m.putHead(e)
	}
}

// Now returns the moment of the transaction in Unix milliseconds. What expires by then is gone.
func (tx *Tx) Now() int64 { return tx.now }

// Steady returns the same moment in milliseconds of a clock that never jumps: waits end by it.
func (tx *Tx) Steady() int64 { return tx.steady }

// expireNames deletes a slice of what is due.
func (m *Machine) expireNames(now int64) {
	for range advanceSlice {
		e := m.names.Due(now)
		if e == nil || m.open.halfFull(m.limits) {
			return
		}
		m.deleteNamed(e)
	}
}

// Scan calls fn with some names and returns a cursor for the next call, 0 after the last. It starts
// with 0. A name that is there from the first call to the last is given at least once. It looks at
// about n names. A name is valid during the call of fn, which must not make calls.
func (tx *Tx) Scan(cursor uint64, n int, fn func(name []byte, t Type)) (next uint64) {
	m := tx.m
	tx.looked += n // names, or free places
	return m.names.Scan(tx.db, cursor, n, func(e *keyspace.Entry) {
		tx.looked += len(e.Name()) / nameBytes
		m.name = append(m.name[:0], e.Name()...)
		fn(m.name, e.Kind())
	})
}

// NameCount returns how many names a database has, and how many of them expire.
func (tx *Tx) NameCount(db uint8) (names, expiring int) { return tx.m.names.Len(db) }
