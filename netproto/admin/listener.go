package admin

import (
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
)

// limited is a listener that closes new connections while too many are open.
type limited struct {
	net.Listener
	most   int
	logger *slog.Logger
	open   atomic.Int64 // connections that are open
}

// Accept waits for the next connection within the limit.
func (l *limited) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.open.Add(1) <= int64(l.most) {
			if tcp, ok := conn.(*net.TCPConn); ok {
				_ = tcp.SetWriteBuffer(socketBuffer)
			}
			return &counted{Conn: conn, release: sync.OnceFunc(func() { l.open.Add(-1) })}, nil
		}
		l.open.Add(-1)
		l.logger.Warn("connection refused", "protocol", Name, "remote", conn.RemoteAddr().String(), "limit", l.most)
		_ = conn.Close()
	}
}

// counted is a connection that frees its place when it is closed.
type counted struct {
	net.Conn
	release func()
}

// Close closes the connection. Any goroutine may call it, more than once.
func (c *counted) Close() error {
	c.release()
	return c.Conn.Close()
}
