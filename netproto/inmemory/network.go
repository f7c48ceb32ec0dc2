package inmemory

import (
	"net/netip"

	"github.com/holdfast-queue/holdfast/netproto"
)

// Network connects clients to a server. Their reads make the turns of its loop.
type Network struct {
	Server *netproto.Server
	Loop   netproto.Stepped
	// Wait is called where nothing has come for who reads, and nothing is due. It may move a clock, or
	// wait for another goroutine. It returns false if nothing is to be waited for, as nil does.
	Wait func() bool
	port uint16
}

// Dial connects a client.
func (n *Network) Dial() (*Client, error) {
	n.port++
	c := &Client{network: n, addr: netip.AddrPortFrom(Local.Addr(), n.port)}
	var err error
	c.Wire, err = Connect(n.Server, c.addr)
	return c, err
}

// Settle makes turns until there is nothing to do.
func (n *Network) Settle() error {
	for more := true; more; more = n.Loop.Idle() == 0 {
		if err := n.Loop.Turn(); err != nil {
			return err
		}
	}
	return nil
}

// Await runs fn in a goroutine, makes turns until it returns, and returns its error.
func (n *Network) Await(fn func() error) error {
	ended := make(chan error, 1)
	go func() { ended <- fn() }()
	for {
		select {
		case err := <-ended:
			return err
		case <-n.Loop.Woken():
		}
		if err := n.Settle(); err != nil {
			return err
		}
	}
}
