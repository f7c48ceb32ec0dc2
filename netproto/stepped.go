package netproto

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
)

// Stepped is a Loop without a goroutine: its caller makes the turns, one by one. With streams for
// connections all that happens is the caller's doing, for tests and simulations. Nobody waits for
// Loop.Do and Loop.Close in the goroutine that makes the turns.
type Stepped struct{ *Loop }

// NewStepped makes a loop whose turns its caller makes.
func NewStepped(m *broker.Machine, disk broker.Disk, c LoopConfig) Stepped {
	return Stepped{makeLoop(m, disk, c, still{make(chan struct{}, 1)})}
}

// Turn makes one turn, which waits for nothing. The error says why no other one follows.
func (s Stepped) Turn() error {
	if s.err == nil {
		s.round()
	}
	return s.err
}

// Idle is how long a loop would wait now before its next turn, if nothing comes.
func (s Stepped) Idle() time.Duration {
	s.mu.Lock()
	posted := len(s.posts) > 0
	s.mu.Unlock()
	if posted || len(s.next) > 0 {
		return 0
	}
	s.ready = s.ready[:0] // of the last turn
	return s.sleep()
}

// Woken has a token when something has come for the next turn.
func (s Stepped) Woken() <-chan struct{} { return s.poll.(still).woken }

// End commits what is open and ends the loop, as Loop.Close does.
func (s Stepped) End() error {
	s.end()
	return s.err
}

// still is a poller that never waits.
type still struct{ woken chan struct{} }

func (s still) wait(_ time.Duration, ready []*conn) []*conn {
	select {
	case <-s.woken:
	default:
	}
	return ready
}

func (s still) wake() {
	select {
	case s.woken <- struct{}{}:
	default:
	}
}

func (still) close() {}

// Stream is a connection that has no socket. The loop calls its methods, none of which waits: Read
// gives nothing and no error where nothing has come, and io.EOF at the end, and Write takes what it
// can. It may have CloseWrite.
type Stream interface{ io.ReadWriteCloser }

// Attach serves a stream of a client at remote, which connected to local, from the next turn on.
// told is called when there is something to read, when the client has hung up, and when Write takes
// something again.
func (s *Server) Attach(local, remote netip.AddrPort, stream Stream) (told func(hungUp bool), err error) {
	c := &conn{loop: s.config.Loop, server: s, remote: remote, local: net.TCPAddrFromAddrPort(local)}
	if err := s.add(c); err != nil {
		return nil, err
	}
	s.enter(c, attached{stream, c.loop})
	return func(hungUp bool) {
		c.loop.post(func() {
			c.readable, c.hungUp = true, c.hungUp || hungUp
			c.loop.ready = c.enlist(c.loop.ready)
		})
	}, nil
}

// attached is the link of a stream.
type attached struct {
	Stream
	loop *Loop
}

func (attached) start(*conn) error             { return nil }
func (a attached) read(b []byte) (int, error)  { return a.Read(b) }
func (a attached) write(b []byte) (int, error) { return a.Write(b) }
func (attached) watch(watch)                   {}
func (attached) drained() bool                 { return true }
func (attached) drain()                        {}
func (a attached) discard() (n int, err error) { return a.Read(a.loop.arena) }
func (a attached) close()                      { _ = a.Close() }
func (a attached) closeWrite() error {
	if w, ok := a.Stream.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return errors.ErrUnsupported
}
