package peer

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// Client asks nodes, by the addresses of their own ports. Any goroutine may call its methods. What
// a node refuses is an error with its words.
type Client struct {
	tls  func() *tls.Config
	http http.Client
}

// NewClient makes a client. c makes what the next connection has: this node's certificate, and the
// cell's authority. nil: plain, for loopback alone.
func NewClient(c func() *tls.Config) *Client {
	seal := func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dialTimely(ctx, network, address)
		if err != nil {
			return nil, err
		}
		config := c()
		config.ServerName, _, _ = net.SplitHostPort(address) // it was dialled, so it is right
		sealed := tls.Client(conn, config)
		if err := sealed.HandshakeContext(ctx); err != nil {
			cut(sealed)
			return nil, err
		}
		return sealed, nil
	}
	return &Client{c, http.Client{Transport: &http.Transport{
		DialContext: dialTimely, DialTLSContext: seal, MaxResponseHeaderBytes: maxHeader, DisableCompression: true,
	}}}
}

// ask makes a request, and has its answer read.
func (c *Client) ask(ctx context.Context, method, address, path string, body []byte, read func(io.Reader) error) error {
	scheme := "http://"
	if c.tls != nil {
		scheme = "https://"
	}
	request, err := http.NewRequestWithContext(ctx, method, scheme+address+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		err = refused(response)
	} else {
		err = read(response.Body)
	}
	if err != nil {
		return fmt.Errorf("node at %s: %w", address, err)
	}
	return nil
}

// into reads JSON.
func into(v any) func(io.Reader) error {
	return func(r io.Reader) error {
		b, err := io.ReadAll(io.LimitReader(r, maxAnswer)) // to its end, so that the connection stays
		if err != nil {
			return err
		}
		return json.Unmarshal(b, v)
	}
}

// refused is why a node does not do what it was asked.
func refused(r *http.Response) error {
	said := refusal{r.Status}
	_ = into(&said)(r.Body) // another program may not speak JSON
	return fmt.Errorf("refused: %s", said.Error)
}

// stream is a connection of which each side ends by itself.
type stream interface {
	net.Conn
	CloseWrite() error
}

// timely is a stream whose peer must say and take something in time.
type timely struct{ stream }

// Read implements net.Conn, as Write does.
func (t timely) Read(b []byte) (int, error) {
	_ = t.SetReadDeadline(time.Now().Add(stallTime))
	return t.stream.Read(b)
}

func (t timely) Write(b []byte) (int, error) {
	_ = t.SetWriteDeadline(time.Now().Add(stallTime))
	return t.stream.Write(b)
}

func dialTimely(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return timely{conn.(stream)}, nil
}
