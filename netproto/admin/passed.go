package admin

import (
	"net"
	"net/netip"
)

// arrival is a connection of a client that another machine has accepted.
type arrival struct {
	net.Conn
	remote net.Addr // the client's
}

// RemoteAddr implements net.Conn.
func (a arrival) RemoteAddr() net.Addr { return a.remote }

// passage accepts what Pass brings.
type passage struct{ server *Server }

// Accept implements net.Listener, as Close and Addr do.
func (p passage) Accept() (net.Conn, error) {
	select {
	case conn := <-p.server.brought:
		return conn, nil
	case <-p.server.stopping.Done():
		return nil, net.ErrClosed
	}
}

func (p passage) Close() error   { return nil }
func (p passage) Addr() net.Addr { return p.server.Addr() }

// Pass serves a connection of a client at remote that another machine has accepted, as one that
// Serve has. It belongs to the server then, and Close of it must not wait for its peer. Pass waits
// until it has a place.
func (s *Server) Pass(nc net.Conn, remote netip.AddrPort) {
	select {
	case s.brought <- arrival{nc, net.TCPAddrFromAddrPort(netip.AddrPortFrom(remote.Addr().Unmap(), remote.Port()))}:
	case <-s.stopping.Done():
		_ = nc.Close()
	}
}
