package broker

import "slices"

// watches are the consumers that want to know of a change to what has a name.
type watches map[string][]*Consumer

// Watch notes that c wants to know of a change to what has the name, or comes to have it.
func (tx *Tx) Watch(c *Consumer, name []byte) error {
	b := tx.b
	s := string(name)
	switch {
	case c.detached || slices.Contains(b.watches[s], c):
		return nil
	case len(c.watched) >= MaxWatches || c.watchedBytes+len(s) > MaxWatchedBytes:
		return ErrTooManyWatches
	}
	c.watchedBytes += len(s)
	c.watched = append(c.watched, s)
	b.watches[s] = append(b.watches[s], c)
	return nil
}

// WatchBroken says that something that c watches was changed, by anybody and any protocol.
func (tx *Tx) WatchBroken(c *Consumer) bool {
	tx.advance() // what expires by now is a change, too
	return c.watchBroken
}

// Unwatch ends all watches of c.
func (tx *Tx) Unwatch(c *Consumer) {
	b := tx.b
	for _, name := range c.watched {
		rest := slices.DeleteFunc(b.watches[name], func(o *Consumer) bool { return o == c })
		if b.watches[name] = rest; len(rest) == 0 {
			delete(b.watches, name)
		}
	}
	c.watched, c.watchedBytes, c.watchBroken = nil, 0, false
}

// touch tells those who watch the name of a queue that what it holds changes, those who wait for
// room in it, and those who wait for a closed one: it may be drained.
func (b *Broker) touch(q *queue) {
	if q.line != nil || q.subscribers > 0 && settingsOf(q).Closed {
		b.deferQueue(q)
	}
	if !q.dropped {
		b.touchName(q.name)
	}
}

// touchName tells those who watch a name that what has it changes.
func (b *Broker) touchName(name string) {
	if len(b.watches) == 0 {
		return
	}
	for _, c := range b.watches[name] {
		c.watchBroken = true
	}
}
