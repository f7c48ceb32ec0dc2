package admin

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"

	"github.com/holdfast-queue/holdfast/netproto"
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
}

// makeRoom closes the connection that is before all others; false if all are kept.
func (s *Server) makeRoom() bool {
	var first net.Conn
	for conn, g := range s.guests {
		if !g.kept && (first == nil || g.before(s.guests[first])) {
			first = conn
		}
	}
	if first == nil {
		return false
	}
	delete(s.guests, first)
	s.drop(first, "connection closed")
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
	return context.WithValue(ctx, keepKey{}, func(kept bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if g := s.guests[conn]; g != nil {
			g.kept, g.since = kept, time.Now()
		}
	})
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
