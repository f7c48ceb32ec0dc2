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
	"os"
	"time"
)

// Client asks nodes, by the addresses of their own ports. Any goroutine may call its methods. What
// a node refuses is an error with its words.
type Client struct {
	scheme string
	http   http.Client
}

// NewClient makes a client. c makes what the next connection has: this node's certificate, and the
// cell's authority. nil: plain, for loopback alone.
func NewClient(c func() *tls.Config) *Client {
	dial := &net.Dialer{Timeout: headerTime} // a machine that is off says nothing
	by := &http.Transport{DialContext: dial.DialContext, MaxResponseHeaderBytes: maxHeader, DisableCompression: true, IdleConnTimeout: stallTime}
	if c == nil {
		return &Client{"http://", http.Client{Transport: by}}
	}
	by.DialTLSContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&tls.Dialer{NetDialer: dial, Config: c()}).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return brisk{conn.(*tls.Conn)}, nil
	}
	return &Client{"https://", http.Client{Transport: by}}
}

// do makes a request, of which only an answer with this status is none that refuses.
func (c *Client) do(ctx context.Context, method, address, path string, body []byte, header http.Header, status int) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.scheme+address+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header = header
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != status {
		defer response.Body.Close()
		return nil, fmt.Errorf("node at %s: %w", address, refused(response))
	}
	return response, nil
}

// ask makes a request, and has its answer read, of which each piece must come in time.
func (c *Client) ask(ctx context.Context, method, address, path string, body []byte, read func(io.Reader) error) error {
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	stall := time.AfterFunc(stallTime, func() { giveUp(os.ErrDeadlineExceeded) })
	defer stall.Stop()
	response, err := c.do(ctx, method, address, path, body, nil, http.StatusOK)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if err := read(timely{response.Body, stall}); err != nil {
		return fmt.Errorf("node at %s: %w", address, err)
	}
	return nil
}

// timely puts off the end of a request with each piece of its answer.
type timely struct {
	io.Reader
	end *time.Timer
}

// Read implements io.Reader.
func (t timely) Read(b []byte) (int, error) {
	t.end.Reset(stallTime)
	return t.Reader.Read(b)
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
