package netproto

// Message is bytes that go to several clients.
type Message struct {
	bytes   []byte
	outputs int // that share it
}

// NewMessage makes a message of bytes, which nobody may change then.
func NewMessage(b []byte) *Message { return &Message{bytes: b} }

// Append appends the message to dst.
func (m *Message) Append(dst []byte) []byte { return append(dst, m.bytes...) }

// output holds what leaves a connection: first before, then peer.Out.
type output struct {
	before []*Message // shared with other outputs, or what was in peer.Out ahead of such
	queued int        // bytes of them
	sent   int        // of the first of all these, how many bytes have left
	free   int        // of all together, how many may leave
}

// share adds a message that other outputs may carry, too.
func (c *conn) share(m *Message) {
	if len(c.peer.Out) > 0 {
		own := NewMessage(c.peer.Out)
		c.peer.Out = nil
		c.share(own)
	}
	c.before = append(c.before, m)
	c.queued += len(m.bytes)
	if m.outputs++; m.outputs > 1 {
		c.server.config.Buffers.sum -= len(m.bytes) // it counts once
	}
}

// dropFirst drops what is first before peer.Out.
func (c *conn) dropFirst() {
	m := c.before[0]
	c.before[0], c.before = nil, c.before[1:]
	c.queued -= len(m.bytes)
	c.free -= len(m.bytes)
	c.sent = 0
	if m.outputs--; m.outputs > 0 {
		c.server.config.Buffers.sum += len(m.bytes)
	}
}

// dropAll drops what has not left.
func (c *conn) dropAll() {
	for len(c.before) > 0 {
		c.dropFirst()
	}
	c.peer.Out, c.sent, c.free = nil, 0, 0
	c.server.config.Buffers.count(c)
}

// length is how many bytes there are, with those that have left of the first.
func (c *conn) length() int { return c.queued + len(c.peer.Out) }

// Unsent implements broker.Receiver.
func (c *conn) Unsent() int64 { return int64(c.length() - c.sent) }

// touch notes that the connection has got bytes to send, which leave with the next commit.
func (c *conn) touch() {
	if !c.touched && c.length() > c.free {
		c.touched = true
		c.loop.touched = append(c.loop.touched, c)
	}
}

// send sends what may leave: a slice of it, if it is much.
func (c *conn) send() {
	if c.phase >= lingering {
		return
	}
	sent := 0
	for c.sent < c.free && sent < maxPiece {
		first := c.peer.Out
		if len(c.before) > 0 {
			first = c.before[0].bytes
		}
		n, err := c.link.write(first[c.sent:min(len(first), c.free, c.sent+maxPiece)])
		if err != nil {
			c.broken = true
			c.finish(err)
			return
		}
		sent += n
		c.sent += n
		c.taken += n
		if len(c.before) == 0 || c.sent < len(first) {
			break
		}
		c.dropFirst()
	}
	if sent >= maxPiece && c.sent < c.free {
		c.loop.again(c) // a goroutine that writes has nothing to do, perhaps
	}
	c.timeWrite()
	c.forget()
	c.server.config.Buffers.count(c)
	if c.consumer.CaughtUp() {
		c.loop.tx.Resume(c.consumer)
	}
	if c.pause == full && c.Unsent() <= c.server.config.MaxOutstandingBytes/2 {
		c.pause, c.tried = none, 0
		c.loop.again(c)
	}
	if c.phase >= finishing && c.Unsent() == 0 {
		c.end()
	}
}

// timeWrite bounds the time in which the peer takes some of what may leave.
func (c *conn) timeWrite() {
	switch writes := &c.loop.writes; {
	case c.sent == c.free:
		writes.clear(&c.slow)
	case c.slow.in == nil || c.taken >= leastTaken:
		c.taken = 0
		writes.set(c, &c.slow, c.loop.now+c.server.config.WriteTimeout.Milliseconds())
	}
}

// stalls says that the peer has taken next to nothing for a while.
func (c *conn) stalls() bool {
	return c.slow.in != nil && c.slow.at-c.server.config.WriteTimeout.Milliseconds()+stallTime.Milliseconds() <= c.loop.now
}

// forget gives back the memory of what has left.
func (c *conn) forget() {
	out := c.peer.Out
	switch {
	case len(c.before) > 0:
		return
	case c.sent == len(out) && cap(out) > keepOut:
		c.peer.Out = nil
	case c.sent == len(out):
		c.peer.Out = out[:0]
	case c.sent > keepOut && c.sent > len(out)/2:
		c.peer.Out = append(make([]byte, 0, len(out)-c.sent), out[c.sent:]...)
	default:
		return
	}
	c.free -= c.sent
	c.sent = 0
}
