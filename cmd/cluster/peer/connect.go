package peer

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"
)

const (
	clientHeader = "Holdfast-Client" // the address of a client that is passed on
	upgrade      = "holdfast"        // to what a door speaks
)

// Door serves a connection, which belongs to it then, as one of a client at remote.
type Door func(conn net.Conn, remote netip.AddrPort)

// pass gives the connection of a request to a door.
func (s *Server) pass(w http.ResponseWriter, r *http.Request) {
	client, err := netip.ParseAddrPort(r.Header.Get(clientHeader))
	if err != nil {
		refuse(w, http.StatusBadRequest, fmt.Errorf("%s: expected the address of the client: %w", clientHeader, err))
		return
	}
	door, err := s.config.Door(r.PathValue("door"))
	if err != nil {
		refuse(w, http.StatusServiceUnavailable, err)
		return
	}
	conn, ahead, err := http.NewResponseController(w).Hijack()
	if err != nil {
		refuse(w, http.StatusInternalServerError, err)
		return
	}
	_ = conn.SetDeadline(time.Now().Add(stallTime))
	_, err = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+upgrade+"\r\n\r\n")
	if err != nil || ahead.Reader.Buffered() > 0 { // nothing may come before the answer
		cut(conn)
		return
	}
	_ = conn.SetDeadline(time.Time{})
	if sealed, ok := conn.(*tls.Conn); ok {
		conn = brisk{sealed}
	}
	door(conn, client)
}

// brisk is a connection over TLS whose end waits for nobody: a door may not.
type brisk struct{ *tls.Conn }

// Close implements net.Conn.
func (b brisk) Close() error { return b.NetConn().Close() }

// CloseWrite tells the peer of the end when what is being written has left.
func (b brisk) CloseWrite() error {
	go func() { _ = b.Conn.CloseWrite() }() // ends after five seconds, or with the connection
	return nil
}

// stream is a connection of which each side ends by itself.
type stream interface {
	io.ReadWriteCloser
	CloseWrite() error
}

// Connect has the owner at the address serve a client at a door, and returns the connection to it.
// Its Close waits for nobody.
func (c *Client) Connect(ctx context.Context, address, door string, client netip.AddrPort) (stream, error) {
	header := http.Header{clientHeader: {client.String()}, "Connection": {"Upgrade"}, "Upgrade": {upgrade}}
	response, err := c.do(ctx, http.MethodGet, address, "/doors/"+door, nil, header, http.StatusSwitchingProtocols)
	if err != nil {
		return nil, err
	}
	conn, ok := response.Body.(stream) // as net/http says of an upgrade
	if !ok {
		_ = response.Body.Close()
		return nil, fmt.Errorf("node at %s: it answers %s, and does not upgrade", address, response.Status)
	}
	return conn, nil
}
