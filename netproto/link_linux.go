package netproto

import (
	"io"
	"net"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// raw is a link that the loop reads and writes itself. Its system calls never block, so they are
// made without a word to the scheduler of goroutines.
type raw struct {
	fd      int
	poll    *epoll
	started bool
}

// newLink makes the link of a connection. A raw one has a copy of the descriptor, since Go's own is
// in the hands of its runtime.
func newLink(nc net.Conn, c *conn) (link, error) {
	poll, polled := c.loop.poll.(*epoll)
	tcp, ok := nc.(*net.TCPConn)
	if !ok || !polled {
		return newFed(nc, c), nil
	}
	rc, err := tcp.SyscallConn()
	if err != nil {
		return nil, err
	}
	r, copied := &raw{poll: poll}, error(nil)
	if err = rc.Control(func(fd uintptr) { r.fd, copied = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) }); err == nil {
		err = copied
	}
	if err != nil {
		return nil, err
	}
	return r, nc.Close()
}

func (r *raw) start(c *conn) error {
	r.started = true
	r.poll.add(r.fd, c)
	c.watched = watch{reads: true, hangUp: true}
	return r.poll.control(unix.EPOLL_CTL_ADD, r.fd, c.watched)
}

func (r *raw) watch(w watch) { _ = r.poll.control(unix.EPOLL_CTL_MOD, r.fd, w) }

func (r *raw) read(buf []byte) (n int, err error) {
	n, err = transfer(unix.SYS_READ, r.fd, buf)
	if n == 0 && err == nil {
		return 0, io.EOF
	}
	return ignoreAgain(n, err)
}

func (r *raw) write(data []byte) (n int, err error) {
	return ignoreAgain(transfer(unix.SYS_WRITE, r.fd, data))
}

// ignoreAgain takes the error away that says that nothing can be done now.
func ignoreAgain(n int, err error) (int, error) {
	if err == syscall.EAGAIN || err == syscall.EINTR {
		return 0, nil
	}
	return n, err
}

// transfer is read or write of a socket that does not block.
func transfer(call uintptr, fd int, buf []byte) (n int, err error) {
	done, _, errno := syscall.RawSyscall(call, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(buf))), uintptr(len(buf)))
	if errno != 0 {
		return 0, errno
	}
	return int(done), nil
}

// discard has the kernel copy nothing.
func (r *raw) discard() (n int, err error) {
	n, _, err = unix.Recvfrom(r.fd, discarded[:], unix.MSG_TRUNC)
	if n == 0 && err == nil {
		return 0, io.EOF
	}
	return ignoreAgain(max(n, 0), err)
}

// discarded stands for what is read and not kept.
var discarded [1 << 20]byte

func (r *raw) drain()            {}
func (r *raw) drained() bool     { return true }
func (r *raw) closeWrite() error { return unix.Shutdown(r.fd, unix.SHUT_WR) }

func (r *raw) close() {
	if r.started {
		r.poll.conns[r.fd] = nil
	}
	_ = unix.Close(r.fd)
}

// epoll is the poller of raw links.
type epoll struct {
	fd     int
	event  int     // an eventfd, by which wake ends a wait
	conns  []*conn // by descriptor; nil where it is none of a connection
	events [512]unix.EpollEvent
}

func newPoller(goroutines bool) (poller, error) {
	if goroutines {
		return newBell(), nil
	}
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	p := &epoll{fd: fd}
	if p.event, err = unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC); err == nil {
		p.add(p.event, nil)
		err = p.control(unix.EPOLL_CTL_ADD, p.event, watch{reads: true})
	}
	if err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *epoll) add(fd int, c *conn) {
	for fd >= len(p.conns) {
		p.conns = append(p.conns, nil)
	}
	p.conns[fd] = c
}

func (p *epoll) control(op, fd int, w watch) error {
	e := unix.EpollEvent{Fd: int32(fd)}
	if w.reads {
		e.Events |= unix.EPOLLIN
	}
	if w.writes {
		e.Events |= unix.EPOLLOUT
	}
	if w.hangUp {
		e.Events |= unix.EPOLLRDHUP
	}
	return unix.EpollCtl(p.fd, op, fd, &e)
}

// wait first looks without a word to the scheduler. Only if nothing is there it lets others have
// the processor.
func (p *epoll) wait(d time.Duration, ready []*conn) []*conn {
	n, _, errno := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.fd), uintptr(unsafe.Pointer(&p.events)), uintptr(len(p.events)), 0, 0, 0)
	if errno != 0 {
		n = 0
	}
	if n == 0 && d > 0 {
		got, _ := unix.EpollWait(p.fd, p.events[:], int((d+time.Millisecond-1)/time.Millisecond))
		n = uintptr(max(got, 0))
	}
	for _, e := range p.events[:n] {
		c := p.conns[e.Fd]
		if c == nil {
			var count [8]byte
			_, _ = unix.Read(p.event, count[:])
			continue
		}
		c.readable = c.readable || e.Events&(unix.EPOLLIN|unix.EPOLLRDHUP) != 0
		c.hungUp = c.hungUp || e.Events&unix.EPOLLRDHUP != 0
		c.broken = c.broken || e.Events&(unix.EPOLLERR|unix.EPOLLHUP) != 0
		ready = c.enlist(ready)
	}
	return ready
}

func (p *epoll) wake() {
	one := [8]byte{7: 1}
	_, _ = unix.Write(p.event, one[:])
}

func (p *epoll) close() {
	_ = unix.Close(p.fd)
	if p.event > 0 {
		_ = unix.Close(p.event)
	}
}
