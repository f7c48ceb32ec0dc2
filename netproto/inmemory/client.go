package inmemory

import (
	"errors"
	"io"
	"net"
	"net/netip"
)

// ErrNothing: a client reads, and nothing comes before something else happens: a clock is moved, or
// a client sends.
var ErrNothing = errors.New("nothing has come, and nothing is due")

// Client is a client of a Network. It belongs to the goroutine that makes the turns.
type Client struct {
	*Wire
	network *Network
	addr    netip.AddrPort
	got     []byte
	gone    bool
}

// Addr is where the client is.
func (c *Client) Addr() netip.AddrPort { return c.addr }

// Write has bytes arrive in the next turn.
func (c *Client) Write(b []byte) (int, error) {
	c.Send(b)
	return len(b), nil
}

// Arrived returns what has come and was not read.
func (c *Client) Arrived() []byte {
	c.got = append(c.got, c.Take()...)
	return c.got
}

// Read makes turns until something has come. It returns ErrNothing where it would wait for ever,
// and io.EOF at the end.
func (c *Client) Read(b []byte) (n int, err error) {
	for turns := 0; ; turns++ {
		if len(c.got) == 0 {
			c.got = c.Take()
		}
		switch {
		case c.gone:
			return 0, net.ErrClosed
		case len(c.got) > 0:
			n = copy(b, c.got)
			c.got = c.got[n:]
			return n, nil
		case c.Ended():
			return 0, io.EOF
		case turns > 0 && c.network.Loop.Idle() > 0 && (c.network.Wait == nil || !c.network.Wait()):
			return 0, ErrNothing
		}
		if err := c.network.Loop.Turn(); err != nil {
			return 0, err
		}
	}
}

// Close hangs up. What was sent before arrives.
func (c *Client) Close() error {
	c.gone, c.full = true, false
	c.HangUp()
	return nil
}
