package netproto

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// fed is a link whose socket a goroutine reads, and another one writes. So it may be any stream.
type fed struct {
	nc net.Conn
	c  *conn

	mu      sync.Mutex
	room    sync.Cond // signalled when in is taken, and at the end
	in      []byte    // read and not taken, at most maxReadBuffer
	err     error     // why nothing more is read
	writing bool
	wrote   int   // bytes of it that have left since write was called
	failed  error // of a write
	ending  bool  // the peer is to be told of the end when nothing is being written
	closed  bool
}

func newFed(nc net.Conn, c *conn) *fed {
	f := &fed{nc: nc, c: c}
	f.room.L = &f.mu
	return f
}

// feed reads until the end. The connection learns of a hang-up when in has room for it.
func (f *fed) feed() {
	buf, drains := make([]byte, minReadBuffer), false
	for {
		n, err := f.nc.Read(buf)
		late := errors.Is(err, os.ErrDeadlineExceeded)
		if late && !drains || drains && n > 0 { // what has arrived is taken before the next deadline
			_ = f.nc.SetReadDeadline(time.Now().Add(drainTime))
		}
		if late && !drains {
			drains = true
			continue
		}
		f.mu.Lock()
		for len(f.in) > 0 && len(f.in)+n > maxReadBuffer && !f.closed {
			f.room.Wait()
		}
		f.in, f.err = append(f.in, buf[:n]...), err
		closed := f.closed
		f.mu.Unlock()
		f.c.loop.tell(f)
		if err != nil || closed {
			return
		}
		if n == len(buf) && n < maxReadBuffer {
			buf = make([]byte, 2*n)
		}
	}
}

func (f *fed) read(buf []byte) (n int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n = copy(buf, f.in)
	if f.in = f.in[:copy(f.in, f.in[n:])]; len(f.in) == 0 && cap(f.in) > 2*maxReadBuffer {
		f.in = nil
	}
	f.room.Signal()
	if n == 0 && f.err != nil && !errors.Is(f.err, os.ErrDeadlineExceeded) {
		return 0, f.err
	}
	return n, nil
}

// ask tells the connection what has happened. The loop calls it.
func (f *fed) ask() {
	f.mu.Lock()
	defer f.mu.Unlock()
	over := f.err != nil && !errors.Is(f.err, os.ErrDeadlineExceeded)
	f.c.readable = f.c.readable || len(f.in) > 0 || over
	f.c.hungUp = f.c.hungUp || over
	f.c.broken = f.c.broken || over && !errors.Is(f.err, io.EOF) || f.failed != nil
}

// write hands some bytes to a goroutine, unless one is still writing. Nobody changes them before
// write has told that they have left.
func (f *fed) write(data []byte) (n int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.writing || f.failed != nil {
		return 0, f.failed
	}
	n, f.wrote = f.wrote, 0
	if data = data[n:]; len(data) > 0 {
		f.writing = true
		go f.flush(data[:min(len(data), maxPiece)]) // ends when they are written, or at close
	}
	return n, nil
}

func (f *fed) flush(data []byte) {
	n, err := f.nc.Write(data)
	f.mu.Lock()
	f.writing, f.wrote, f.failed = false, n, err
	if f.ending {
		_ = f.shut()
	}
	f.mu.Unlock()
	f.c.loop.tell(f)
}

func (f *fed) start(*conn) error {
	go f.feed() // ends at the end of the stream, or at close
	return nil
}

func (f *fed) watch(watch) {} // it always tells

func (f *fed) drain() { _ = f.nc.SetReadDeadline(time.Now()) }

func (f *fed) drained() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err != nil && len(f.in) == 0
}

func (f *fed) discard() (n int, err error) { return f.read(f.c.loop.arena) }

func (f *fed) closeWrite() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ending = f.writing; f.ending {
		return nil
	}
	return f.shut()
}

func (f *fed) shut() error {
	if w, ok := f.nc.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return errors.ErrUnsupported
}

func (f *fed) close() {
	_ = f.nc.Close()
	f.mu.Lock()
	f.closed = true
	f.room.Signal()
	f.mu.Unlock()
}

// poller is how the loop waits.
type poller interface {
	// wait waits until a link tells something, or wake was called, or a time has passed. It adds the
	// connections of those links to the list.
	wait(d time.Duration, ready []*conn) []*conn
	// wake ends a wait, or the next one. Any goroutine may call it.
	wake()
	close()
}

// bell is a poller that is only woken.
type bell struct {
	rung  chan struct{}
	timer *time.Timer
}

func newBell() *bell { return &bell{rung: make(chan struct{}, 1), timer: time.NewTimer(longestSleep)} }

func (b *bell) wait(d time.Duration, ready []*conn) []*conn {
	b.timer.Reset(d)
	select {
	case <-b.rung:
	case <-b.timer.C:
	}
	return ready
}

func (b *bell) wake() {
	select {
	case b.rung <- struct{}{}:
	default:
	}
}

func (b *bell) close() { b.timer.Stop() }
