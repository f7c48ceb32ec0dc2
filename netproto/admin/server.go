// Package admin is the operator's door: an HTTP server that streams a backup of the running store
// and says whether the server serves. PROTOCOL.md describes it.
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
	"time"
)

// Backup writes a consistent copy of the store, as of the moment of the call, to w. It returns soon
// after ctx has ended or w has failed. An error that wraps ErrRequest says that the request cannot
// be carried out as it stands; nothing has been written then.
type Backup func(ctx context.Context, w Writer, r Request) error

// Writer takes a backup. It belongs to the goroutine of the call that it was handed to.
type Writer interface {
	io.Writer
	// Expect tells the client about how many packets will come, so that it can say how far it is. It
	// counts only before the first Write; 0 is not known.
	Expect(packets uint64)
}

// ErrRequest marks errors of a Backup that the client can mend.
var ErrRequest = errors.New("bad request")

// Config says how a Server works; zero values mean the defaults of limits.go.
type Config struct {
	Backup Backup
	Logger *slog.Logger

	MaxConns     int
	StallTimeout time.Duration // how long a client may take for a piece of a backup
	MinRate      int64         // bytes a second that a client must take, on average over StallTimeout

	// AnyHost lets requests name the server as they like. Otherwise it must be an IP address or
	// localhost: a web page that another site has bound to this address cannot read packets.
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

	stopping context.Context // of every request; ends with stop
	stop     context.CancelFunc

	backup sync.Mutex // held by the one backup under way
}

// Name is the protocol's name in logs.
const Name = "admin"

// NewServer makes a server of a listener, which then belongs to it. Serve or Close must follow.
func NewServer(l net.Listener, c Config) *Server {
	c.setDefaults()
	s := &Server{config: c, listener: &limited{Listener: l, most: c.MaxConns, logger: c.Logger}}
	s.stopping, s.stop = context.WithCancel(context.Background())
	s.http = http.Server{
		Handler:           s.routes(),
		BaseContext:       func(net.Listener) context.Context { return s.stopping },
		ReadHeaderTimeout: headerTimeout,
		WriteTimeout:      c.StallTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(c.Logger.Handler(), slog.LevelWarn),
	}
	return s
}

// Addr is the address that the server listens on.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Serve logs that the server is listening and answers requests until Shutdown or Close; then it
// returns nil.
func (s *Server) Serve() error {
	s.config.Logger.Info("listening", "protocol", Name, "addr", s.Addr().String())
	if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", Name, err)
	}
	return nil
}

// Shutdown stops accepting, aborts a backup under way, which its client sees, and returns when no
// request is left. When ctx ends the connections are closed at once and ctx's error is returned.
func (s *Server) Shutdown(ctx context.Context) error {
	s.stop()
	// Whoever has connected and not asked for anything is not worth waiting for.
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
	_ = s.listener.Close() // not known to http before Serve
	s.backup.Lock()        // a backup ends soon: its context has ended and its connection is closed
	defer s.backup.Unlock()
}
