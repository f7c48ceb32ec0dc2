package netproto

import (
	"io"
	"math/bits"
)

// inbox holds what has arrived and is not carried out.
type inbox struct {
	in        []byte
	tried     int // bytes of in that are no whole request; 0: they are to be looked at
	announced int // bytes of that request, see Peer.Announce
	reserved  int // and what is reserved for it
	framed    int // bytes of in when frame was set
	pause     pause
}

// pause is why nothing is read and carried out, besides a request that waits.
type pause uint8

const (
	none   pause = iota
	full         // so much is outstanding
	late         // the storage is behind, see Later; in Loop.late
	noRoom       // for the request that has begun, see reserve.go
)

// untried says that in may hold whole requests.
func (b *inbox) untried() bool { return b.tried < len(b.in) }

// blocked says that a request waits.
func (c *conn) blocked() bool { return c.consumer.Parked() }

// reads says that what arrives is taken. Behind a request that waits that is not much.
func (c *conn) reads() bool {
	return c.phase < ending && c.pause == none && (!c.blocked() || len(c.in) < maxReadBuffer)
}

// receive reads what has arrived, and returns all that was received and not carried out: in the
// loop's arena, if nothing was there before.
func (c *conn) receive() (in []byte, err error) {
	switch {
	case !c.readable || !c.reads() || c.untried() && !c.blocked():
		return c.in, nil
	case len(c.in) == 0:
		in = c.loop.arena[:0]
	case len(c.in) == cap(c.in):
		size := 2 * cap(c.in) // so memory follows the bytes that have arrived, not those that a request announces
		if c.announced > cap(c.in) {
			size = min(size, c.announced)
		}
		c.resize(size)
		fallthrough
	default:
		in = c.in
	}
	n, err := c.link.read(in[len(in):cap(in)])
	c.readable = err == nil && n > 0 && len(in)+n == cap(in)
	if len(in) > 0 {
		c.in = in[:len(in)+n]
	}
	if err == io.EOF {
		c.phase, err = ending, nil
	}
	return in[:len(in)+n], err
}

// keep keeps what was received and not carried out: all but n bytes.
func (c *conn) keep(in []byte, n int) {
	rest := in[n:]
	switch {
	case len(rest) == 0:
		c.resize(0)
	case len(c.in) > 0 && n == 0:
	case len(c.in) > 0:
		c.in = c.in[:copy(c.in, rest)]
	default:
		c.resize(max(1<<bits.Len(uint(len(rest)-1)), minReadBuffer)) // from there it doubles
		c.in = append(c.in, rest...)
	}
	if len(c.in) < maxReadBuffer && cap(c.in) > maxReadBuffer {
		c.resize(maxReadBuffer)
	}
}

// resize gives the buffer another capacity, which counts for Buffers.
func (c *conn) resize(size int) {
	if size == cap(c.in) {
		return
	}
	var in []byte
	if size > 0 {
		in = append(make([]byte, 0, size), c.in...)
	}
	c.in = in
	c.server.config.Buffers.count(c)
}

// timeFrame bounds the time for the rest of a request that has begun, or the next piece of a long
// one. It does not run while nothing is read.
func (c *conn) timeFrame(completed bool) {
	switch frames := &c.loop.frames; {
	case c.pause != none || c.blocked() || c.untried() || len(c.in) == 0 && !c.partial:
		frames.clear(&c.frame)
	case completed || c.frame.in == nil || len(c.in)-c.framed >= frameBytes:
		c.framed = len(c.in)
		frames.set(c, &c.frame, c.loop.now+c.server.config.FrameTimeout.Milliseconds())
	}
}
