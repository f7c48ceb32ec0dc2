package admin

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
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

	"github.com/holdfast-queue/holdfast/netproto/access"
)

// route is a path and who may ask for it; everybody without a rule.
type route struct {
	method string
	path   string
	may    rule
	serve  http.HandlerFunc
}

// table is every path there is.
func (s *Server) table() []route {
	all := []route{
		{http.MethodGet, "/livez", nil, state(s.config.Health.Live)},
		{http.MethodGet, "/readyz", nil, s.ready},
		{http.MethodGet, "/owner", nil, state(s.config.Health.Owns)},
		{http.MethodGet, "/healthz", nil, s.waitForHealth},
		{http.MethodGet, "/backup", mayBackUp, s.served(s.serveBackup)},
	}
	if s.config.Metrics != nil {
		all = append(all, route{http.MethodGet, "/metrics", mayLookAtAll, s.serveMetrics})
	}
	if s.config.Reload != nil {
		all = append(all, route{http.MethodPost, "/reload", mayOperate, s.served(s.serveReload)})
	}
	if s.config.Nodes != nil {
		all = append(all, route{http.MethodGet, "/cluster", mayOperate, s.serveCluster},
			route{http.MethodPost, "/cluster/" + Remove, mayOperate, s.changing(Remove, s.config.Nodes.Remove)},
			route{http.MethodPost, "/cluster/" + HandOver, mayOperate, s.changing(HandOver, s.config.Nodes.HandOver)})
	}
	if s.config.Profiles {
		all = append(all, route{http.MethodGet, profiles, mayOperate, s.serveProfile})
	}
	return all
}

// front is the pattern of the page itself.
const front = "/{$}"

// routes serves the table.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	var paths []string
	for _, r := range s.table() {
		mux.Handle(r.path, s.guard(by(r.method, s.only(r.may, r.serve))))
		paths = append(paths, r.path)
	}
	if s.config.Page != nil {
		mux.Handle(front, s.guard(s.servePage))
		mux.Handle("/page/", s.guard(s.servePage))
		paths = append(paths, "/")
	}
	if s.config.Nodes == nil {
		single := func(w http.ResponseWriter, _ *http.Request) {
			refuse(w, http.StatusNotFound, "this is a single server, and no node of a cell")
		}
		mux.Handle("/cluster", s.guard(single))
		mux.Handle("/cluster/", s.guard(single))
	}
	mux.Handle("/", s.guard(by(http.MethodGet, func(w http.ResponseWriter, r *http.Request) {
		refuse(w, http.StatusNotFound, fmt.Sprintf("path %q does not exist: expected one of %s", r.URL.Path, strings.Join(paths, ", ")))
	})))
	return mux
}

// guard passes on requests that name the server by its address and do not come from a web page of
// another site.
func (s *Server) guard(serve http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 { // the server reads the body after its answer: do not wait for it long
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout))
		}
		switch {
		case !s.config.AnyHost && !isAddress(r.Host):
			refuse(w, http.StatusForbidden, fmt.Sprintf("host %q is not an IP address or localhost: use the server's IP address", r.Host))
		case isCrossSite(r) && !isLink(r):
			refuse(w, http.StatusForbidden, "this request comes from a web page of another site: send it with a program, or type its address")
		default:
			serve(w, r)
		}
	})
}

// Foreign tells why a request may be that of a web page of another site; nil if it cannot be.
func Foreign(r *http.Request) error {
	switch {
	case !isAddress(r.Host):
		return fmt.Errorf("host %q is not an IP address or localhost", r.Host)
	case isCrossSite(r):
		return errors.New("this request comes from a web page of another site")
	}
	return nil
}

// servePage passes on requests of the page. Without users, names of the internet are refused even
// if every host is accepted: a site that has bound its name to this address could manage queues.
func (s *Server) servePage(w http.ResponseWriter, r *http.Request) {
	if s.config.Users == nil && !isAddress(r.Host) && strings.Contains(r.Host, ".") {
		refuse(w, http.StatusForbidden, fmt.Sprintf("host %q could be another site's: without users the page is at an IP address, localhost or a name without dots", r.Host))
		return
	}
	s.config.Page.ServeHTTP(w, r)
}

// by passes on requests of a method.
func by(method string, serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != method {
			w.Header().Set("Allow", method)
			refuse(w, http.StatusMethodNotAllowed, fmt.Sprintf("method %s is not allowed: use %s", r.Method, method))
			return
		}
		serve(w, r)
	}
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
// http.CrossOriginProtection it does not let GET requests pass: they take the place of a backup.
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

// isLink tells whether a browser says that somebody follows a link to the page. The page holds
// nothing that is secret, and does nothing by being opened.
func isLink(r *http.Request) bool {
	return r.Pattern == front && r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}

// refuse answers with a status and a sentence.
func refuse(w http.ResponseWriter, code int, why string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, why+"\n")
}

// serveMetrics answers with the metrics. A few clients have all the time for them, and the others,
// which may be clients that read nothing, make room if they must.
func (s *Server) serveMetrics(w http.ResponseWriter, r *http.Request) {
	if leave := s.scrapes.Take(userOf(r)); leave != nil {
		defer leave()
		defer Keep(r)()
	}
	s.config.Metrics.ServeHTTP(w, r)
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
	if a := userOf(r); a != nil && !a.May(access.Operate, nil) {
		request.May = func(name []byte) bool { return a.May(access.Look, name) }
	}
	leave := s.backups.Take(userOf(r))
	if leave == nil {
		w.Header().Set("Retry-After", "10")
		refuse(w, http.StatusServiceUnavailable, "another backup is under way, and there is one at a time: try again when it has ended")
		return
	}
	defer leave()
	defer Keep(r)()
	s.reading.RLock()
	defer s.reading.RUnlock()
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
	if err == nil {
		err = body.control.Flush() // what the response has kept back
	}
	log := s.config.Logger.With("remote", r.RemoteAddr, "bytes", body.sent, "took", time.Since(began).Round(time.Millisecond))
	switch {
	case err == nil:
		log.Info("backup done")
		if len(request.Queues) == 0 {
			s.backedUp.Store(began.UnixMilli())
		}
		s.audit(r, "backup", strings.Join(request.Queues, " "))
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
		b.response.Header().Set("Content-Type", contentTypes[b.request.Format])
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

// serveReload has the server read its settings again.
func (s *Server) serveReload(w http.ResponseWriter, r *http.Request) {
	leave := s.reloads.Take(userOf(r))
	if leave == nil {
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusServiceUnavailable, "another reload is under way, and there is one at a time: try again when it has ended")
		return
	}
	defer leave()
	defer Keep(r)()
	said, err := s.config.Reload(r.Context())
	if err != nil {
		refuse(w, http.StatusConflict, err.Error())
		return
	}
	s.audit(r, "reload", "")
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(said) // or the client has gone
}
