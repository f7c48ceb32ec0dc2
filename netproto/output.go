package netproto

import (
	"io"
	"net"
	"sync"
	"syscall"
	"time"
)

// Output is the sending half of a connection. Bytes are appended by the broker's completer, and by
// the connection's reader while the completer owes it nothing, and leave at Flush: at once if the
// kernel takes them, which is a single system call and no hand-over; otherwise a goroutine of the
// connection's own carries the rest, so that a slow peer delays nobody else.
type Output struct {
	conn    *net.TCPConn
	raw     syscall.RawConn
	timeout time.Duration
	onDrain func() // see OnDrain; set before the first Append

	mu      sync.Mutex
	drained sync.Cond // signalled at Flush, when bytes have left, and when the output has ended
	pending []byte    // appended, not yet with the kernel or the carrier
	moving  int       // bytes the carrier is writing
	carrier bool      // a carrier goroutine runs
	finish  bool      // close when pending is empty
	linger  bool      // see Linger
	err     error     // set when the connection can take no more

	n      int   // result of the system call in try, which runs under mu
	tryErr error // the same
	try    func(fd uintptr) bool
}

const (
	keepPending = 64 << 10    // the most buffer that an output with nothing to send holds on to
	lingerTime  = time.Second // how long a lingering end waits for the peer's
	lingerBytes = 64 << 20    // and how much it reads meanwhile
)

func newOutput(conn *net.TCPConn, timeout time.Duration) (*Output, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	o := &Output{conn: conn, raw: raw, timeout: timeout}
	o.drained.L = &o.mu
	o.try = func(fd uintptr) bool {
		o.n, o.tryErr = syscall.Write(int(fd), o.pending)
		return true // never wait here: the carrier does that
	}
	return o, nil
}

// Append adds bytes with fn, which gets the unsent bytes and returns them grown. It reports
// nothing: what is appended to an ended output goes nowhere.
func (o *Output) Append(fn func(dst []byte) []byte) {
	o.mu.Lock()
	if o.err == nil {
		o.pending = fn(o.pending)
	}
	o.mu.Unlock()
}

// OnDrain has fn called, without a lock held, after a slow peer has taken some of what waited for
// it. It must be set before the first Append.
func (o *Output) OnDrain(fn func()) { o.onDrain = fn }

// Backlog is how many bytes wait to leave.
func (o *Output) Backlog() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return int64(len(o.pending) + o.moving)
}

// Flush sends what was appended. It does not block.
func (o *Output) Flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.carrier || o.err != nil {
		o.drained.Broadcast() // what the session owes may have gone down
		return
	}
	if len(o.pending) > 0 {
		o.n, o.tryErr = 0, nil
		if err := o.raw.Write(o.try); err != nil {
			o.end(err)
			return
		}
		if o.n > 0 {
			o.pending = o.pending[:copy(o.pending, o.pending[o.n:])]
		}
		if o.tryErr != nil && o.tryErr != syscall.EAGAIN && o.tryErr != syscall.EINTR {
			o.end(o.tryErr)
			return
		}
	}
	switch {
	case len(o.pending) > 0:
		o.carrier = true
		go o.carry() // ends when nothing is pending or the connection fails; Close makes it fail
	case o.finish:
		o.finished()
	case cap(o.pending) > keepPending:
		o.pending = nil
	}
	o.drained.Broadcast()
}

// carry writes what is pending until nothing is.
func (o *Output) carry() {
	var spare []byte
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.err == nil && len(o.pending) > 0 {
		out := o.pending
		o.pending, o.moving = spare[:0], len(out)
		o.mu.Unlock()
		err := o.write(out)
		o.mu.Lock()
		o.moving = 0
		if spare = out; cap(spare) > keepPending {
			spare = nil
		}
		if err != nil {
			o.end(err)
		}
		o.drained.Broadcast()
		if o.onDrain != nil {
			o.mu.Unlock()
			o.onDrain()
			o.mu.Lock()
		}
	}
	o.carrier = false
	if o.finish && o.err == nil {
		o.finished()
	}
}

// write sends all of out, giving the peer the time-out for each piece.
func (o *Output) write(out []byte) error {
	const piece = 16 << 10
	for len(out) > 0 {
		if err := o.conn.SetWriteDeadline(time.Now().Add(o.timeout)); err != nil {
			return err
		}
		n, err := o.conn.Write(out[:min(piece, len(out))])
		if err != nil {
			return err
		}
		out = out[n:]
	}
	// A deadline left behind would later fail a write that does not wait at all.
	return o.conn.SetWriteDeadline(time.Time{})
}

// Finish closes the connection once all that was appended has left; the next Flush at the latest
// begins with that.
func (o *Output) Finish() {
	o.mu.Lock()
	o.finish = true
	o.mu.Unlock()
}

// WaitBelow blocks until fewer than limit bytes are unsent, those that owed counts included, or
// the output has ended; it then returns false. Whatever lowers owed must be followed by Flush.
func (o *Output) WaitBelow(limit int64, owed func() int64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.err == nil {
		if owed()+int64(len(o.pending)+o.moving) < limit {
			return true
		}
		o.drained.Wait()
	}
	return false
}

// waitEnd blocks until the output has ended.
func (o *Output) waitEnd() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.err == nil {
		o.drained.Wait()
	}
}

// Linger makes the end of the connection wait, for a short while, until the peer has seen it.
// Closing with requests unread would otherwise reset the connection, and the peer might lose
// replies that are on their way.
func (o *Output) Linger() {
	o.mu.Lock()
	o.linger = true
	o.mu.Unlock()
}

// finished ends an output whose bytes have all left; mu is held.
func (o *Output) finished() {
	if !o.linger {
		o.end(net.ErrClosed)
		return
	}
	o.err = net.ErrClosed
	o.drained.Broadcast()
	go func() { // ends at the deadline
		defer o.conn.Close()
		if o.conn.CloseWrite() != nil || o.conn.SetReadDeadline(time.Now().Add(lingerTime)) != nil {
			return
		}
		_, _ = io.Copy(io.Discard, io.LimitReader(o.conn, lingerBytes))
	}()
}

// end closes the connection; mu is held.
func (o *Output) end(err error) {
	if o.err == nil {
		o.err = err
		o.pending = nil
		_ = o.conn.Close()
		o.drained.Broadcast()
	}
}

// Close ends the connection at once; what has not left is lost.
func (o *Output) Close() {
	o.mu.Lock()
	o.end(net.ErrClosed)
	o.mu.Unlock()
}
