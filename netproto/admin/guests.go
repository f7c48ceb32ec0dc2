package admin

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"

	"github.com/holdfast-queue/holdfast/netproto"
	"github.com/holdfast-queue/holdfast/netproto/access"
)

// guest is an open connection.
type guest struct {
	since    time.Time // it was opened, or its request or the wait for the next one began
	answered bool      // it waits for its next request
	kept     bool      // see Keep
}

// before says which of two connections makes room first: one that has its answer, of equal ones the
// one of which nothing was heard the longest. A client that stalls is the first soon, wherever it
// stalls, and one that has just come is the last.
func (g *guest) before(other *guest) bool {
	if g.answered != other.answered {
		return g.answered
	}
	return g.since.Before(other.since)
}

// entrance accepts a connection when the one that has to make room for it has had its time. So
// however many come, each can be answered.
type entrance struct {
	net.Listener
	server *Server
}

// Accept implements net.Listener.
func (e entrance) Accept() (net.Conn, error) {
	conn, err := e.Listener.Accept()
	if err != nil {
		return nil, err
	}
	for wait := e.server.stay(); wait > 0; wait = e.server.stay() {
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-e.server.left:
		case <-e.server.stopping.Done():
		}
		timer.Stop()
	}
	if e.server.stopping.Err() != nil {
		_ = conn.Close() // nobody else may know it any more
	}
	return conn, nil
}

// stay is how long the guest that makes room first may stay yet; 0 or less if none is to wait for.
func (s *Server) stay() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.guests) < s.config.MaxConns || s.stopping.Err() != nil {
		return 0
	}
	if _, g := s.first(); g != nil && !g.answered {
		return s.config.Stay - time.Since(g.since)
	}
	return 0
}

// count counts connections. Each is new once and closed once. If there are too many, one makes
// room: clients that stall keep nobody out.
func (s *Server) count(conn net.Conn, state http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.guests[conn] // nil: it is new, or had to go
	switch {
	case state == http.StateNew:
		if len(s.guests) >= s.config.MaxConns && !s.makeRoom() {
			s.drop(conn, "connection refused")
			return
		}
		s.accepted.Add(1)
		if tcp, ok := below(conn).(*net.TCPConn); ok {
			_ = tcp.SetWriteBuffer(socketBuffer)
		}
		s.guests[conn] = &guest{since: time.Now()}
	case state == http.StateClosed:
		delete(s.guests, conn)
	case g != nil:
		g.since, g.answered = time.Now(), state == http.StateIdle
	}
	if state != http.StateNew {
		s.tell()
	}
}

// tell has the entrance look again.
func (s *Server) tell() {
	select {
	case s.left <- struct{}{}:
	default:
	}
}

// first is the guest that makes room before all others; nil if all are kept.
func (s *Server) first() (conn net.Conn, first *guest) {
	for c, g := range s.guests {
		if !g.kept && (first == nil || g.before(first)) {
			conn, first = c, g
		}
	}
	return conn, first
}

// makeRoom closes the first connection; false if there is none.
func (s *Server) makeRoom() bool {
	conn, g := s.first()
	if g == nil {
		return false
	}
	delete(s.guests, conn)
	s.drop(conn, "connection closed")
	return true
}

// drop closes a connection because there are too many.
func (s *Server) drop(conn net.Conn, event string) {
	s.config.Logger.Warn(event, "protocol", Name, "remote", conn.RemoteAddr().String(), "limit", s.config.MaxConns)
	s.refused.Add(1)
	_ = below(conn).Close() // TLS would wait until its last word has left
}

// below is the socket of a connection.
func below(conn net.Conn) net.Conn {
	if c, ok := conn.(*tls.Conn); ok {
		return c.NetConn()
	}
	return conn
}

// keepKey is where the context of a request keeps what Keep calls.
type keepKey struct{}

// with puts that into the context of a connection.
func (s *Server) with(ctx context.Context, conn net.Conn) context.Context {
	ctx = context.WithValue(ctx, auditKey{}, s.config.Audit)
	return context.WithValue(ctx, keepKey{}, func(kept bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if g := s.guests[conn]; g != nil {
			g.kept, g.since = kept, time.Now()
			s.tell()
		}
	})
}

// auditKey is where the context of a request keeps the server's audit.
type auditKey struct{}

// AuditOf returns the audit of the server that a request came to; nil if there is none.
func AuditOf(r *http.Request) *access.Audit {
	a, _ := r.Context().Value(auditKey{}).(*access.Audit)
	return a
}

// Keep keeps the connection of a request from making room for others, until release is called.
// Whoever calls it bounds how many requests of its kind there are: all kinds together must leave
// most of DefaultMaxConns to those who only look how the server is.
func Keep(r *http.Request) (release func()) {
	keep, ok := r.Context().Value(keepKey{}).(func(bool))
	if !ok {
		return func() {} // it is no request to a Server
	}
	keep(true)
	return func() { keep(false) }
}

// Connections returns how many are open, and what became of all.
func (s *Server) Connections() (open int, a netproto.Accepted) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a.Served = s.accepted.Load()
	a.Refused[netproto.RefusedMany], a.Refused[netproto.RefusedHandshake] = s.refused.Load(), s.shaken.Load()
	return len(s.guests), a
}
