// Package inmemory has connections in memory, for a netproto.Stepped. Only tests import it.
package inmemory

import (
	"io"
	"net/netip"

	"github.com/holdfast-queue/holdfast/netproto"
)

// Wire is a connection as its client sees it. It belongs to the goroutine that makes the turns of
// the loop: what it sends arrives in the next one.
type Wire struct {
	in, out []byte
	hungUp  bool // by the client
	full    bool
	done    bool // the server sends nothing more
	closed  bool
	tell    func(hungUp bool)
}

// Local is the address that all clients connect to.
var Local = netip.MustParseAddrPort("127.0.0.1:6379")

// Connect makes a connection of a client at remote.
func Connect(s *netproto.Server, remote netip.AddrPort) (w *Wire, err error) {
	w = &Wire{}
	w.tell, err = s.Attach(Local, remote, (*end)(w))
	return w, err
}

// Send has bytes arrive.
func (w *Wire) Send(b []byte) {
	w.in = append(w.in, b...)
	w.tell(false)
}

// Take returns what the server has sent since the last call.
func (w *Wire) Take() []byte {
	b := w.out
	w.out = nil
	return b
}

// Stall has the client take nothing, or what comes again.
func (w *Wire) Stall(stalls bool) {
	if w.full = stalls; !stalls {
		w.tell(false)
	}
}

// HangUp ends what the client sends. It may still take.
func (w *Wire) HangUp() {
	w.hungUp = true
	w.tell(true)
}

// Ended says that the server sends nothing more, and Closed that it reads nothing, either.
func (w *Wire) Ended() bool  { return w.done }
func (w *Wire) Closed() bool { return w.closed }

// end is the server's end.
type end Wire

func (e *end) Read(b []byte) (n int, err error) {
	n = copy(b, e.in)
	if e.in = e.in[n:]; len(e.in) == 0 {
		e.in = nil // a wire keeps nothing that has arrived
	}
	if n == 0 && e.hungUp {
		return 0, io.EOF
	}
	return n, nil
}

func (e *end) Write(b []byte) (n int, err error) {
	if e.full {
		return 0, nil
	}
	e.out = append(e.out, b...)
	return len(b), nil
}

func (e *end) CloseWrite() error {
	e.done = true
	return nil
}

func (e *end) Close() error {
	e.done, e.closed = true, true
	return nil
}
