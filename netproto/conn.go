package netproto

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"syscall"

	"github.com/holdfast-queue/holdfast/broker"
)

// link is the socket below a connection, as the loop sees it. No method blocks. It tells the loop
// what the connection watches, and when the peer has hung up.
type link interface {
	// start begins to tell c.
	start(c *conn) error
	// read takes what has arrived: nothing and no error if that is nothing, io.EOF at the end.
	read(buf []byte) (n int, err error)
	// write sends what it can of data, and returns how much has left. The next write begins with the
	// first byte that has not. What has not left stays as it is until then.
	write(data []byte) (n int, err error)
	// watch says what the loop wants to be told of.
	watch(w watch)
	// drained says that all that had arrived when drain was called was read.
	drained() bool
	drain()
	// discard takes what has arrived and drops it.
	discard() (n int, err error)
	closeWrite() error
	close()
}

// watch names what the loop wants to be told of.
type watch struct{ reads, writes, hangUp bool }

// conn is a connection: it hands what arrives to its session, and sends what that replies. The
// loop's goroutine owns it. It is the broker.Receiver of its consumer.
type conn struct {
	loop        *Loop
	server      *Server
	link        link
	remote      netip.AddrPort
	local       net.Addr // see Peer.Local
	certificate string   // see Peer.Certificate
	user        string   // see Peer.User
	peer        Peer
	session     Session
	consumer    *broker.Conn

	phase  phase
	inbox  // see inbox.go
	output // see output.go

	readable bool // the link has told of something to read
	hungUp   bool // and that the peer has hung up
	broken   bool // and that nothing can be read or sent any more
	partial  bool // and that it keeps what it cannot give before more arrives

	evicted bool  // in Loop.evicted, as it holds too much memory
	listed  bool  // in Loop.ready, Loop.next or Loop.fair
	known   bool  // its session has served something
	mean    int64 // of what its last turns took, in microseconds, see fair.charge
	touched bool  // in Loop.touched
	holding bool  // in Loop.holding
	watched watch
	frame   deadline // for the rest of a request
	slow    deadline // for the peer to take more
	linger  deadline
	taken   int // bytes that the peer took since slow was set
	dropped int // bytes that a lingering end has dropped
	held    int // bytes that the session keeps
	owed    int // and of replies
	counted int // of Buffers

	runs int64 // since when the session serves, on the steady clock
}

// phase is where a connection is in its life. It only goes on, from any of the first three to
// finishing or refusing, and from all to closed:
//
//	open --> draining --> ending --+--> finishing ---------------+--> closed
//	                               +--> refusing --> lingering --+
type phase uint8

const (
	open      phase = iota // requests are read and carried out
	draining               // the server ends: what had arrived is read and carried out
	ending                 // all was read: what is whole of it is carried out
	finishing              // no request is carried out any more: what was replied is sent
	refusing               // the same of one that broke the protocol or a limit
	lingering              // all is sent: what still comes is dropped until the peer sees the end
	closed
)

// start lets the loop serve the connection.
func (c *conn) start() {
	if c.loop.isOver() {
		c.link.close()
		c.server.remove(c)
		return
	}
	c.loop.conns[c] = struct{}{}
	c.peer.c = c
	c.consumer = c.loop.tx.Attach(c, c.server.config.Protocol.Delivery())
	c.session = c.server.config.Protocol.Open(&c.peer)
	if err := c.link.start(c); err != nil {
		c.finish(err)
	} else if c.server.isClosing() { // since it was accepted
		c.drain()
	}
	c.review()
}

// review ends the connection if its session refuses it.
func (c *conn) review() {
	if s, ok := c.session.(Guarded); ok && c.phase < finishing {
		if why := s.Refused(c.loop.tx); why != nil {
			c.touch()
			c.finish(why)
		}
	}
}

// drain ends the connection when it has served what has arrived.
func (c *conn) drain() {
	c.phase, c.readable = max(c.phase, draining), true
	c.link.drain()
	c.loop.again(c)
}

// enlist adds c to a list of connections that have something to do, unless it is in one.
func (c *conn) enlist(list []*conn) []*conn {
	if c.listed || c.phase == closed {
		return list
	}
	c.listed = true
	return append(list, c)
}

// turn does what there is to do for the connection in a turn of the loop.
func (c *conn) turn() {
	switch {
	case c.phase == closed:
		return
	case c.phase == lingering:
		c.drop()
	case c.broken:
		c.finish(syscall.ECONNRESET)
	default:
		c.send()
	}
	if c.phase < finishing {
		c.serve()
		c.server.config.Buffers.count(c) // it may wait for other names
	}
	c.watch()
}

// evict ends a connection that held the most of all, unless its peer takes much now.
func (c *conn) evict() {
	c.evicted = false
	if c.send(); !c.evicted {
		return
	}
	c.evicted = false
	if c.stalls() || c.requests() == 0 {
		c.finish(errUnread)
	} else {
		c.finish(ErrMemory)
	}
}

// watch tells the link what the loop wants to know.
func (c *conn) watch() {
	w := watch{
		reads:  c.phase == lingering || c.reads(),
		writes: c.sent < c.free,
		hangUp: !c.hungUp,
	}
	if w != c.watched && c.phase != closed {
		c.watched = w
		c.link.watch(w)
	}
}

// serve reads what has arrived, and has the session carry it out.
func (c *conn) serve() {
	in, err := c.receive()
	if err == nil && !c.known && len(in) > 0 && in[0] < ' ' && in[0] != '\r' && in[0] != '\n' {
		err = ErrBinary
	}
	if err != nil {
		c.finish(err)
		return
	}
	n := 0
	switch {
	case c.blocked():
		if c.hungUp || c.phase > open {
			err = io.EOF
		}
	case c.pause == none:
		n, err = c.carryOut(in)
	}
	c.keep(in, n)
	c.timeFrame(n > 0)
	if err != nil {
		c.finish(err)
	}
}

// carryOut has the session carry out the requests in the buffer, and returns how many bytes they
// had. It returns io.EOF if the connection is to serve nothing any more.
func (c *conn) carryOut(in []byte) (n int, err error) {
	stop := Incomplete
	if c.tried < len(in) {
		c.loop.tx.As(c.consumer)
		c.announced, c.runs, c.known = 0, c.loop.looked, true
		n, stop, err = c.session.Serve(c.loop.tx, in)
		c.touch()
		if c.reserved > 0 && n > 0 {
			c.server.config.Buffers.release(c)
		}
		if c.Unsent() >= c.server.config.MaxOutstandingBytes {
			c.pause = full
		}
		c.server.config.Buffers.reserve(c)
		if c.tried = 0; stop == Incomplete {
			c.tried = len(in) - n
		}
		if err != nil {
			return n, err
		}
	}

	// What comes next: another turn, a pause, or the end.
	switch {
	case stop == Unfinished && c.hungUp:
		return n, io.EOF
	case stop == Blocked && (c.hungUp || c.phase > open) || stop == More || stop == Unfinished:
		c.loop.again(c)
	case stop == Later && c.pause == none:
		c.pause, c.loop.late = late, append(c.loop.late, c)
	case stop == Later, stop == Blocked, c.pause == noRoom:
	case c.phase == ending, c.phase == draining && !c.readable && c.link.drained():
		return n, io.EOF
	case c.hungUp, c.readable:
		c.readable = true
		c.loop.again(c)
	}
	return n, nil
}

var errNotRead = fmt.Errorf("peer took less than %d bytes in time", leastTaken)

// finish ends the serving. The connection is closed when all is sent that there is to send, or at
// once if nobody is there to get it.
func (c *conn) finish(why error) {
	dead, last := c.broken || why == errNotRead || why == errUnread, []byte(nil)
	if c.phase >= finishing {
		if dead {
			c.close()
		}
		return
	}
	c.phase = finishing
	c.loop.frames.clear(&c.frame)
	switch log := c.server.config.Logger; {
	case errors.Is(why, io.EOF):
		log.Debug("connection ended", "remote", c.remote.Addr(), "unfinished_bytes", len(c.in))
	case errors.Is(why, net.ErrClosed), errors.Is(why, syscall.ECONNRESET), errors.Is(why, syscall.EPIPE), errors.Is(why, io.ErrClosedPipe), errors.Is(why, broker.ErrClosed):
		dead = true
	default:
		// The peer broke the protocol or a limit. Most protocols cannot tell the peer, so the log does.
		log.Warn("connection closed", "protocol", c.server.config.Protocol.Name(), "remote", c.remote.Addr(), "error", why)
		c.phase = refusing
		if r, ok := c.server.config.Protocol.(Refuser); ok && (why == ErrMemory || why == ErrBinary) {
			last = r.Refusal(why)
		}
	}
	if s, ok := c.session.(Closer); ok {
		s.Close(c.loop.tx)
	}
	c.in, c.held, c.owed = nil, 0, 0
	c.loop.tx.Detach(c.consumer)
	c.server.config.Buffers.count(c)
	c.server.config.Buffers.release(c)
	c.peer.Out = append(c.peer.Out, last...)
	c.touch()
	switch {
	case dead:
		c.close()
	case c.Unsent() == 0:
		c.end()
	}
}

// end closes a connection that has sent all. One that broke the protocol waits a while until the
// peer has seen the end: closing with requests unread would reset the connection, and the peer
// might lose replies that are on their way.
func (c *conn) end() {
	if c.phase != refusing || c.link.closeWrite() != nil {
		c.close()
		return
	}
	c.phase = lingering
	c.loop.lingering.set(c, &c.linger, c.loop.now+lingerTime.Milliseconds())
	c.loop.again(c)
}

// drop drops what a connection at its end still gets.
func (c *conn) drop() {
	for {
		n, err := c.link.discard()
		if c.dropped += n; err != nil || c.broken || c.dropped > lingerBytes {
			c.close()
			return
		}
		if n == 0 {
			return
		}
	}
}

// close ends the connection at once; what has not left is lost.
func (c *conn) close() {
	switch {
	case c.phase == closed:
		return
	case c.phase < finishing:
		c.finish(net.ErrClosed) // which closes it
		return
	}
	c.phase = closed
	c.loop.writes.clear(&c.slow)
	c.loop.lingering.clear(&c.linger)
	c.dropAll()
	delete(c.loop.conns, c)
	c.link.close()
	c.server.remove(c)
}

// Deliver implements broker.Receiver.
func (c *conn) Deliver(packets []broker.Packet) {
	c.session.(Subscriber).Deliver(packets)
	c.touch()
}

// Again implements broker.Receiver.
func (c *conn) Again(tx *broker.Tx, queue []byte) {
	c.session.(Waiter).Again(tx, queue)
	c.touch()
	if c.untried() || c.hungUp || c.phase > open {
		c.loop.again(c)
	}
}

// Address implements broker.Receiver.
func (c *conn) Address() string { return c.remote.String() }
