package loadgen

import (
	"context"
	"crypto/tls"
	"io"
	"net"

	"golang.org/x/sys/unix"
)

// sealed is a TLS session that the loop drives. It has what the socket gave, and makes what the
// socket takes.
type sealed struct {
	*tls.Conn
	wire *wire
}

// seal makes a session on a socket, which waits until that is done.
func seal(ctx context.Context, socket net.Conn, config *tls.Config) (*sealed, error) {
	config = config.Clone()
	config.DynamicRecordSizingDisabled = true // a measurement is no page that somebody waits for
	w := &wire{Conn: socket, fd: -1}
	s := &sealed{tls.Client(w, config), w}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	return s, s.HandshakeContext(ctx)
}

// take encrypts a text into what is to be written.
func (s *sealed) take(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	_, err := s.Write(text)
	return err
}

// wire is the encrypted side of a session: the socket, and without its waits once fd is set.
type wire struct {
	net.Conn
	fd  int
	out []byte // to be written
}

// Read returns EAGAIN if nothing has come in: the session takes that for a passing error, and goes
// on with the next read.
func (w *wire) Read(p []byte) (int, error) {
	if w.fd < 0 {
		return w.Conn.Read(p)
	}
	n, err := unix.Read(w.fd, p)
	if n == 0 && err == nil {
		err = io.EOF
	}
	return max(n, 0), err
}

func (w *wire) Write(p []byte) (int, error) {
	if w.fd < 0 {
		return w.Conn.Write(p)
	}
	w.out = append(w.out, p...)
	return len(p), nil
}
