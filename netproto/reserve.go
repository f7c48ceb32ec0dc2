package netproto

import "slices"

// A few long requests fill all room. If each were read as far as there is room, none would ever be
// whole, and the one that is the nearest to it would be evicted. So a long request has all of its
// room before it is read, and the others wait: their bytes stay in the network.

// reserve makes room for the request of c, or lets it wait.
func (b *Buffers) reserve(c *conn) {
	switch n := c.announced; {
	case n <= LongRequest || c.pause != none:
	case c.reserved > 0 || len(b.waiting) == 0 && b.hasRoom(n): // what is begun may grow: two that wait for each other would do so for ever
		b.reserved += n - c.reserved
		c.reserved = n
	default:
		c.pause = noRoom
		b.waiting = append(b.waiting, c)
	}
}

// hasRoom says that a request of n bytes may be read. One always may. The longest payloads take
// whole parts, and what comes with them a little more.
func (b *Buffers) hasRoom(n int) bool {
	return b.reserved == 0 || b.reserved+n <= b.most/ReservedParts*(ReservedParts-1)+besidePayloads
}

// release gives back what c has reserved, and lets those read on that waited for it.
func (b *Buffers) release(c *conn) {
	b.reserved -= c.reserved
	c.reserved = 0
	if c.pause == noRoom {
		c.pause = none
		b.waiting = slices.DeleteFunc(b.waiting, func(o *conn) bool { return o == c })
	}
	for len(b.waiting) > 0 && b.hasRoom(b.waiting[0].announced) {
		next := b.waiting[0]
		b.waiting = slices.Delete(b.waiting, 0, 1)
		b.reserved += next.announced
		next.reserved, next.pause, next.readable = next.announced, none, true
		next.loop.again(next)
	}
}
