// Package admin serves the operator over HTTP: it streams backups of the running store and says how
// the server is. PROTOCOL.md describes it. server.go is the server, guests.go keeps its
// connections, places.go bounds what is done at a time, routes.go answers requests, nodes.go those
// about a cell, health.go answers monitors, profile.go answers developers, users.go finds out who
// asks, pace.go finds slow readers, request.go parses what a backup is to hold, client.go asks such
// a server.
package admin

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-queue/holdfast/netproto/access"
)

// Backup writes a consistent copy of the store, as of the moment of the call, to w. It returns soon
// after ctx has ended or w has failed. An error that wraps ErrRequest says that the request itself
// is wrong; nothing has been written then.
type Backup func(ctx context.Context, w Writer, r Request) error

// Reload has the server read its settings again. It returns what has changed, or why nothing has.
type Reload func(ctx context.Context) (Reloaded, error)

// Reloaded says what a reload has changed: keys of the config file, and which of them need a
// restart.
type Reloaded struct {
	Changed []string `json:"changed"`
	Restart []string `json:"restart"`
}

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
	Health  Health          // all is well if nil
	Backup  Backup          // called only when the server has begun to serve
	Users   *access.Control // who may ask for what; nil: everybody for everything
	Logger  *slog.Logger    // of what clients cause
	Audit   *access.Audit   // of what operators do; nil: it is not logged
	Reload  Reload          // answers POST /reload; nil: there is no such path
	Nodes   Nodes           // answers what begins with /cluster; nil: there are no such paths
	Metrics http.Handler    // answers GET /metrics; nil: there is no such page
	Page    http.Handler    // answers / and what begins with /page/, and finds out itself who asks; nil: there is no page

	MaxConns     int
	Stay         time.Duration // that a connection has at least to be answered, before it makes room
	StallTimeout time.Duration // how long a client may take for a piece of a backup
	MinRate      int64         // bytes a second that a client must take, on average over StallTimeout

	TLS *tls.Config // nil: connections are not encrypted

	// AnyHost accepts every Host header. Otherwise it must be an IP address or localhost, so that a
	// web page whose site has bound its name to this address cannot read packets. Over TLS a browser
	// sees that the name is another's.
	AnyHost bool

	Profiles bool // serve profiles of the process
}

func (c *Config) setDefaults() {
	if c.Health == nil {
		served := make(chan struct{})
		close(served)
		c.Health = well(served)
	}
	c.MaxConns = cmp.Or(c.MaxConns, DefaultMaxConns)
	if c.TLS != nil {
		c.Stay = cmp.Or(c.Stay, DefaultStayTLS)
	}
	c.Stay = cmp.Or(c.Stay, DefaultStay)
	c.StallTimeout = cmp.Or(c.StallTimeout, DefaultStallTimeout)
	c.MinRate = cmp.Or(c.MinRate, DefaultMinRate)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
}

// Server serves the operator on one listener.
type Server struct {
	config   Config
	listener net.Listener
	http     http.Server

	stopping context.Context // the parent of every request's; ends with stop
	stop     context.CancelFunc

	mu     sync.Mutex
	guests map[net.Conn]*guest // open connections

	left chan struct{} // gets a value when somebody may make room who could not before

	accepted, refused, shaken atomic.Uint64 // see Connections
	backups, reloads          *Places
	scrapes                   *Places      // of those whose connections are kept
	reading                   sync.RWMutex // read-locked by each backup under way
	backedUp                  atomic.Int64 // see LastBackup, in Unix milliseconds; 0: never
	profile                   sync.Mutex   // held by the one profile under way
}

// Name is the protocol's name in logs.
const Name = "admin"

// NewServer makes a server of a listener, which then belongs to it. Serve or Close must follow.
func NewServer(l net.Listener, c Config) *Server {
	c.setDefaults()
	s := &Server{config: c, listener: l, guests: make(map[net.Conn]*guest), left: make(chan struct{}, 1), backups: NewPlaces(1), reloads: NewPlaces(1), scrapes: NewPlaces(maxScrapes)}
	s.stopping, s.stop = context.WithCancel(context.Background())
	s.http = http.Server{
		Handler:           s.routes(),
		BaseContext:       func(net.Listener) context.Context { return s.stopping },
		ConnContext:       s.with,
		ReadHeaderTimeout: headerTimeout,
		WriteTimeout:      c.StallTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ConnState:         s.count,
		ErrorLog:          Complaints(c.Logger, Name, &s.shaken),
	}
	s.listener = entrance{l, s}
	if c.TLS != nil {
		s.listener = tls.NewListener(s.listener, c.TLS)
	}
	return s
}

// Complaints makes what an HTTP server logs by what it has to say about connections. The log names
// a protocol, and shaken counts the handshakes that failed.
func Complaints(to *slog.Logger, protocol string, shaken *atomic.Uint64) *log.Logger {
	return log.New(complaints{to, protocol, shaken}, "", 0)
}

type complaints struct {
	log      *slog.Logger
	protocol string
	shaken   *atomic.Uint64
}

// Write implements io.Writer.
func (c complaints) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line))
	if failed, ok := strings.CutPrefix(text, "http: TLS handshake error from "); ok {
		remote, why, _ := strings.Cut(failed, ": ")
		c.shaken.Add(1)
		c.log.Warn("handshake failed", "protocol", c.protocol, "remote", remote, "error", why)
	} else {
		c.log.Warn(text)
	}
	return len(line), nil
}

// LastBackup returns the moment of the last backup of everything that has left as a whole, of this
// run of the server; the zero time if there was none.
func (s *Server) LastBackup() time.Time {
	if at := s.backedUp.Load(); at > 0 {
		return time.UnixMilli(at)
	}
	return time.Time{}
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
	s.reading.Lock()       // a backup ends soon: its context has ended and its connection is closed
	defer s.reading.Unlock()
}
