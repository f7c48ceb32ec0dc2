package admin

import (
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
)

// limited is a listener that closes what it accepts while too many connections are open.
type limited struct {
	net.Listener
	most   int
	logger *slog.Logger
	open   atomic.Int64 // connections that are not closed yet
}

// Accept waits for the next connection that is under the limit.
func (l *limited) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.open.Add(1) <= int64(l.most) {
			return &counted{Conn: conn, release: sync.OnceFunc(func() { l.open.Add(-1) })}, nil
		}
		l.open.Add(-1)
		l.logger.Warn("connection refused", "protocol", Name, "remote", conn.RemoteAddr().String(), "limit", l.most)
		_ = conn.Close()
	}
}

// counted is a connection that gives its place up when it is closed.
type counted struct {
	net.Conn
	release func()
}

// Close closes the connection. It may be called more than once and by any goroutine.
func (c *counted) Close() error {
	c.release()
	return c.Conn.Close()
}
