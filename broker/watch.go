package broker

import (
	"slices"

	"github.com/holdfast-queue/holdfast/broker/keyspace"
)

// watched is a name that somebody watches.
type watched struct {
	db   uint8
	name string
}

// watchOverhead is about what a watched name takes besides its bytes.
const watchOverhead = 150

// Watch notes that c wants to know of a change to what has the name, or comes to have it.
func (tx *Tx) Watch(c *Conn, name []byte) error {
	b, w, size := tx.b, watched{tx.db, string(name)}, len(name)+watchOverhead
	switch {
	case c.detached || slices.Contains(b.watches[w], c):
		return nil
	case len(c.watched) >= MaxWatches || c.watchedBytes+len(name) > MaxWatchedBytes:
		return ErrTooManyWatches
	case b.watchedBytes+size > MaxAllWatched:
		return ErrTooMuchWatched
	}
	if typeOf(b.named(name)) != TypeNone {
		c.watchesIn |= 1 << tx.db
	}
	c.watchedBytes += len(name)
	b.watchedBytes += size
	c.watched = append(c.watched, w)
	b.watches[w] = append(b.watches[w], c)
	b.watchers[c] = struct{}{}
	return nil
}

// WatchBroken says that something that c watches was changed, by anybody and any protocol.
func (tx *Tx) WatchBroken(c *Conn) bool {
	tx.advance() // what expires by now is a change, too
	return c.watchBroken
}

// Unwatch ends all watches of c.
func (tx *Tx) Unwatch(c *Conn) {
	b := tx.b
	for _, w := range c.watched {
		rest := slices.DeleteFunc(b.watches[w], func(o *Conn) bool { return o == c })
		if b.watches[w] = rest; len(rest) == 0 {
			delete(b.watches, w)
		}
	}
	b.watchedBytes -= c.watchedBytes + watchOverhead*len(c.watched)
	delete(b.watchers, c)
	c.watched, c.watchedBytes, c.watchesIn, c.watchBroken = nil, 0, 0, false
}

// changedName tells those who watch a name that what has it changes.
func (b *Broker) changedName(e *keyspace.Entry) {
	if len(b.watches) == 0 {
		return
	}
	for _, c := range b.watches[watched{e.Database(), e.Name()}] {
		c.watchBroken = true
	}
}

// flushed tells those who watch a name that stood for something that a database is empty now. Any
// other change to that name since has told them already.
func (b *Broker) flushed(db uint8) {
	for c := range b.watchers {
		c.watchBroken = c.watchBroken || c.watchesIn&(1<<db) != 0
	}
}
