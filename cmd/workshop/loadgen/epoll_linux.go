package loadgen

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// loop serves all connections from the goroutine that calls run. It makes two system calls a
// window, and no other goroutine is woken. At depth 1 that takes a quarter to a third less
// processor time than a goroutine for each connection.
type loop struct {
	r     *run
	epoll int
	conns []*conn
	paced []*conn // those of groups with a Rate
}

// conn is a window with its socket.
type conn struct {
	window
	fd      int
	index   int32 // in loop.conns; epoll reports it
	written int   // bytes of out that are written
	blocked bool  // whether epoll watches the socket for room to write
	sealed  *sealed
}

const (
	// tickMillis bounds how long the loop sleeps before it looks at the time and the context.
	tickMillis = 20
	// paceMillis bounds it where a connection waits for the time of its next window.
	paceMillis = 1
)

// dial opens the connections of all groups, or none.
func dial(ctx context.Context, r *run) (*loop, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("the connections cannot be watched: %w", err)
	}
	l := &loop{r: r, epoll: epoll}
	for _, g := range r.groups {
		for range g.Conns {
			if err := l.add(ctx, g); err != nil {
				l.close()
				return nil, fmt.Errorf("connection %d, of group %q to %s: %w", len(l.conns)+1, g.Name, r.spec.Addr, err)
			}
		}
	}
	return l, nil
}

// add opens one connection. The loop keeps a duplicate of its descriptor and closes the original,
// so that the runtime's own poller no longer watches the socket.
func (l *loop) add(ctx context.Context, g *group) error {
	dialer := net.Dialer{Timeout: dialTimeout}
	socket, err := dialer.DialContext(ctx, "tcp", l.r.spec.Addr)
	if err != nil {
		return err
	}
	defer socket.Close()
	var encrypted *sealed
	plain := socket
	if l.r.spec.TLS != nil {
		if encrypted, err = seal(ctx, socket, l.r.spec.TLS); err != nil {
			return err
		}
		plain = encrypted
	}
	if login := l.r.spec.Login; login != nil {
		if _, err := AskOn(ctx, plain, login()); err != nil {
			return err
		}
	}
	raw, err := socket.(*net.TCPConn).SyscallConn()
	if err != nil {
		return err
	}
	copied, copyErr := -1, error(nil)
	err = raw.Control(func(fd uintptr) {
		copied, copyErr = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0)
	})
	if err := errors.Join(err, copyErr); err != nil {
		return err
	}
	index := int32(len(l.conns))
	if encrypted != nil {
		encrypted.wire.fd = copied
	}
	c := &conn{window: *newWindow(g), fd: copied, index: index, sealed: encrypted}
	l.conns = append(l.conns, c)
	if g.Rate > 0 {
		l.paced = append(l.paced, c)
	}
	return unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, copied, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: index})
}

func (l *loop) close() {
	for _, c := range l.conns {
		_ = unix.Close(c.fd)
	}
	_ = unix.Close(l.epoll)
}

// run returns when the run is over, or why it failed.
func (l *loop) run(ctx context.Context) error {
	l.r.begin = time.Now()
	defer func() {
		if !l.r.over {
			l.r.end(time.Now())
		}
	}()
	if err := l.begin(l.conns); err != nil {
		return err
	}
	tick := tickMillis
	if len(l.paced) > 0 {
		tick = paceMillis
	}
	events := make([]unix.EpollEvent, len(l.conns))
	for ctx.Err() == nil {
		if now := time.Now(); now.Sub(l.r.begin) >= l.r.spec.Limit {
			l.r.end(now)
			return nil
		}
		if err := l.begin(l.paced); err != nil {
			return err
		}
		n, err := unix.EpollWait(l.epoll, events, tick)
		if err != nil && err != unix.EINTR {
			return fmt.Errorf("the connections cannot be watched: %w", err)
		}
		for _, e := range events[:max(n, 0)] {
			c := l.conns[e.Fd]
			if err := l.serve(c, e.Events); err != nil {
				return c.failed(err)
			}
			if l.r.over {
				return nil
			}
		}
	}
	return ctx.Err()
}

// begin sends the next windows of those connections that have none under way.
func (l *loop) begin(conns []*conn) error {
	for _, c := range conns {
		c.fill(time.Now())
		if err := l.write(c); err != nil {
			return c.failed(err)
		}
	}
	return nil
}

// serve reads what has come in, and writes the requests that follow from it.
func (l *loop) serve(c *conn, events uint32) error {
	for more := events&^unix.EPOLLOUT != 0; more; {
		n, err := c.read(c.in[c.partial:])
		more = c.sealed != nil // epoll does not know what the session holds
		switch {
		case err == unix.EAGAIN || err == unix.EINTR:
			more = false
		case err != nil:
			return err
		case n == 0:
			return errHungUp
		default:
			now := time.Now()
			if err := c.reply(n, now); err != nil {
				return err
			}
			c.fill(now)
		}
	}
	return l.write(c)
}

// read returns what has come in, or EAGAIN.
func (c *conn) read(p []byte) (int, error) {
	if c.sealed != nil {
		return c.sealed.Read(p)
	}
	return unix.Read(c.fd, p)
}

// write sends as much of out as the socket takes now.
func (l *loop) write(c *conn) error {
	out := &c.out
	if c.sealed != nil {
		if err := c.sealed.take(c.out); err != nil {
			return err
		}
		c.out, out = c.out[:0], &c.sealed.wire.out
	}
	for c.written < len(*out) {
		n, err := unix.Write(c.fd, (*out)[c.written:])
		if err == unix.EINTR {
			continue
		}
		if err == unix.EAGAIN {
			return l.watch(c, true)
		}
		if err != nil {
			return err
		}
		c.written += n
	}
	*out, c.written = (*out)[:0], 0
	return l.watch(c, false)
}

func (l *loop) watch(c *conn, blocked bool) error {
	if c.blocked == blocked {
		return nil
	}
	c.blocked = blocked
	events := uint32(unix.EPOLLIN)
	if blocked {
		events |= unix.EPOLLOUT
	}
	return unix.EpollCtl(l.epoll, unix.EPOLL_CTL_MOD, c.fd, &unix.EpollEvent{Events: events, Fd: c.index})
}
