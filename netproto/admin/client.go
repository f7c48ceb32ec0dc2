package admin

import (
	"context"
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
)

// ErrRefused: the server answered that it gives no backup, and why.
var ErrRefused = errors.New("refuses")

// Fetch asks the server at address for a backup. The caller reads the transfer to its end and
// closes it. A body that is cut short ends in an error, never in io.EOF. ctx ends the transfer;
// timeout bounds how long Fetch, and each Read, waits for the server.
func Fetch(ctx context.Context, address string, r Request, timeout time.Duration) (*Transfer, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	transport := &http.Transport{
		DisableCompression: true,
		DisableKeepAlives:  true, // one request only
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
			if tcp, ok := conn.(*net.TCPConn); ok {
				_ = tcp.SetReadBuffer(socketBuffer)
			}
			return conn, err
		},
	}
	host := address
	if strings.HasPrefix(host, ":") { // this machine is dialled, but a request must name a host
		host = "localhost" + host
	}
	where := url.URL{Scheme: "http", Host: host, Path: "/backup", RawQuery: r.query()}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, where.String(), nil)
	if err != nil {
		cancel(nil)
		return nil, fmt.Errorf("address %q: expected HOST:PORT: %w", address, err)
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
		return nil, fmt.Errorf("the server at %s %w: %s", address, ErrRefused, strings.TrimSpace(string(why)))
	}
	return t, nil
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
		return fmt.Errorf("the server cut the backup short; its log says why: %v", err)
	}
	return err
}

// Close ends the transfer, whether it is whole or not.
func (t *Transfer) Close() error {
	t.silence.Stop()
	t.cancel(nil)
	return t.body.Close()
}
