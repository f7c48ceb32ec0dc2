// Package netproto is the edge: bytes in, bytes out. Server accepts TCP connections and drives
// the session of a protocol on each; the protocols live in the folders below.
package netproto

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"
)

// Protocol makes the session of each accepted connection.
type Protocol interface {
	// Name is the protocol's name in logs: lower case, one word.
	Name() string
	// Open starts a session whose replies go to out.
	Open(out *Output) Session
}

// Session is one connection's side of a protocol. All calls come from the connection's reader.
type Session interface {
	// Serve carries out the complete requests at the start of buf and returns how many bytes they
	// took. It may stop early, having taken something, to let replies leave. It must bound the length
	// of a request: the buffer grows as long as nothing is taken. An error closes the connection
	// after what was carried out is answered.
	Serve(buf []byte) (n int, err error)
	// Unsent counts the bytes of replies that out has not been given yet.
	Unsent() int64
	// Close ends the session: out is finished once all that it is owed has been appended. stop is
	// true when the peer can no longer be answered.
	Close(stop bool)
}

// Config says how a Server listens; zero values mean the defaults of limits.go.
type Config struct {
	Protocol           Protocol
	Logger             *slog.Logger
	MaxConns           int
	MaxConnsPerAddress int // not counted for loopback addresses
	MaxUnsent          int64
	WriteTimeout       time.Duration
	FrameTimeout       time.Duration
}

func (c *Config) setDefaults() {
	setDefault(&c.MaxConns, DefaultMaxConns)
	setDefault(&c.MaxConnsPerAddress, DefaultMaxConnsPerAddress)
	setDefault(&c.MaxUnsent, DefaultMaxUnsent)
	setDefault(&c.WriteTimeout, DefaultWriteTimeout)
	setDefault(&c.FrameTimeout, DefaultFrameTimeout)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
}

func setDefault[T int | int64 | time.Duration](v *T, def T) {
	if *v <= 0 {
		*v = def
	}
}

// Server serves one protocol on one listener.
type Server struct {
	config   Config
	listener *net.TCPListener

	mu      sync.Mutex
	conns   map[*conn]struct{}
	perAddr map[netip.Addr]int
	closing bool
	readers sync.WaitGroup // one per connection, added while closing is false
}

// Listen opens the address, HOST:PORT with port 0 for any free one. From then on the system lets
// peers connect and wait; Serve or Close must follow.
func Listen(address string, c Config) (*Server, error) {
	c.setDefaults()
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for %s: %w", c.Protocol.Name(), err)
	}
	return &Server{
		config:   c,
		listener: l.(*net.TCPListener),
		conns:    make(map[*conn]struct{}),
		perAddr:  make(map[netip.Addr]int),
	}, nil
}

// Addr is the address that the server listens on.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Serve logs that the server is listening and accepts connections until Shutdown or Close; then it
// returns nil. A passing error of the system (no descriptors left, say) is waited out.
func (s *Server) Serve() error {
	s.config.Logger.Info("listening", "protocol", s.config.Protocol.Name(), "addr", s.Addr().String())
	wait := time.Duration(0)
	for {
		nc, err := s.listener.AcceptTCP()
		if err == nil {
			wait = 0
			s.start(nc)
			continue
		}
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		wait = min(max(2*wait, 5*time.Millisecond), maxAcceptWait)
		s.config.Logger.Warn("accept failed: trying again", "protocol", s.config.Protocol.Name(), "error", err, "wait", wait)
		time.Sleep(wait)
	}
}

// start gives the connection its reader, or closes it if there are too many.
func (s *Server) start(nc *net.TCPConn) {
	addr := nc.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap()
	if err := s.admit(addr); err != nil {
		s.config.Logger.Warn("connection refused", "protocol", s.config.Protocol.Name(), "remote", addr, "error", err)
		_ = nc.Close()
		return
	}
	c, err := newConn(s, nc, addr)
	if err != nil {
		s.release(addr)
		_ = nc.Close()
		return
	}
	if !s.add(c) {
		c.out.Close()
	}
	go func() { // ends when the peer hangs up, breaks the protocol, or the server drains or closes it
		c.run()
		s.release(addr)
		s.remove(c)
	}()
}

// add makes the connection one of those that Shutdown waits for; it returns false when that has
// begun.
func (s *Server) add(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return false
	}
	s.conns[c] = struct{}{}
	s.readers.Add(1)
	return true
}

func (s *Server) remove(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.conns[c]; ok {
		delete(s.conns, c)
		s.readers.Done()
	}
}

func (s *Server) admit(addr netip.Addr) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return net.ErrClosed
	}
	if len(s.conns) >= s.config.MaxConns {
		return fmt.Errorf("%d connections are open, the limit is %d", len(s.conns), s.config.MaxConns)
	}
	if n := s.perAddr[addr]; !addr.IsLoopback() && n >= s.config.MaxConnsPerAddress {
		return fmt.Errorf("%d connections from this address are open, the limit is %d", n, s.config.MaxConnsPerAddress)
	}
	s.perAddr[addr]++
	return nil
}

func (s *Server) release(addr netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.perAddr[addr]--; s.perAddr[addr] <= 0 {
		delete(s.perAddr, addr)
	}
}

// Shutdown drains: it stops accepting, lets every connection finish what the server's machine has
// received, sends the replies and closes. When ctx ends, what is left is closed at once and ctx's
// error returned; a reader that waits for its session then may go on until the session gives up.
func (s *Server) Shutdown(ctx context.Context) error {
	for _, c := range s.stopAccepting() {
		c.drain()
	}
	done := make(chan struct{})
	go func() { // ends when the last reader has
		s.readers.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		s.Close()
		return ctx.Err()
	}
}

// Close closes the listener and all connections at once; what has not been answered is not.
func (s *Server) Close() {
	for _, c := range s.stopAccepting() {
		c.out.Close()
	}
}

func (s *Server) stopAccepting() []*conn {
	_ = s.listener.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing = true
	all := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		all = append(all, c)
	}
	return all
}
