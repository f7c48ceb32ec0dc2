// Package admin serves the operator over HTTP: it streams backups of the running store and says
// whether the server is healthy. PROTOCOL.md describes it. server.go is the server, routes.go
// answers requests, pace.go finds slow readers, request.go parses what a backup is to hold,
// client.go fetches one.
package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Backup writes a consistent copy of the store, as of the moment of the call, to w. It returns soon
// after ctx has ended or w has failed. An error that wraps ErrRequest says that the request itself
// is wrong; nothing has been written then.
type Backup func(ctx context.Context, w Writer, r Request) error

// Writer takes a backup. It belongs to the goroutine that calls the Backup.
type Writer interface {
	io.Writer
	// Expect tells the client about how many packets will come, so that it can show its progress. It
	// must be called before the first Write; 0 means that the number is not known.
	Expect(packets uint64)
}

// ErrRequest marks errors of a Backup that the client can correct.
var ErrRequest = errors.New("bad request")

// Config says how a Server works; zero values mean the defaults of limits.go.
type Config struct {
	Backup Backup
	Logger *slog.Logger // of what clients cause

	MaxConns     int
	StallTimeout time.Duration // how long a client may take for a piece of a backup
	MinRate      int64         // bytes a second that a client must take, on average over StallTimeout

	// AnyHost accepts every Host header. Otherwise it must be an IP address or localhost, so that a
	// web page whose site has bound its name to this address cannot read packets.
	AnyHost bool
}

func (c *Config) setDefaults() {
	if c.MaxConns <= 0 {
		c.MaxConns = DefaultMaxConns
	}
	if c.StallTimeout <= 0 {
		c.StallTimeout = DefaultStallTimeout
	}
	if c.MinRate <= 0 {
		c.MinRate = DefaultMinRate
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
}

// Server serves the operator on one listener.
type Server struct {
	config   Config
	listener net.Listener
	http     http.Server

	stopping context.Context // the parent of every request's; ends with stop
	stop     context.CancelFunc

	open   atomic.Int64 // connections
	backup sync.Mutex   // held by the one backup under way
}

// Name is the protocol's name in logs.
const Name = "admin"

// NewServer makes a server of a listener, which then belongs to it. Serve or Close must follow.
func NewServer(l net.Listener, c Config) *Server {
	c.setDefaults()
	s := &Server{config: c, listener: l}
	s.stopping, s.stop = context.WithCancel(context.Background())
	s.http = http.Server{
		Handler:           s.routes(),
		BaseContext:       func(net.Listener) context.Context { return s.stopping },
		ReadHeaderTimeout: headerTimeout,
		WriteTimeout:      c.StallTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ConnState:         s.count,
		ErrorLog:          slog.NewLogLogger(c.Logger.Handler(), slog.LevelWarn),
	}
	return s
}

// count closes new connections while too many are open. Each is new once and closed once.
func (s *Server) count(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		if s.open.Add(1) > int64(s.config.MaxConns) {
			s.config.Logger.Warn("connection refused", "protocol", Name, "remote", conn.RemoteAddr().String(), "limit", s.config.MaxConns)
			_ = conn.Close()
		} else if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetWriteBuffer(socketBuffer)
		}
	case http.StateClosed:
		s.open.Add(-1)
	}
}

// Addr is the address that the server listens on.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Serve answers requests until Shutdown or Close; then it returns nil.
func (s *Server) Serve() error {
	if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", Name, err)
	}
	return nil
}

// Shutdown stops accepting, aborts a backup under way, and returns when no request is left. The
// backup's client sees that it was aborted. When ctx ends, Shutdown closes the connections at once
// and returns ctx's error.
func (s *Server) Shutdown(ctx context.Context) error {
	s.stop()
	// Do not wait for clients that have connected and not asked for anything.
	brief, cancel := context.WithTimeout(ctx, shutdownWait)
	defer cancel()
	_ = s.http.Shutdown(brief)
	s.Close()
	return ctx.Err()
}

// Close closes the listener and all connections at once, and returns when no backup reads the store
// any more.
func (s *Server) Close() {
	s.stop()
	_ = s.http.Close()
	_ = s.listener.Close() // http does not know it before Serve
	s.backup.Lock()        // a backup ends soon: its context has ended and its connection is closed
	defer s.backup.Unlock()
}
