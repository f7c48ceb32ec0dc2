package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-queue/holdfast/netproto/access"
)

// Why a server does not do what it is asked. ErrDenied and ErrForbidden are also ErrRefused.
var (
	// ErrRefused: the server answered that it gives no backup, and why.
	ErrRefused = errors.New("refuses")
	// ErrUnknown: the server answered that it does not know whether it has done what it was asked.
	ErrUnknown = errors.New("does not know whether this was done")
	// ErrDenied: the user and password are missing or wrong.
	ErrDenied = fmt.Errorf("%w without a user and password that it knows", ErrRefused)
	// ErrForbidden: the user does not have the right.
	ErrForbidden = fmt.Errorf("%w what this user asks", ErrRefused)
	// ErrNotReady: the server answered that it does not do now what its clients want, and why.
	ErrNotReady = errors.New("is not ready")
)

// Client asks a server.
type Client struct {
	Address  string // HOST:PORT
	User     string // who logs in; the user default if empty
	Password string // nobody logs in if empty
	Timeout  time.Duration
	// Dial makes connections, such as encrypted ones; nil: plain ones.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Fetch asks for a backup. The caller reads the transfer to its end and closes it. A body that is
// cut short ends in an error, never in io.EOF. ctx ends the transfer; Timeout bounds how long
// Fetch, and each Read, waits for the server.
func (c *Client) Fetch(ctx context.Context, r Request) (*Transfer, error) {
	return c.ask(ctx, http.MethodGet, "/backup", r.query(), ErrRefused)
}

// Ready returns nil if the server is ready, and else why not, or why nobody knows.
func (c *Client) Ready(ctx context.Context) error {
	t, err := c.ask(ctx, http.MethodGet, "/readyz", "", ErrNotReady)
	if err != nil {
		return err
	}
	return t.Close()
}

// Reload has the server read its settings again. The error wraps ErrRefused if nothing has changed
// because they are not right.
func (c *Client) Reload(ctx context.Context) (said Reloaded, err error) {
	err = c.askFor(ctx, http.MethodPost, "/reload", &said)
	return said, err
}

// Cluster asks a node of a cell what that is.
func (c *Client) Cluster(ctx context.Context) (said Cluster, err error) {
	err = c.askFor(ctx, http.MethodGet, "/cluster", &said)
	return said, err
}

// ChangeCluster has a node of a cell Remove another one, or HandOver the queues to it. The error
// wraps ErrRefused if the node says that this is not done, and ErrUnknown if it does not know.
func (c *Client) ChangeCluster(ctx context.Context, what, node string) error {
	t, err := c.ask(ctx, http.MethodPost, "/cluster/"+what, url.Values{"node": {node}}.Encode(), ErrRefused)
	if err != nil {
		return err
	}
	return t.Close()
}

// askFor asks for JSON.
func (c *Client) askFor(ctx context.Context, method, path string, said any) error {
	t, err := c.ask(ctx, method, path, "", ErrRefused)
	if err != nil {
		return err
	}
	defer t.Close()
	if err := json.NewDecoder(t).Decode(said); err != nil {
		return fmt.Errorf("the server at %s answered what is no JSON: %w", c.Address, err)
	}
	return nil
}

// ask makes a request. Where the answer is not 200 the error wraps refused, unless a login would
// help.
func (c *Client) ask(ctx context.Context, method, path, query string, refused error) (*Transfer, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	address, timeout, dial := c.Address, c.Timeout, c.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	transport := &http.Transport{
		DisableCompression: true,
		DisableKeepAlives:  true, // one request only
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			conn, err := dial(ctx, network, address)
			socket := conn
			if sealed, ok := conn.(interface{ NetConn() net.Conn }); ok {
				socket = sealed.NetConn()
			}
			if tcp, ok := socket.(*net.TCPConn); ok {
				_ = tcp.SetReadBuffer(socketBuffer)
			}
			return conn, err
		},
	}
	host := address
	if strings.HasPrefix(host, ":") { // this machine is dialled, but a request must name a host
		host = "localhost" + host
	}
	where := url.URL{Scheme: "http", Host: host, Path: path, RawQuery: query}
	request, err := http.NewRequestWithContext(ctx, method, where.String(), nil)
	if err != nil {
		cancel(nil)
		return nil, fmt.Errorf("address %q: expected HOST:PORT: %w", address, err)
	}
	if c.Password != "" {
		request.SetBasicAuth(cmp.Or(c.User, access.Default), c.Password)
	}
	t := &Transfer{ctx: ctx, cancel: cancel, timeout: timeout}
	t.silence = time.AfterFunc(timeout, func() {
		cancel(fmt.Errorf("the server at %s sent nothing for %v: %w", address, timeout, context.DeadlineExceeded))
	})
	response, err := transport.RoundTrip(request)
	t.silence.Stop()
	if err != nil {
		defer cancel(nil)
		return nil, t.explain(err)
	}
	t.body = response.Body
	t.Packets = expected(response.Header)
	if response.StatusCode != http.StatusOK {
		defer t.Close()
		const longest = 4096
		why, _ := io.ReadAll(io.LimitReader(t, longest))
		return nil, fmt.Errorf("the server at %s %w: %s", address, refusal(response.StatusCode, refused), strings.TrimSpace(string(why)))
	}
	return t, nil
}

func refusal(status int, other error) error {
	switch status {
	case http.StatusUnauthorized:
		return ErrDenied
	case http.StatusForbidden:
		return ErrForbidden
	case http.StatusGatewayTimeout:
		return ErrUnknown
	}
	return other
}

// Transfer is a backup under way. It belongs to one goroutine.
type Transfer struct {
	// Packets is about how many packets will come; 0 if the server does not say.
	Packets int64

	ctx     context.Context // of the request
	cancel  context.CancelCauseFunc
	body    io.ReadCloser
	timeout time.Duration
	silence *time.Timer // cancels the request; runs while a call waits for the server
}

// expected is how many packets the server announces; 0 if it does not.
func expected(h http.Header) int64 {
	n, err := strconv.ParseInt(h.Get(packetsHeader), 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// Read implements io.Reader.
func (t *Transfer) Read(p []byte) (int, error) {
	t.silence.Reset(t.timeout)
	n, err := t.body.Read(p)
	t.silence.Stop()
	if err != nil && !errors.Is(err, io.EOF) {
		err = t.explain(err)
	}
	return n, err
}

// explain replaces an error by why the request was cancelled, if it was.
func (t *Transfer) explain(err error) error {
	if cause := context.Cause(t.ctx); cause != nil {
		return cause
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) {
		// Not wrapped: whoever reads records takes io.ErrUnexpectedEOF for the end of the file.
		return fmt.Errorf("the server cut its answer short; its log says why: %v", err)
	}
	return err
}

// Close ends the transfer, whether it is whole or not.
func (t *Transfer) Close() error {
	t.silence.Stop()
	t.cancel(nil)
	return t.body.Close()
}
