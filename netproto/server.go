// Package netproto is the edge: bytes in, bytes out. A Server accepts TCP connections and hands
// what arrives to the session of a protocol, in a transaction of the broker. It sends the replies
// that the broker returns. The folders below hold the protocols pinpriq, barbershop and resp
// (Redis), which are sessions, and admin, an HTTP server of its own. The map:
//
//	server.go   Server, and what a protocol must do
//	conn.go     reading from a connection
//	buffers.go  what all connections hold together
//	blocked.go  reading while a request waits
//	peer.go     a connection as its session and the broker see it
//	output.go   writing to a connection
//	guard.go    streams that are in none of the protocols
//	limits.go   what a Server allows
package netproto

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
)

// Protocol makes the session of each accepted connection.
type Protocol interface {
	// Name is the protocol's name in logs: lower case, one word.
	Name() string
	// Delivery says which packets the subscriptions of a connection take.
	Delivery() broker.Selection
	// Open starts the session of a peer.
	Open(p *Peer) Session
}

// Refuser is a protocol with words for a peer that is refused because there are too many, or that
// must go (ErrMemory, ErrBinary).
type Refuser interface {
	// Refusal is sent before the connection is closed.
	Refusal(why error) []byte
}

// Session is one connection's side of a protocol.
type Session interface {
	// Serve carries out the complete requests at the start of buf, which is not empty, and returns how
	// many bytes they took and why it stopped. It never waits. It must bound the length of a request:
	// the buffer grows as long as nothing is taken. An error closes the connection after what was
	// carried out is answered. The connection's reader calls it.
	Serve(tx *broker.Tx, buf []byte) (n int, stop Stop, err error)
	// AppendPackets encodes a reply or a delivery of packets; tag is that of the call that asked for
	// them. The broker's completer calls it.
	AppendPackets(dst []byte, tag broker.Tag, packets []broker.Packet, details []broker.Detail) []byte
}

// Closer is a session that wants to know of the end of its connection.
type Closer interface {
	// Close is called once, in the transaction that detaches the consumer. Serve is not called any
	// more, but AppendPackets may be.
	Close(tx *broker.Tx)
}

// Stop is why a session stopped serving.
type Stop uint8

const (
	// Incomplete: what is left of the buffer is at most the beginning of a request.
	Incomplete Stop = iota
	// More: replies should leave, or others have the broker, before the next request. If no byte was
	// taken, it is the same request, which was carried out in part.
	More
	// Blocked: a request waits (broker.Tx.Wait). No other is carried out before it has ended.
	Blocked
)

// Config says how a Server works; zero values mean the defaults of limits.go.
type Config struct {
	Protocol            Protocol
	Broker              *broker.Broker
	Logger              *slog.Logger // of what clients cause
	MaxConns            int
	MaxConnsPerAddress  int      // not counted for loopback addresses
	Buffers             *Buffers // nil: DefaultMaxBuffers for this server alone
	MaxOutstandingBytes int64    // of replies to one peer before its requests are no longer read
	WriteTimeout        time.Duration
	FrameTimeout        time.Duration
}

func (c *Config) setDefaults() {
	c.MaxConns = cmp.Or(c.MaxConns, DefaultMaxConns)
	c.MaxConnsPerAddress = cmp.Or(c.MaxConnsPerAddress, DefaultMaxConnsPerAddress)
	c.MaxOutstandingBytes = cmp.Or(c.MaxOutstandingBytes, broker.MaxOutstandingBytes)
	c.WriteTimeout = cmp.Or(c.WriteTimeout, DefaultWriteTimeout)
	c.FrameTimeout = cmp.Or(c.FrameTimeout, DefaultFrameTimeout)
	if c.Buffers == nil {
		c.Buffers = NewBuffers(DefaultMaxBuffers)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
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
// peers connect and wait for a server.
func Listen(address string) (*net.TCPListener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	return l.(*net.TCPListener), nil
}

// NewServer makes a server of a listener, which then belongs to it. Serve or Close must follow.
func NewServer(l *net.TCPListener, c Config) *Server {
	c.setDefaults()
	return &Server{
		config:   c,
		listener: l,
		conns:    make(map[*conn]struct{}),
		perAddr:  make(map[netip.Addr]int),
	}
}

// Addr is the address that the server listens on.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Serve accepts connections until Shutdown or Close; then it returns nil. After an error that may
// pass, such as no descriptor being left, it tries again.
func (s *Server) Serve() error {
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
	c := newConn(s, nc, addr)
	if err := s.add(c); err != nil {
		s.config.Logger.Warn("connection refused", "protocol", s.config.Protocol.Name(), "remote", addr, "error", err)
		if r, ok := s.config.Protocol.(Refuser); ok {
			_, _ = nc.Write(r.Refusal(err)) // does not block: nothing was sent before
		}
		_ = nc.Close()
		return
	}
	go func() { // ends when the peer hangs up, breaks the protocol, or the server drains or closes it
		c.run()
		s.remove(c)
	}()
}

// add makes the connection one that Shutdown waits for, if the limits allow it.
func (s *Server) add(c *conn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.perAddr[c.remote]
	switch {
	case s.closing:
		return net.ErrClosed
	case len(s.conns) >= s.config.MaxConns:
		return fmt.Errorf("%d connections are open, the limit is %d", len(s.conns), s.config.MaxConns)
	case n >= s.config.MaxConnsPerAddress && !c.remote.IsLoopback():
		return fmt.Errorf("%d connections from this address are open, the limit is %d", n, s.config.MaxConnsPerAddress)
	}
	s.conns[c] = struct{}{}
	s.perAddr[c.remote]++
	s.readers.Add(1)
	return nil
}

func (s *Server) remove(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	if s.perAddr[c.remote]--; s.perAddr[c.remote] == 0 {
		delete(s.perAddr, c.remote)
	}
	s.readers.Done()
}

// Shutdown drains: it stops accepting, carries out every complete request that has arrived, sends
// the replies and closes the connections. A request that waits is given up, with those behind it.
// When ctx ends, it closes what is left at once and returns
// ctx's error; a reader that waits for the next batch then ends after it.
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

// Close closes the listener and all connections at once. Requests that are not answered yet get no
// answer.
func (s *Server) Close() {
	for _, c := range s.stopAccepting() {
		c.out.close()
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
