package peer

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"
)

// clientHeader names the address of a client that is passed on.
const clientHeader = "Holdfast-Client"

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
	_, err = io.WriteString(conn, "HTTP/1.1 200 Connection established\r\n\r\n")
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

// Connect has the owner at the address serve a client at a door, and returns the connection to it.
// Its Close waits for nobody.
func (c *Client) Connect(ctx context.Context, address, door string, client netip.AddrPort) (_ net.Conn, err error) {
	dial := new(net.Dialer).DialContext
	if c.tls != nil {
		dial = (&tls.Dialer{Config: c.tls()}).DialContext
	}
	conn, err := dial(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { cut(conn) })()
	defer func() {
		if err != nil {
			cut(conn)
		}
	}()
	request := &http.Request{Method: http.MethodConnect, URL: &url.URL{Path: "/" + door}, Host: address, Header: http.Header{clientHeader: {client.String()}}}
	if err := request.Write(conn); err != nil {
		return nil, err
	}
	head := bufio.NewReader(io.LimitReader(conn, maxHeader))
	response, err := http.ReadResponse(head, request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("node at %s: %w", address, refused(response))
	}
	early, _ := head.Peek(head.Buffered()) // the door may have spoken first
	return passage{conn.(stream), io.MultiReader(bytes.NewReader(early), conn)}, nil
}

// passage is a connection to a door of the owner.
type passage struct {
	stream
	from io.Reader // what came with the answer, and then the rest
}

// Read implements net.Conn, as Close does.
func (p passage) Read(b []byte) (int, error) { return p.from.Read(b) }

func (p passage) Close() error {
	cut(p.stream)
	return nil
}
