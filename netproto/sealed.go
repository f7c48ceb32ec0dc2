package netproto

import (
	"crypto/tls"
	"errors"
	"io"
	"syscall"
)

// sealed is a link over TLS, after the handshake. The loop encrypts and decrypts: that takes less
// time than to have goroutines do it. What is below never waits, so TLS does not.
type sealed struct {
	link // of the encrypted bytes
	conn *conn
	tls  *tls.Conn

	dry     bool   // nothing more has arrived in this read
	fetched int    // bytes that have arrived in this read, and given none to the connection
	out     []byte // encrypted, and not sent
	held    int    // bytes of the connection that were encrypted, and that write has not told of
}

// start has the connection look for what has come with the handshake.
func (s *sealed) start(c *conn) error {
	c.readable = true
	c.loop.again(c)
	return s.link.start(c)
}

// read decrypts all that has arrived: what TLS keeps, no poller tells of.
func (s *sealed) read(buf []byte) (n int, err error) {
	s.dry, s.fetched = false, 0
	for n < len(buf) && err == nil {
		var more int
		more, err = s.tls.Read(buf[n:])
		if n += more; more > 0 {
			s.fetched = 0
		}
	}
	if n > 0 || s.fetched > 0 {
		s.conn.partial = s.fetched > 0
	}
	_ = s.flush() // TLS may have answered by itself
	switch {
	case err == nil, err == syscall.EAGAIN:
		return n, nil
	case errors.Is(err, io.ErrUnexpectedEOF): // the end was not announced; what counts are whole requests
		err = io.EOF
	}
	s.conn.hungUp = true
	if n > 0 { // the error comes again
		return n, nil
	}
	return 0, err
}

// fetch reads for TLS, which takes EAGAIN for an error that passes.
func (s *sealed) fetch(b []byte) (n int, err error) {
	if s.dry {
		return 0, syscall.EAGAIN
	}
	if n, err = s.link.read(b); n == 0 && err == nil {
		err = syscall.EAGAIN
	}
	s.fetched += n
	s.dry = n < len(b)
	return n, err
}

// write encrypts a piece after the other, as long as they leave.
func (s *sealed) write(data []byte) (n int, err error) {
	for err = s.flush(); err == nil; err = s.flush() {
		n += s.gone()
		if len(s.out) > 0 || n >= len(data) {
			return n, nil
		}
		piece := data[n:min(len(data), n+maxReadBuffer)]
		if _, err = s.tls.Write(piece); err != nil {
			break
		}
		s.held = len(piece)
	}
	return n, err
}

// gone is how many bytes have left since the last call. Those that have not are fewer than their
// encrypted ones.
func (s *sealed) gone() int {
	n := max(0, s.held-len(s.out))
	s.held -= n
	return n
}

// put takes bytes of TLS that are to be sent. A peer that makes it answer must read.
func (s *sealed) put(b []byte) (int, error) {
	if len(s.out) > 2*maxReadBuffer {
		return 0, errUnread
	}
	s.out = append(s.out, b...)
	return len(b), nil
}

// flush sends what it can of out. The link below may still read what is not sent.
func (s *sealed) flush() error {
	if len(s.out) == 0 {
		return nil
	}
	n, err := s.link.write(s.out)
	switch {
	case n < len(s.out):
		s.out = s.out[n:]
	case cap(s.out) <= keepSealed:
		s.out = s.out[:0]
	default:
		s.out = nil
	}
	return err
}

func (s *sealed) closeWrite() error {
	s.sayEnd()
	return s.link.closeWrite()
}

func (s *sealed) close() {
	s.sayEnd()
	s.link.close()
}

// sayEnd tells the peer that the end is no accident.
func (s *sealed) sayEnd() {
	_ = s.tls.CloseWrite()
	_ = s.flush()
}
