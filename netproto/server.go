// Package netproto is the edge: bytes in, bytes out. A Loop drives the broker's machine. Servers
// accept TCP connections and hand them to it. It gives what arrives there to the session of a
// protocol, and sends what that replies. The folders below hold the protocols pinpriq, barbershop
// and resp (Redis), which are sessions, and admin, an HTTP server of its own; access says who may
// do what, and glob matches names. The map:
//
//	loop.go        Loop: one turn after the other
//	fair.go        which connection is served next
//	conn.go        a connection: its session, its life
//	inbox.go       what arrives
//	output.go      what leaves it
//	peer.go        a connection as its session sees it
//	timeline.go    what must be done in time
//	buffers.go     what all connections hold together; reserve.go: room for long requests
//	link_linux.go  a socket that the loop reads and writes itself, with epoll; link_other.go: none
//	link.go        a socket that goroutines read and write for the loop
//	stepped.go     a loop without a goroutine, and connections without a socket
//	handshake.go   TLS until it is agreed on
//	sealed.go      and then: a link above another one
//	server.go      Server, and what a protocol must do
//	accepted.go    what became of the connections that came
//	guard.go       streams that are in none of the protocols
//	limits.go      what a Server allows
package netproto

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto/access"
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
// must go (ErrMemory, ErrBinary, ErrPlain).
type Refuser interface {
	// Refusal is sent before the connection is closed.
	Refusal(why error) []byte
}

// Session is one connection's side of a protocol. All its methods are called in the loop.
type Session interface {
	// Serve carries out the complete requests at the start of buf, which is not empty, and returns how
	// many bytes they took and why it stopped. It never waits. It must bound the length of a request:
	// the buffer grows as long as nothing is taken. An error closes the connection after what was
	// carried out is answered.
	Serve(tx *broker.Tx, buf []byte) (n int, stop Stop, err error)
}

// Subscriber is a session whose consumer subscribes to queues.
type Subscriber interface {
	// Deliver encodes a delivery. The packets are valid during the call.
	Deliver(packets []broker.Packet)
}

// Waiter is a session whose requests wait.
type Waiter interface {
	// Again makes the request that waits again, as broker.Receiver says.
	Again(tx *broker.Tx, queue []byte)
}

// Hearer is a protocol that wants to know of events.
type Hearer interface {
	// Hear gets what has come to the disk in a turn, or does not concern it; mostly nothing. now is
	// the turn's moment, in Unix milliseconds. What Hear sends leaves with the replies of the turn, so
	// it can make no calls. soon has it called again within a tenth of a second.
	Hear(now int64, events []broker.Event) (soon bool)
}

// Guarded is a session that may refuse its connection.
type Guarded interface {
	// Refused is why the connection ends, after what Out holds; nil if it goes on. It is asked at the
	// start, before Serve, and whenever Server.Review is called.
	Refused(tx *broker.Tx) error
}

// Closer is a session that wants to know of the end of its connection.
type Closer interface {
	// Close is called once, before the consumer is detached. Nothing else is called after it.
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
	// Unfinished is More after a part of a change that ends when its client hangs up.
	Unfinished
	// Later: the next request brings data, and the storage wants none for storage.Space.Wait. No byte
	// of it was taken.
	Later
	// Blocked: a request waits (broker.Tx.Park); its bytes were taken. No other is carried out before
	// it has ended.
	Blocked
)

// Config says how a Server works; zero values mean the defaults of limits.go.
type Config struct {
	Protocol            Protocol
	Loop                *Loop
	TLS                 *tls.Config  // nil: connections are not encrypted
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
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
}

// Server serves one protocol on one listener.
type Server struct {
	config   Config
	listener *net.TCPListener

	mu      sync.Mutex
	conns   int
	perAddr map[netip.Addr]int
	closing bool
	counts  Accepted
	open    sync.WaitGroup // one per connection, added while closing is false

	handshakes *handshakes
	shaking    context.Context // ends with shut
	shut       context.CancelCauseFunc
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

// NewServer makes a server of a listener, which then belongs to it. Serve or Close must follow. A
// server with a nil listener has only what Pass and Connect bring.
func NewServer(l *net.TCPListener, c Config) *Server {
	c.setDefaults()
	s := &Server{config: c, listener: l, perAddr: make(map[netip.Addr]int), handshakes: newHandshakes()}
	s.shaking, s.shut = context.WithCancelCause(context.Background())
	if h, ok := c.Protocol.(Hearer); ok {
		c.Loop.post(func() {
			if !slices.Contains(c.Loop.hearers, h) { // several servers may have one protocol
				c.Loop.hearers = append(c.Loop.hearers, h)
			}
		})
	}
	return s
}

// Addr is the address that the server listens on.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Serve accepts connections until Shutdown or Close; then it returns nil. After an error that may
// pass, such as no descriptor being left, it tries again.
func (s *Server) Serve() error {
	if s.listener == nil {
		<-s.shaking.Done()
		return nil
	}
	wait := time.Duration(0)
	for {
		nc, err := s.listener.AcceptTCP()
		if err == nil {
			wait = 0
			_ = nc.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: keepAlive, Interval: keepAlive, Count: 3})
			s.take(nc, nc.RemoteAddr().(*net.TCPAddr).AddrPort(), nc.LocalAddr())
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

// Pass serves a connection of a client at remote that another machine has accepted and passes on,
// as one that Serve has accepted. It belongs to the server then, which closes it at once if there
// are too many. Nothing of it but Read and Write may wait for its peer.
func (s *Server) Pass(nc net.Conn, remote netip.AddrPort) {
	local := nc.LocalAddr()
	if s.listener != nil {
		local = s.Addr()
	}
	s.take(nc, remote, local)
}

// take serves a connection of a client at remote that connected to the address local.
func (s *Server) take(nc net.Conn, remote netip.AddrPort, local net.Addr) {
	c := &conn{loop: s.config.Loop, server: s, remote: netip.AddrPortFrom(remote.Addr().Unmap(), remote.Port()), local: local}
	if err := s.add(c); err != nil {
		s.config.Logger.Warn("connection refused", "protocol", s.config.Protocol.Name(), "remote", c.remote.Addr(), "error", err)
		if r, ok := s.config.Protocol.(Refuser); ok && s.config.TLS == nil {
			_, _ = nc.Write(r.Refusal(err)) // does not block: nothing was sent before
		}
		_ = nc.Close()
		return
	}
	if s.config.TLS != nil {
		s.shake(nc, c)
		return
	}
	l, err := newLink(nc, c)
	if err != nil {
		s.config.Logger.Warn("connection refused", "protocol", s.config.Protocol.Name(), "remote", c.remote.Addr(), "error", err)
		_ = nc.Close()
		s.remove(c)
		s.refused(RefusedFailed)
		return
	}
	s.enter(c, l)
}

// Connect makes a connection inside the process, and returns the client's side. To the session it
// is one of a client at remote whose user has logged in; "" is none. The limits count it as any.
func (s *Server) Connect(remote netip.AddrPort, user string) (net.Conn, error) {
	c := &conn{loop: s.config.Loop, server: s, remote: netip.AddrPortFrom(remote.Addr().Unmap(), remote.Port()), user: user}
	if err := s.add(c); err != nil {
		return nil, err
	}
	near, far := net.Pipe()
	c.local = far.LocalAddr()
	s.enter(c, newFed(far, c))
	return near, nil
}

// enter gives the connection to the loop.
func (s *Server) enter(c *conn, l link) {
	c.link = l
	c.loop.post(c.start)
}

// add makes the connection one that Shutdown waits for, if the limits allow it.
func (s *Server) add(c *conn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	addr := access.Host(c.remote.Addr())
	n := s.perAddr[addr]
	switch {
	case s.closing:
		return net.ErrClosed
	case s.conns >= s.config.MaxConns:
		s.counts.Refused[RefusedMany]++
		return fmt.Errorf("%d connections are open, the limit is %d", s.conns, s.config.MaxConns)
	case n >= s.config.MaxConnsPerAddress && !c.remote.Addr().IsLoopback():
		s.counts.Refused[RefusedOfAddress]++
		return fmt.Errorf("%d connections from this address are open, the limit is %d", n, s.config.MaxConnsPerAddress)
	}
	s.conns++
	s.counts.Served++
	s.perAddr[addr]++
	s.open.Add(1)
	return nil
}

func (s *Server) remove(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns--
	addr := access.Host(c.remote.Addr())
	if s.perAddr[addr]--; s.perAddr[addr] == 0 {
		delete(s.perAddr, addr)
	}
	s.open.Done()
}

// refused counts a connection that was accepted, and cannot be served.
func (s *Server) refused(why Refused) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts.Refused[why]++
}

// Connections returns how many are open, and what became of all.
func (s *Server) Connections() (open int, _ Accepted) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conns, s.counts
}

// Shutdown drains: it stops accepting, carries out every complete request that has arrived, sends
// the replies and closes the connections. A request that waits is given up, with those behind it.
// When ctx ends, it closes what is left at once and returns ctx's error.
func (s *Server) Shutdown(ctx context.Context) error {
	s.stopAccepting((*conn).drain)
	done := make(chan struct{})
	go func() { // ends when the last connection has
		s.open.Wait()
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
func (s *Server) Close() { s.stopAccepting((*conn).close) }

// Review has each session say whether its connection is refused now: what users may do has changed.
func (s *Server) Review() { s.each((*conn).review) }

func (s *Server) isClosing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closing
}

// stopAccepting closes the listener, and calls end for each connection, in the loop.
func (s *Server) stopAccepting(end func(*conn)) {
	_ = s.listener.Close()
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	s.shut(net.ErrClosed) // nothing was promised to those that shake hands
	s.each(end)
}

// each calls do for each connection, in the loop.
func (s *Server) each(do func(*conn)) {
	_ = s.config.Loop.Do(func(*broker.Tx) error {
		for c := range s.config.Loop.conns {
			if c.server == s {
				do(c)
			}
		}
		return nil
	})
}
