package admin

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// routes is every path there is.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/healthz", s.get(s.serveHealth))
	mux.Handle("/backup", s.get(s.serveBackup))
	mux.Handle("/", s.get(func(w http.ResponseWriter, r *http.Request) {
		refuse(w, http.StatusNotFound, fmt.Sprintf("path %q does not exist: expected /healthz or /backup", r.URL.Path))
	}))
	return mux
}

// get passes on GET requests that name the server by its address and do not come from a web page of
// another site.
func (s *Server) get(serve http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 { // the server reads the body after its answer: do not wait for it long
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(headerTimeout))
		}
		switch {
		case !s.config.AnyHost && !isAddress(r.Host):
			refuse(w, http.StatusForbidden, fmt.Sprintf("host %q is not an IP address or localhost: use the server's IP address", r.Host))
		case isCrossSite(r):
			refuse(w, http.StatusForbidden, "this request comes from a web page of another site: send it with a program, or type its address")
		case r.Method != http.MethodGet:
			w.Header().Set("Allow", http.MethodGet)
			refuse(w, http.StatusMethodNotAllowed, fmt.Sprintf("method %s is not allowed: use GET", r.Method))
		default:
			serve(w, r)
		}
	})
}

// isAddress tells whether a Host header is an IP address or localhost. A web page of another site
// is loaded by that site's name.
func isAddress(host string) bool {
	if host == "" { // HTTP/1.0 need not name a host, and no browser speaks it
		return true
	}
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if strings.EqualFold(host, "localhost") {
		return true
	}
	_, err := netip.ParseAddr(host)
	return err == nil
}

// isCrossSite tells whether a browser says that a page of another site made the request. Unlike
// http.CrossOriginProtection it does not let GET requests pass: they take the one slot for backups.
func isCrossSite(r *http.Request) bool {
	for _, site := range r.Header.Values("Sec-Fetch-Site") {
		if site != "none" && site != "same-origin" {
			return true
		}
	}
	for _, origin := range r.Header.Values("Origin") {
		if u, err := url.Parse(origin); err != nil || u.Host == "" || !strings.EqualFold(u.Host, r.Host) {
			return true
		}
	}
	return false
}

// refuse answers with a status and a sentence.
func refuse(w http.ResponseWriter, code int, why string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, why+"\n")
}

func (s *Server) serveHealth(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, "ok\n")
}

// serveBackup streams a backup. An error before the first piece has left is answered with a status
// and a sentence. Later ones abort the connection, so that the client sees that the body is cut
// short.
func (s *Server) serveBackup(w http.ResponseWriter, r *http.Request) {
	request, err := parseRequest(r.URL.RawQuery)
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	if !s.backup.TryLock() {
		w.Header().Set("Retry-After", "10")
		refuse(w, http.StatusServiceUnavailable, "another backup is under way, and there is one at a time: try again when it has ended")
		return
	}
	defer s.backup.Unlock()
	ctx := r.Context()
	if ctx.Err() != nil {
		panic(http.ErrAbortHandler) // the server has begun to stop
	}
	body := &body{
		ctx: ctx, response: w, control: http.NewResponseController(w), request: request, stall: s.config.StallTimeout,
		pace: pace{least: s.config.MinRate, window: s.config.StallTimeout},
	}
	buffered := &buffered{bufio.NewWriterSize(body, piece), body}
	began := time.Now()
	err = s.config.Backup(ctx, buffered, request)
	if err == nil {
		err = buffered.Flush()
	}
	log := s.config.Logger.With("remote", r.RemoteAddr, "bytes", body.sent, "took", time.Since(began).Round(time.Millisecond))
	switch {
	case err == nil:
		log.Info("backup done")
	case body.sent == 0 && ctx.Err() == nil:
		log.Warn("backup refused", "error", err)
		code := http.StatusInternalServerError
		if errors.Is(err, ErrRequest) {
			code = http.StatusBadRequest
		}
		refuse(w, code, err.Error())
	default:
		log.Warn("backup cut short", "error", err)
		panic(http.ErrAbortHandler)
	}
}

// body sends the pieces of a backup. It belongs to the goroutine of its request.
type body struct {
	ctx      context.Context
	response http.ResponseWriter
	control  *http.ResponseController
	request  Request
	stall    time.Duration
	pace     pace
	expected uint64 // packets; 0 if not known
	sent     int64  // bytes
}

// buffered collects what a Backup writes into pieces.
type buffered struct {
	*bufio.Writer
	body *body
}

// Expect implements Writer.
func (b *buffered) Expect(packets uint64) { b.body.expected = packets }

// Write sends p in pieces, giving the client the stall time-out for each.
func (b *body) Write(p []byte) (written int, err error) {
	for len(p) > 0 {
		n, err := b.write(p[:min(piece, len(p))])
		written += n
		if err != nil {
			return written, err
		}
		p = p[n:]
	}
	return written, nil
}

func (b *body) write(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, fmt.Errorf("the backup was stopped: %w", err)
	}
	began := time.Now()
	if err := b.control.SetWriteDeadline(began.Add(b.stall)); err != nil {
		return 0, err
	}
	if b.sent == 0 { // the first piece brings the header with it
		b.response.Header().Set("Content-Type", b.request.contentType())
		b.response.Header().Set("Content-Disposition", "attachment; filename=holdfast."+b.request.Format)
		b.response.Header().Set("X-Content-Type-Options", "nosniff")
		if b.expected > 0 {
			b.response.Header().Set(packetsHeader, strconv.FormatUint(b.expected, 10))
		}
	}
	n, err := b.response.Write(p)
	b.sent += int64(n)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return n, fmt.Errorf("the client took less than %d bytes in %v", piece, b.stall)
	}
	return n, cmp.Or(err, b.pace.add(n, time.Since(began)))
}
