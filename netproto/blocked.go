package netproto

import (
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// While a request waits (Blocked) the reader goes on reading, up to maxReadBuffer, so that it sees
// a hang-up. What it reads is served when the request has ended. The client's next request tells it
// that, or, if there is one already, wake does: then the reader is parked.

// waitUnblocked returns when no request waits any longer.
func (c *conn) waitUnblocked() error {
	c.clearFrameDeadline()
	defer c.unpark()
	for c.peer.waiting() {
		if c.have > 0 {
			c.parked.Store(true)
			if !c.peer.waiting() {
				return nil
			}
		}
		switch {
		case c.evicted.Load():
			return ErrMemory
		case c.draining.Load():
			return errDrained
		}
		err := c.readBlocked()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = c.nc.SetReadDeadline(time.Time{})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readBlocked waits for more bytes, a hang-up, or a deadline that wake or drain set.
func (c *conn) readBlocked() error {
	if c.have == len(c.buf) && c.have >= maxReadBuffer {
		return c.waitHangUp()
	}
	c.makeRoom()
	n, err := c.nc.Read(c.buf[c.have:])
	c.have += n
	if n > 0 {
		return nil
	}
	return err
}

// waitHangUp waits without reading.
func (c *conn) waitHangUp() error {
	ended := false
	err := c.out.raw.Read(func(fd uintptr) bool {
		ended = hungUp(fd)
		return ended
	})
	if ended {
		return io.EOF
	}
	return err
}

// hungUp says that the peer has hung up.
func (c *conn) hungUp() (ended bool) {
	err := c.out.raw.Control(func(fd uintptr) { ended = hungUp(fd) })
	return ended || err != nil
}

func hungUp(fd uintptr) bool {
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
	_, err := unix.Poll(p, 0)
	return err == nil && p[0].Revents != 0
}

// wake ends the read of a parked reader. Any goroutine may call it.
func (c *conn) wake() {
	if c.parked.CompareAndSwap(true, false) {
		_ = c.nc.SetReadDeadline(time.Now())
	}
}

// unpark undoes what parking has left behind.
func (c *conn) unpark() {
	if !c.parked.CompareAndSwap(true, false) {
		c.timed = c.have == 0 // so that the next read sets its deadline, whatever wake has set
	}
}
