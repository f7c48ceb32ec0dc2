package netproto

import (
	"net"
	"sync"
	"syscall"
	"time"
)

// output is the sending half of a connection. The broker's completer appends to it, and so does the
// connection's reader while the broker has no reply queued for it. Bytes leave at flush: in one
// system call if the kernel takes them all. Otherwise a goroutine of the connection's own writes
// the rest, so that a slow peer delays nobody else.
type output struct {
	conn    *net.TCPConn
	raw     syscall.RawConn
	timeout time.Duration
	// onProgress is called, without a lock held, when a slow peer has taken some of what waited for
	// it. It is set before the first append.
	onProgress func()

	mu        sync.Mutex
	changed   sync.Cond // signalled by flush, when bytes have left, and at the end
	unwritten []byte    // appended, and neither with the kernel nor with writeLoop
	inFlight  int       // bytes that writeLoop is writing
	writing   bool      // writeLoop runs
	finishing bool      // close when nothing is unwritten
	lingering bool      // see linger
	err       error     // why the connection takes no more; nil while it does

	// The one system call of flush; mu is held.
	try    func(fd uintptr) bool
	n      int
	tryErr error
}

const (
	keepBuffer  = 64 << 10    // the largest buffer that an output with nothing to send keeps
	lingerTime  = time.Second // how long a lingering end waits for the peer's
	lingerBytes = 64 << 20    // how much it reads meanwhile
)

// discarded stands for what is read and not kept: with MSG_TRUNC the kernel copies nothing.
var discarded [1 << 20]byte

func newOutput(conn *net.TCPConn, timeout time.Duration) *output {
	raw, _ := conn.SyscallConn() // fails for a nil only
	o := &output{conn: conn, raw: raw, timeout: timeout}
	o.changed.L = &o.mu
	o.try = func(fd uintptr) bool {
		o.n, o.tryErr = syscall.Write(int(fd), o.unwritten)
		return true // never wait here: writeLoop does that
	}
	return o
}

// append lets encode add bytes to those that are unwritten. After the end it does nothing.
func (o *output) append(encode func(dst []byte) []byte) {
	o.mu.Lock()
	if o.err == nil {
		o.unwritten = encode(o.unwritten)
	}
	o.mu.Unlock()
}

// unwrittenBytes is how many bytes have not left yet.
func (o *output) unwrittenBytes() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return int64(len(o.unwritten) + o.inFlight)
}

// flush sends what was appended. It does not block.
func (o *output) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.writing || o.err != nil {
		o.changed.Broadcast() // the broker may have fewer bytes queued
		return
	}
	if len(o.unwritten) > 0 {
		o.n, o.tryErr = 0, nil
		if err := o.raw.Write(o.try); err != nil {
			o.end(err)
			return
		}
		if o.n > 0 {
			o.unwritten = o.unwritten[:copy(o.unwritten, o.unwritten[o.n:])]
		}
		if o.tryErr != nil && o.tryErr != syscall.EAGAIN && o.tryErr != syscall.EINTR {
			o.end(o.tryErr)
			return
		}
	}
	switch {
	case len(o.unwritten) > 0:
		o.writing = true
		go o.writeLoop() // ends when nothing is unwritten or the connection fails; close makes it fail
	case o.finishing:
		o.finished()
	case cap(o.unwritten) > keepBuffer:
		o.unwritten = nil
	}
	o.changed.Broadcast()
}

// writeLoop writes until nothing is unwritten.
func (o *output) writeLoop() {
	var spare []byte
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.err == nil && len(o.unwritten) > 0 {
		out := o.unwritten
		o.unwritten, o.inFlight = spare[:0], len(out)
		o.mu.Unlock()
		err := o.write(out)
		o.mu.Lock()
		o.inFlight = 0
		if spare = out; cap(spare) > keepBuffer {
			spare = nil
		}
		if err != nil {
			o.end(err)
		}
		o.changed.Broadcast()
		o.mu.Unlock()
		o.onProgress()
		o.mu.Lock()
	}
	o.writing = false
	if o.finishing && o.err == nil {
		o.finished()
	}
}

// write sends all of out, giving the peer the time-out for each piece.
func (o *output) write(out []byte) error {
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

// finish closes the connection once all that was appended has left. It takes effect at the next
// flush at the latest.
func (o *output) finish() {
	o.mu.Lock()
	o.finishing = true
	o.mu.Unlock()
}

// waitBelow blocks until fewer than limit bytes are outstanding: unwritten here, or queued with the
// broker. It returns false if the output has ended. Whatever lowers queued calls flush afterwards.
func (o *output) waitBelow(limit int64, queued func() int64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.err == nil {
		if queued()+int64(len(o.unwritten)+o.inFlight) < limit {
			return true
		}
		o.changed.Wait()
	}
	return false
}

// waitEnd blocks until the output has ended.
func (o *output) waitEnd() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.err == nil {
		o.changed.Wait()
	}
}

// linger makes the end of the connection wait, for a short while, until the peer has seen it.
// Closing with requests unread would reset the connection, and the peer might lose replies that
// are on their way.
func (o *output) linger() {
	o.mu.Lock()
	o.lingering = true
	o.mu.Unlock()
}

// finished ends an output whose bytes have all left; mu is held.
func (o *output) finished() {
	if !o.lingering {
		o.end(net.ErrClosed)
		return
	}
	o.err = net.ErrClosed
	o.changed.Broadcast()
	go func() { // ends at the deadline
		defer o.conn.Close()
		if o.conn.CloseWrite() != nil || o.conn.SetReadDeadline(time.Now().Add(lingerTime)) != nil {
			return
		}
		left := lingerBytes
		_ = o.raw.Read(func(fd uintptr) bool {
			longReads.Lock()
			defer longReads.Unlock()
			for left > 0 {
				n, _, err := syscall.Recvfrom(int(fd), discarded[:], syscall.MSG_TRUNC)
				if n <= 0 {
					return err != syscall.EAGAIN
				}
				left -= n
			}
			return true
		})
	}()
}

// end closes the connection; mu is held.
func (o *output) end(err error) {
	if o.err == nil {
		o.err = err
		o.unwritten = nil
		_ = o.conn.Close()
		o.changed.Broadcast()
	}
}

// close ends the connection at once; what has not left is lost.
func (o *output) close() {
	o.mu.Lock()
	o.end(net.ErrClosed)
	o.mu.Unlock()
}
