package admin

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/netproto/access"
)

// patience bounds every wait: far longer than any should take.
const patience = 30 * time.Second

// start serves until the test ends.
func start(t *testing.T, c Config) *Server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(l, c)
	served := make(chan error, 1)
	go func() { served <- s.Serve() }() // ends with Close below
	t.Cleanup(func() {
		s.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return s
}

// ask sends a request as bytes and returns the status and the body of the answer.
func ask(t *testing.T, s *Server, request string) (int, string) {
	t.Helper()
	conn := dial(t, s)
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

func dial(t *testing.T, s *Server) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return conn.(*net.TCPConn)
}

func fetch(t *testing.T, s *Server, r Request) ([]byte, error) {
	t.Helper()
	body, err := (&Client{Address: s.Addr().String(), Timeout: patience}).Fetch(t.Context(), r)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return io.ReadAll(body)
}

func TestBackupArrivesAsWritten(t *testing.T) {
	want := bytes.Repeat([]byte("0123456789abcdef"), 40_000) // not a multiple of a piece
	queues := []string{"a*", "\xff\x00&queue=x", ""}
	var got Request
	s := start(t, Config{Backup: func(_ context.Context, w Writer, r Request) error {
		got = r
		_, err := w.Write(want[:100])
		return errors.Join(err, func() error { _, err := w.Write(want[100:]); return err }())
	}})
	body, err := fetch(t, s, Request{Format: FormatJSONL, Queues: queues})
	if err != nil || !bytes.Equal(body, want) {
		t.Errorf("%d bytes, error %v; want %d bytes as written", len(body), err, len(want))
	}
	if got.Format != FormatJSONL || !slices.Equal(got.Queues, queues) {
		t.Errorf("request %+v, want jsonl and queues %q", got, queues)
	}
}

func TestClientIsToldHowManyPacketsToExpect(t *testing.T) {
	for name, c := range map[string]struct {
		header string // of the answer of a fake server
		backup Backup // of a real one, if not nil
		want   int64
	}{
		"told":                      {backup: func(_ context.Context, w Writer, _ Request) error { w.Expect(1_000_000); return write(w) }, want: 1_000_000},
		"not known":                 {backup: func(_ context.Context, w Writer, _ Request) error { return write(w) }},
		"a number that is none":     {header: "many"},
		"a number below 0":          {header: "-1"},
		"a number that is too long": {header: "99999999999999999999"},
	} {
		t.Run(name, func(t *testing.T) {
			var address string
			if c.backup != nil {
				address = start(t, Config{Backup: c.backup}).Addr().String()
			} else {
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set(packetsHeader, c.header)
				}))
				defer server.Close()
				address = server.Listener.Addr().String()
			}
			body, err := (&Client{Address: address, Timeout: patience}).Fetch(t.Context(), Request{Format: FormatMsgpack})
			if err != nil {
				t.Fatal(err)
			}
			defer body.Close()
			if body.Packets != c.want {
				t.Errorf("%d packets are expected, want %d", body.Packets, c.want)
			}
		})
	}
}

func TestAddressWithoutAHostIsThisMachine(t *testing.T) {
	s := start(t, Config{Backup: func(_ context.Context, w Writer, _ Request) error { return write(w) }})
	body, err := (&Client{Address: fmt.Sprintf(":%d", s.Addr().(*net.TCPAddr).Port), Timeout: patience}).Fetch(t.Context(), Request{Format: FormatMsgpack})
	if err != nil {
		t.Fatal(err)
	}
	_ = body.Close()
}

func write(w io.Writer) error {
	_, err := io.WriteString(w, "a backup")
	return err
}

func TestRequestsAreAnsweredByStatus(t *testing.T) {
	s := start(t, Config{Backup: func(_ context.Context, w Writer, r Request) error {
		if slices.Contains(r.Queues, "[") {
			_, _ = io.WriteString(w, "the beginning of what will not come")
			return fmt.Errorf("%w: glob [", ErrRequest)
		}
		if slices.Contains(r.Queues, "broken") {
			return errors.New("the disk is on fire")
		}
		_, err := io.WriteString(w, r.Format)
		return err
	}})
	const get = " HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
	for name, c := range map[string]struct {
		request string
		code    int
		want    string
	}{
		"health":                     {"GET /healthz" + get, 200, "ok\n"},
		"a backup is msgpack":        {"GET /backup" + get, 200, "msgpack"},
		"a backup in JSON":           {"GET /backup?format=jsonl&queue=a" + get, 200, "jsonl"},
		"alive":                      {"GET /livez" + get, 200, "ok\n"},
		"ready":                      {"GET /readyz" + get, 200, "ok\n"},
		"profiles are off":           {"GET /debug/pprof/heap" + get, 404, "does not exist"},
		"unknown path":               {"GET /metrics" + get, 404, "expected one of /livez, /readyz, /owner, /healthz, /backup"},
		"the root":                   {"GET /" + get, 404, "expected one of /livez, /readyz, /owner, /healthz, /backup"},
		"a backup of files":          {"GET /backup?format=tar" + get, 200, "tar"},
		"files of a queue":           {"GET /backup?format=tar&queue=a" + get, 400, "leave queue out"},
		"unknown format":             {"GET /backup?format=csv" + get, 400, "msgpack, jsonl or tar"},
		"two formats":                {"GET /backup?format=jsonl&format=jsonl" + get, 400, "once"},
		"unknown parameter":          {"GET /backup?queues=x" + get, 400, "queues"},
		"broken query":               {"GET /backup?queue=%zz" + get, 400, "cannot be parsed"},
		"a glob that is none":        {"GET /backup?queue=[" + get, 400, "glob ["},
		"a failure before any byte":  {"GET /backup?queue=broken" + get, 500, "on fire"},
		"another method":             {"POST /backup HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\r\n", 405, "use GET"},
		"a name of another site":     {"GET /backup HTTP/1.1\r\nHost: example.com:7072\r\n\r\n", 403, "IP address or localhost"},
		"an address that looks like": {"GET /backup HTTP/1.1\r\nHost: 127.0.0.1.example.com\r\n\r\n", 403, "IP address or localhost"},
		"a page of another site":     {browser("/backup", "Sec-Fetch-Site: cross-site"), 403, "another site"},
		"a page of another port":     {browser("/backup", "Sec-Fetch-Site: same-site"), 403, "another site"},
		"health from another site":   {browser("/healthz", "Sec-Fetch-Site: cross-site"), 403, "another site"},
		"two sites":                  {browser("/backup", "Sec-Fetch-Site: none\r\nSec-Fetch-Site: cross-site"), 403, "another site"},
		"an old browser":             {browser("/backup", "Origin: http://example.com"), 403, "another site"},
		"the origin of another port": {browser("/backup", "Origin: http://127.0.0.1:8080"), 403, "another site"},
		"an origin that is hidden":   {browser("/backup", "Origin: null"), 403, "another site"},
		"a foreign origin after all": {browser("/backup", "Sec-Fetch-Site: same-origin\r\nOrigin: http://example.com"), 403, "another site"},
		"an address typed by a user": {browser("/backup", "Sec-Fetch-Site: none"), 200, "msgpack"},
		"a page of the server's own": {browser("/backup", "Sec-Fetch-Site: same-origin\r\nOrigin: http://127.0.0.1:7072"), 200, "msgpack"},
		"localhost":                  {"GET /healthz HTTP/1.1\r\nHost: localhost:7072\r\n\r\n", 200, "ok"},
		"IPv6":                       {"GET /healthz HTTP/1.1\r\nHost: [::1]:7072\r\n\r\n", 200, "ok"},
		"no name at all":             {"GET /healthz HTTP/1.0\r\n\r\n", 200, "ok"},
	} {
		t.Run(name, func(t *testing.T) {
			if code, body := ask(t, s, c.request); code != c.code || !strings.Contains(body, c.want) {
				t.Errorf("status %d, %q; want %d and %q", code, body, c.code, c.want)
			}
		})
	}
	open := start(t, Config{AnyHost: true})
	if code, _ := ask(t, open, "GET /healthz HTTP/1.1\r\nHost: example.com\r\n\r\n"); code != 200 {
		t.Errorf("with any host: status %d, want 200", code)
	}
	if code, _ := ask(t, open, browser("/healthz", "Sec-Fetch-Site: cross-site")); code != 403 {
		t.Errorf("with any host, from another site: status %d, want 403", code)
	}
}

func TestThePageWithoutUsersIsAtNoNameOfTheInternet(t *testing.T) {
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "page") })
	for _, users := range []*access.Control{nil, testUsers(t)} {
		s := start(t, Config{AnyHost: true, Page: page, Users: users})
		for host, want := range map[string]int{
			"evil.example": 403, "evil.example:7072": 403, "evil.example.": 403, "127.0.0.1.evil.example": 403,
			"10.1.2.3:7072": 200, "[::1]:7072": 200, "localhost": 200, "queues:7072": 200,
		} {
			if users != nil {
				want = 200
			}
			for _, path := range []string{"/", "/page/session"} {
				if code, body := ask(t, s, "GET "+path+" HTTP/1.1\r\nHost: "+host+"\r\n\r\n"); code != want {
					t.Errorf("users %t, host %s, %s: status %d, %q; want %d", users != nil, host, path, code, body, want)
				}
			}
		}
	}
}

func TestALinkOfAnotherSiteOpensThePageAndNothingElse(t *testing.T) {
	s := start(t, Config{Page: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})})
	const link = "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: "
	for request, want := range map[string]int{
		browser("/", link+"document"):                                                  200,
		browser("/", link+"iframe"):                                                    403,
		browser("/page/session", link+"document"):                                      403,
		browser("/backup", link+"document"):                                            403,
		strings.Replace(browser("/", link+"document"), "GET", "POST", 1):               403,
		strings.Replace(browser("/", link+"document"), "127.0.0.1", "evil.example", 1): 403,
	} {
		if code, body := ask(t, s, request); code != want {
			t.Errorf("%q: status %d, %q; want %d", request, code, body, want)
		}
	}
}

// browser is a GET request with a header as browsers send it.
func browser(path, header string) string {
	return "GET " + path + " HTTP/1.1\r\nHost: 127.0.0.1:7072\r\n" + header + "\r\n\r\n"
}

func TestBackupThatFailsOnTheWayIsCutShort(t *testing.T) {
	s := start(t, Config{Backup: func(_ context.Context, w Writer, _ Request) error {
		_, err := w.Write(make([]byte, 3*piece))
		return errors.Join(err, errors.New("unreadable"))
	}})
	if body, err := fetch(t, s, Request{Format: FormatMsgpack}); err == nil || len(body) < piece {
		t.Errorf("%d bytes and error %v, want the bytes so far and an error", len(body), err)
	}
}

// endless is a Backup that goes on until its client or its context ends it.
type endless struct {
	began chan struct{} // gets a value at each start
	ended chan error
}

func newEndless() *endless { return &endless{make(chan struct{}, 2), make(chan error, 2)} }

func (e *endless) backup(ctx context.Context, w Writer, _ Request) error {
	e.began <- struct{}{}
	for {
		if _, err := w.Write(make([]byte, piece)); err != nil {
			e.ended <- err
			return err
		}
	}
}

func (e *endless) wantEnd(t *testing.T) {
	t.Helper()
	select {
	case err := <-e.ended:
		if err == nil {
			t.Error("the backup ended without an error")
		}
	case <-time.After(patience):
		t.Fatal("the backup goes on")
	}
}

func TestOneReloadAtATime(t *testing.T) {
	began, end := make(chan struct{}), make(chan struct{})
	s := start(t, Config{MaxConns: 2, Reload: func(context.Context) (Reloaded, error) {
		began <- struct{}{}
		<-end
		return Reloaded{}, nil
	}})
	const request = "POST /reload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
	first := dial(t, s)
	if _, err := io.WriteString(first, request); err != nil {
		t.Fatal(err)
	}
	<-began
	for range 3 { // each of them makes room for the next
		if code, body := ask(t, s, request); code != 503 || !strings.Contains(body, "one at a time") {
			t.Errorf("status %d, %q; want 503 and a sentence", code, body)
		}
	}
	if code, _ := ask(t, s, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"); code != 200 {
		t.Errorf("health during a reload: status %d, want 200", code)
	}
	close(end)
	if answer, err := http.ReadResponse(bufio.NewReader(first), nil); err != nil || answer.StatusCode != 200 {
		t.Error(answer, err)
	}
}

func TestOneBackupAtATime(t *testing.T) {
	e := newEndless()
	s := start(t, Config{Backup: e.backup})
	first, err := (&Client{Address: s.Addr().String(), Timeout: patience}).Fetch(t.Context(), Request{Format: FormatMsgpack})
	if err != nil {
		t.Fatal(err)
	}
	<-e.began
	if code, body := ask(t, s, "GET /backup HTTP/1.1\r\nHost: localhost\r\n\r\n"); code != 503 || !strings.Contains(body, "one at a time") {
		t.Errorf("status %d, %q; want 503 and a sentence", code, body)
	}
	if code, _ := ask(t, s, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"); code != 200 {
		t.Errorf("health during a backup: status %d, want 200", code)
	}
	_ = first.Close() // its client goes away
	e.wantEnd(t)
	second, err := (&Client{Address: s.Addr().String(), Timeout: patience}).Fetch(t.Context(), Request{Format: FormatMsgpack})
	for err != nil && strings.Contains(err.Error(), "one at a time") { // the handler of the first may not have ended
		second, err = (&Client{Address: s.Addr().String(), Timeout: patience}).Fetch(t.Context(), Request{Format: FormatMsgpack})
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = second.Close()
	<-e.began
	e.wantEnd(t)
}

func TestStalledReaderIsCut(t *testing.T) {
	e := newEndless()
	s := start(t, Config{Backup: e.backup, StallTimeout: 50 * time.Millisecond})
	conn := dial(t, s)
	if _, err := io.WriteString(conn, "GET /backup HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	e.wantEnd(t) // although the connection stays open
}

func TestReaderThatIsSlowOnAverageIsCutAndTheLogSaysSo(t *testing.T) {
	e, log := newEndless(), &logText{}
	s := start(t, Config{
		Backup: e.backup, Logger: slog.New(slog.NewTextHandler(log, nil)),
		StallTimeout: time.Second, MinRate: 1 << 40, // more than any reader can take
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	body, err := (&Client{Address: s.Addr().String(), Timeout: patience}).Fetch(ctx, Request{Format: FormatMsgpack})
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	<-e.began
	if _, err := io.Copy(io.Discard, body); err == nil { // it never stalls
		t.Error("the client took the backup for whole")
	}
	e.wantEnd(t)
	s.Close() // so that the log is complete
	if text := log.String(); !strings.Contains(text, "backup cut short") || !strings.Contains(text, "expected 1099511627776 or more on average over 1s") {
		t.Errorf("the log says %q, want why the backup was cut", text)
	}
}

// logText is a log as one text.
type logText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logText) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func TestPaceIsAveragedOverTheTimeThatTheClientIsWaitedFor(t *testing.T) {
	const least, window = 1000, 30 * time.Second
	type taken struct {
		bytes  int
		waited time.Duration
	}
	for name, c := range map[string]struct {
		taken []taken
		cut   bool
	}{
		"fast":                         {[]taken{{1 << 20, time.Second}, {1 << 20, 40 * time.Second}}, false},
		"as slow as may be":            {[]taken{{30_000, window}, {30_000, window}}, false},
		"slower":                       {[]taken{{29_000, window}}, true},
		"slow for a moment":            {[]taken{{1, 29 * time.Second}, {40_000, 2 * time.Second}}, false},
		"not asked for long":           {[]taken{{1, 29 * time.Second}}, false},
		"what was fast earlier is old": {[]taken{{1 << 30, window}, {1000, 15 * time.Second}, {1000, 15 * time.Second}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := pace{least: least, window: window}
			var err error
			for _, x := range c.taken {
				err = errors.Join(err, p.add(x.bytes, x.waited))
			}
			if (err != nil) != c.cut {
				t.Errorf("error %v, want one: %v", err, c.cut)
			}
		})
	}
}

func TestShutdownEndsABackup(t *testing.T) {
	e := newEndless()
	s := start(t, Config{Backup: e.backup})
	body, err := (&Client{Address: s.Addr().String(), Timeout: patience}).Fetch(t.Context(), Request{Format: FormatMsgpack})
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	<-e.began
	read := make(chan error, 1)
	go func() { // ends with the backup
		_, err := io.Copy(io.Discard, body)
		read <- err
	}()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Errorf("shutdown: %v", err)
	}
	select {
	case <-e.ended:
	default:
		t.Error("shutdown returned while the backup was under way")
	}
	if err := <-read; err == nil {
		t.Error("the client took the backup for whole")
	}
}

func TestShutdownEndsABackupOfAReaderThatStalls(t *testing.T) {
	e := newEndless()
	s := start(t, Config{Backup: e.backup, StallTimeout: time.Hour})
	conn := dial(t, s)
	if _, err := io.WriteString(conn, "GET /backup HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-e.began
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Errorf("shutdown: %v", err)
	}
	e.wantEnd(t)
}

func TestCloseReturnsWhenNoBackupReadsTheStoreAnyMore(t *testing.T) {
	began := make(chan struct{})
	var reads atomic.Bool
	s := start(t, Config{Backup: func(ctx context.Context, _ Writer, _ Request) error {
		reads.Store(true)
		close(began)
		<-ctx.Done()
		time.Sleep(50 * time.Millisecond) // it notices the end late
		reads.Store(false)
		return ctx.Err()
	}})
	conn := dial(t, s)
	if _, err := io.WriteString(conn, "GET /backup HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-began
	s.Close()
	if reads.Load() {
		t.Error("the backup still reads the store")
	}
}

func TestSilentServerIsGivenUp(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	_, err = (&Client{Address: silent.Addr().String(), Timeout: 20 * time.Millisecond}).Fetch(t.Context(), Request{Format: FormatMsgpack})
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "sent nothing for 20ms") {
		t.Errorf("error %v, want one that says how long nothing came", err)
	}
}

func TestInterruptedFetchSaysSo(t *testing.T) {
	e := newEndless()
	s := start(t, Config{Backup: e.backup})
	ctx, cancel := context.WithCancel(t.Context())
	body, err := (&Client{Address: s.Addr().String(), Timeout: patience}).Fetch(ctx, Request{Format: FormatMsgpack})
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	cancel()
	if _, err := io.Copy(io.Discard, body); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
	e.wantEnd(t)
}
