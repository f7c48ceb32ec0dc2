package netproto

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
)

// conn is the reading half of a connection. Its reader goroutine owns all fields but the atomic
// ones.
type conn struct {
	server *Server
	nc     *net.TCPConn
	out    *output
	peer   *Peer
	remote netip.Addr

	buf   []byte // buf[:have] was received and not served
	have  int
	begun bool      // the first byte was looked at
	grow  bool      // reads fill the buffer: a larger one saves system calls
	timed bool      // the deadline for the rest of a frame runs
	until time.Time // that deadline

	draining atomic.Bool // set by drain
	evicted  atomic.Bool // set by evict
	parked   atomic.Bool // see blocked.go
}

func newConn(s *Server, nc *net.TCPConn, remote netip.Addr) *conn {
	out := newOutput(nc, s.config.WriteTimeout)
	_ = nc.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: keepAlive, Interval: keepAlive, Count: 3})
	c := &conn{server: s, nc: nc, out: out, remote: remote, buf: make([]byte, minReadBuffer)}
	c.peer = newPeer(s.config.Protocol, s.config.Broker, out)
	c.peer.wake = c.wake
	return c
}

// run reads and serves until the end. It returns when the connection is closed.
func (c *conn) run() {
	err := c.loop()
	dead, last := false, []byte(nil)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, errDrained):
		c.server.config.Logger.Debug("connection ended", "remote", c.remote, "unfinished_bytes", c.have)
	case errors.Is(err, net.ErrClosed), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE),
		errors.Is(err, broker.ErrClosed):
		dead = true
	default:
		// The peer broke the protocol or a limit. Most protocols cannot tell the peer, so the log does.
		c.server.config.Logger.Warn("connection closed", "protocol", c.server.config.Protocol.Name(), "remote", c.remote, "error", err)
		c.out.linger()
		if r, ok := c.server.config.Protocol.(Refuser); ok && (err == ErrMemory || err == ErrBinary) {
			last = r.Refusal(err)
		}
	}
	c.server.config.Buffers.resize(c, 0)
	c.buf = nil
	c.peer.close(dead, last)
	c.out.waitEnd()
}

var errDrained = errors.New("server is draining")

func (c *conn) loop() error {
	for {
		if err := c.read(); err != nil {
			return err
		}
		if first := c.buf[0]; !c.begun && first < ' ' && first != '\r' && first != '\n' {
			return ErrBinary
		}
		c.begun = true
		if err := c.serve(); err != nil {
			return err
		}
	}
}

// read waits for at least one byte and appends what has arrived to the buffer.
func (c *conn) read() error {
	c.makeRoom()
	if err := c.armFrameDeadline(); err != nil {
		return err
	}
	if c.evicted.Load() {
		return ErrMemory
	}
	if c.draining.Load() {
		return c.readArrived()
	}
	n, err := c.receive()
	c.have += n
	switch {
	case n > 0:
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded) && (c.draining.Load() || c.evicted.Load()):
		return c.read()
	case errors.Is(err, os.ErrDeadlineExceeded) && (!c.timed || time.Now().Before(c.until)):
		c.timed = c.have == 0 // a wake came late: the deadline is set anew
		return c.read()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("frame is not complete %v after its first byte", c.server.config.FrameTimeout)
	}
	return err
}

// longReads lets the readers of long requests copy bytes one after the other. When hundreds do so
// at a time, goroutines that serve others wait behind all of them.
var longReads sync.Mutex

// receive waits for bytes and takes them.
func (c *conn) receive() (n int, err error) {
	if len(c.buf) <= maxReadBuffer {
		return c.nc.Read(c.buf[c.have:])
	}
	var readErr error
	err = c.out.raw.Read(func(fd uintptr) bool {
		longReads.Lock()
		defer longReads.Unlock()
		for readErr = syscall.EINTR; readErr == syscall.EINTR; {
			n, readErr = syscall.Read(int(fd), c.buf[c.have:])
		}
		return readErr != syscall.EAGAIN
	})
	if err = errors.Join(err, readErr); err == nil && n == 0 {
		err = io.EOF
	}
	return max(n, 0), err
}

// armFrameDeadline bounds the time for the rest of a frame that has begun, and clears the bound
// when none has.
func (c *conn) armFrameDeadline() error {
	begun := c.have > 0
	if begun == c.timed || c.draining.Load() {
		return nil
	}
	c.timed, c.until = begun, time.Time{}
	if begun {
		c.until = time.Now().Add(c.server.config.FrameTimeout)
	}
	if err := c.nc.SetReadDeadline(c.until); err != nil {
		return err
	}
	if c.draining.Load() { // drain came between, and its deadline may have been overwritten
		return c.nc.SetReadDeadline(time.Now())
	}
	return nil
}

// readArrived takes what the kernel holds, without waiting for more.
func (c *conn) readArrived() error {
	n := 0
	var readErr error
	if err := c.out.raw.Control(func(fd uintptr) { n, readErr = syscall.Read(int(fd), c.buf[c.have:]) }); err != nil {
		return err
	}
	c.have += max(n, 0)
	switch {
	case readErr == syscall.EAGAIN:
		return errDrained
	case readErr == nil && n == 0:
		return io.EOF
	case readErr == syscall.EINTR:
		return nil
	}
	return readErr
}

// makeRoom makes room for a read. The buffer doubles when reads fill it, so memory follows the
// bytes that have arrived, not those that a frame announces. A buffer that a long frame has grown
// shrinks when it is empty.
func (c *conn) makeRoom() {
	var want int
	switch {
	case c.have == len(c.buf), c.grow && len(c.buf) < maxReadBuffer:
		want = 2 * len(c.buf)
	case c.have == 0 && len(c.buf) > maxReadBuffer:
		want = maxReadBuffer
	default:
		return
	}
	c.grow = false
	if c.server.config.Buffers.resize(c, want); c.evicted.Load() {
		return
	}
	if want > maxReadBuffer {
		longReads.Lock()
		defer longReads.Unlock()
	}
	buf := make([]byte, want)
	copy(buf, c.buf[:c.have])
	c.buf = buf
}

// serve hands the session what was received, until only the beginning of a frame is left. It pauses
// while too much is outstanding: a peer that does not read is not read.
func (c *conn) serve() error {
	full := c.have == len(c.buf)
	served := false
	for stop := More; stop != Incomplete && c.have > 0; {
		n, why, err := c.serveSome()
		stop, served = why, served || n > 0
		if err != nil {
			return err
		}
		if stop == Blocked {
			if err := c.waitUnblocked(); err != nil {
				return err
			}
		}
		if !c.peer.waitBelow(c.server.config.MaxOutstandingBytes) {
			return net.ErrClosed
		}
	}
	c.grow = full && served
	return nil
}

// serveSome hands the session what was received, until it stops for any reason but that others
// should have their turn.
func (c *conn) serveSome() (n int, stop Stop, err error) {
	defer func() {
		if n > 0 { // the beginning of a long request stays where it is
			c.have = copy(c.buf, c.buf[n:c.have])
		}
	}()
	for stop = More; stop == More && n < c.have && err == nil; {
		var took int
		took, stop, err = c.peer.serve(c.buf[n:c.have])
		n += took
		if took > 0 {
			c.clearFrameDeadline()
		}
		switch {
		case stop != More:
		case !c.peer.waitBelow(c.server.config.MaxOutstandingBytes):
			return n, stop, net.ErrClosed
		case took == 0 && c.hungUp(): // nobody waits for the rest of the request
			return n, stop, io.EOF
		}
	}
	return n, stop, err
}

// clearFrameDeadline notes that a frame was completed: the next one gets its own time.
func (c *conn) clearFrameDeadline() {
	if c.timed {
		c.timed = false
		_ = c.nc.SetReadDeadline(time.Time{})
	}
}

// drain makes the reader finish with what has arrived. Any goroutine may call it.
func (c *conn) drain() {
	c.draining.Store(true)
	_ = c.nc.SetReadDeadline(time.Now())
}

// evict makes the reader end, as its buffer is too large. Any goroutine may call it.
func (c *conn) evict() {
	c.evicted.Store(true)
	_ = c.nc.SetReadDeadline(time.Now())
	if c.peer.OutstandingBytes() >= c.server.config.MaxOutstandingBytes { // the reader waits for a peer that does not read
		c.out.close()
	}
}
