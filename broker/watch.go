package broker

import (
	"slices"

	"github.com/holdfast-queue/holdfast/index/keyspace"
)

// watchOverhead is about what a watched name takes besides its bytes.
const watchOverhead = 150

// Watch notes that c wants to know of a change to what has the name, or comes to have it. It
// returns about how many bytes that takes: none if c watches it already.
func (tx *Tx) Watch(c *Conn, name []byte) (size int) {
	m, w := tx.m, watched{tx.db, string(name)}
	if c.detached || slices.Contains(m.watches[w], c) {
		return 0
	}
	if m.named(name).Kind() != TypeNone {
		c.watchesIn |= 1 << tx.db
	}
	c.watched = append(c.watched, w)
	m.watches[w] = append(m.watches[w], c)
	m.watchers[c] = struct{}{}
	return len(name) + watchOverhead
}

// WatchBroken says that something that c watches was changed, by anybody and any protocol, or has
// expired.
func (tx *Tx) WatchBroken(c *Conn) bool {
	return c.watchBroken || slices.ContainsFunc(c.watched, func(w watched) bool {
		e := tx.m.names.Find(w.db, []byte(w.name))
		return e != nil && e.Expiry() != 0 && e.Expiry() <= tx.now
	})
}

// Unwatch ends all watches of c.
func (tx *Tx) Unwatch(c *Conn) {
	m := tx.m
	for _, w := range c.watched {
		rest := slices.DeleteFunc(m.watches[w], func(o *Conn) bool { return o == c })
		if m.watches[w] = rest; len(rest) == 0 {
			delete(m.watches, w)
		}
	}
	delete(m.watchers, c)
	c.watched, c.watchesIn, c.watchBroken = nil, 0, false
}

// changedName tells those who watch a name that what has it changes.
func (m *Machine) changedName(e *keyspace.Entry) {
	if len(m.watches) == 0 {
		return
	}
	for _, c := range m.watches[watched{e.Database(), e.Name()}] {
		c.watchBroken = true
	}
}

// flushed tells those who watch a name that stood for something that some databases are empty now.
// Any other change to that name since has told them already. It tells those who tail a queue, too.
func (m *Machine) flushed(from, to uint8) {
	for of := range m.tails {
		if q := m.tailedQueue(of); q != nil && from <= of.db && of.db <= to {
			m.tell(q, Event{Kind: EventPurged, Tail: true})
			q.tailed = false // until Work retires it
		}
	}
	for c := range m.watchers {
		c.watchBroken = c.watchBroken || c.watchesIn>>from<<from<<(Databases-1-to) != 0
	}
}
