package netproto

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/cmd/certs"
)

// encrypted has all tests of the package speak TLS. "make gate" runs both ways.
func encrypted() bool { return os.Getenv("HOLDFAST_ENCRYPTED") != "" }

// trust is a CA, and what both sides make of it.
type trust struct {
	t  *testing.T
	ca *certs.Authority
}

func newTrust(t *testing.T) *trust {
	t.Helper()
	ca, err := certs.New("test", soon(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	return &trust{t, ca}
}

// soon is from an hour ago until the end of a time.
func soon(d time.Duration) certs.Span {
	return certs.Span{From: time.Now().Add(-time.Hour), Until: time.Now().Add(d)}
}

func (r *trust) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(r.ca.Cert)
	return pool
}

func (r *trust) pair(p certs.Pair, err error) []tls.Certificate {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
	c, err := tls.X509KeyPair(p.Cert, p.Key)
	if err != nil {
		r.t.Fatal(err)
	}
	return []tls.Certificate{c}
}

func (r *trust) server() *tls.Config {
	return &tls.Config{
		Certificates: r.pair(r.ca.Server([]string{"127.0.0.1"}, soon(time.Hour))),
		ClientAuth:   tls.VerifyClientCertIfGiven, ClientCAs: r.pool(), SessionTicketsDisabled: true,
	}
}

// client shows the certificate of a name, none if it is "".
func (r *trust) client(name string) *tls.Config {
	c := &tls.Config{RootCAs: r.pool(), ServerName: "127.0.0.1"}
	if name != "" {
		c.Certificates = r.pair(r.ca.Client(name, soon(time.Hour)))
	}
	return c
}

// common is the trust of the tests that do not look at it.
var common = sync.OnceValue(func() (r struct{ server, client *tls.Config }) {
	ca := newTrust(&testing.T{})
	r.server, r.client = ca.server(), ca.client("")
	return r
})

// socket is a client's connection, encrypted or not.
type socket struct {
	*net.TCPConn
	tls *tls.Conn // nil: not encrypted
}

func (s *socket) Read(b []byte) (int, error) {
	if s.tls != nil {
		return s.tls.Read(b)
	}
	return s.TCPConn.Read(b)
}

func (s *socket) Write(b []byte) (int, error) {
	if s.tls != nil {
		return s.tls.Write(b)
	}
	return s.TCPConn.Write(b)
}

// CloseWrite leaves the socket below open, as programs that use TLS do.
func (s *socket) CloseWrite() error {
	if s.tls != nil {
		return s.tls.CloseWrite()
	}
	return s.TCPConn.CloseWrite()
}

// dialTLS connects, and shakes hands if it can.
func dialTLS(t *testing.T, s *Server, c *tls.Config) (*socket, error) {
	t.Helper()
	nc, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	_ = nc.SetDeadline(time.Now().Add(patience))
	tc := tls.Client(nc, c)
	return &socket{nc.(*net.TCPConn), tc}, tc.Handshake()
}

// journal is a log that a test reads.
type journal struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.all.Write(b)
}

func (j *journal) count(text string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Count(j.all.String(), text)
}

func (j *journal) logger() *slog.Logger { return slog.New(slog.NewTextHandler(j, nil)) }

func (j *journal) waitFor(t *testing.T, text string, n int) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			j.mu.Lock()
			defer j.mu.Unlock()
			t.Logf("want %d times %q in\n%s", n, text, &j.all)
		}
	})
	waitFor(t, func() bool { return j.count(text) == n })
}

func TestTheNameOfTheClientsCertificateIsKnown(t *testing.T) {
	ca := newTrust(t)
	s, p := serveLines(t, Config{TLS: ca.server()})
	for i, name := range []string{"anna", ""} {
		c, err := dialTLS(t, s, ca.client(name))
		if err != nil {
			t.Fatal(err)
		}
		send(t, c, "hello\n")
		wantRead(t, c, "hello\n")
		_ = s.config.Loop.Do(func(*broker.Tx) error {
			if got := p.peers[i].Certificate(); got != name {
				t.Errorf("the name is %q, want %q", got, name)
			}
			return nil
		})
	}
}

func TestAClientThatIsNotLetInIsOneLineOfTheLog(t *testing.T) {
	ca, other := newTrust(t), newTrust(t)
	expired := ca.client("")
	expired.Certificates = ca.pair(ca.ca.Client("anna", soon(-time.Minute)))
	asServer := ca.client("")
	asServer.Certificates = ca.pair(ca.ca.Server([]string{"anna"}, soon(time.Hour)))
	strange := ca.client("")
	strange.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		return &other.client("anna").Certificates[0], nil
	}
	old := ca.client("anna")
	old.MinVersion, old.MaxVersion = tls.VersionTLS11, tls.VersionTLS11
	for name, row := range map[string]struct {
		client *tls.Config
		want   string
	}{
		"expired":                      {expired, "certificate has expired"},
		"of another CA":                {strange, "unknown authority"},
		"of a server":                  {asServer, "incompatible key usage"},
		"TLS 1.1":                      {old, "unsupported versions"},
		"a client that knows no CA":    {&tls.Config{ServerName: "127.0.0.1"}, "bad certificate"},
		"a client of another's server": {&tls.Config{RootCAs: ca.pool(), ServerName: "other"}, "bad certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			var log journal
			s, p := serveLines(t, Config{TLS: ca.server(), Logger: log.logger()})
			if c, err := dialTLS(t, s, row.client); err == nil { // TLS 1.3 tells the client later
				if _, err = c.Read(make([]byte, 1)); err == nil {
					t.Error("the client got an answer")
				}
			}
			log.waitFor(t, row.want, 1)
			if n := log.count(`level=WARN msg="handshake failed" protocol=lines remote=127.0.0.1 error=`); n != 1 || log.count("\n") != 1 {
				t.Error("want one line that says so")
			}
			if s.waitConns(t, 0); len(p.peers) > 0 {
				t.Error("a session was opened")
			}
		})
	}
}

func TestAClientThatDoesNotSpeakTLSIsToldSoInTheLog(t *testing.T) {
	var log journal
	s, p := serveLines(t, Config{TLS: newTrust(t).server(), Logger: log.logger()})
	c, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	send(t, c, "hello\n")
	wantEnd(t, c)
	log.waitFor(t, "the first bytes are not TLS", 1)
	if s.waitConns(t, 0); len(p.peers) > 0 {
		t.Error("a session was opened")
	}
}

// silent connects and says nothing.
func silent(t *testing.T, s *Server) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestSlowHandshakesKeepNobodyOut(t *testing.T) {
	ca := newTrust(t)
	var log journal
	s, _ := serveLines(t, Config{TLS: ca.server(), Logger: log.logger()})
	before, err := dialTLS(t, s, ca.client("before"))
	if err != nil {
		t.Fatal(err)
	}
	const slow, crowded = maxHandshakes + 44, "and 256 are under way"
	for range slow {
		silent(t, s)
	}
	waitFor(t, func() bool {
		s.mu.Lock()
		conns := s.conns
		s.mu.Unlock()
		if conns > 1+maxHandshakes+1 { // one waits for its place
			t.Fatalf("%d connections are let in", conns)
		}
		return conns == 1+maxHandshakes+1 || log.count(crowded) > 0 // where the dialling took longer than that
	})
	send(t, before, "still here\n")
	wantRead(t, before, "still here\n")
	after, err := dialTLS(t, s, ca.client("after"))
	if err != nil {
		t.Fatal(err)
	}
	send(t, after, "me too\n")
	wantRead(t, after, "me too\n")
	if log.count(crowded) == 0 {
		t.Error("no handshake was given up for others")
	}
}

func TestShutdownWaitsForNoHandshake(t *testing.T) {
	s, _ := serveLines(t, Config{TLS: newTrust(t).server()})
	c := silent(t, s)
	s.waitConns(t, 1)
	ctx, cancel := context.WithTimeout(t.Context(), handshakeTime/2)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	wantEnd(t, c)
}

func TestHandshakesCountAsConnections(t *testing.T) {
	ca := newTrust(t)
	s, _ := serveLines(t, Config{TLS: ca.server(), MaxConns: 1})
	silent(t, s)
	s.waitConns(t, 1)
	if _, err := dialTLS(t, s, ca.client("")); err == nil {
		t.Error("there was room for another connection")
	}
}

func TestTheEndOfAConnectionIsAnnounced(t *testing.T) {
	ca := newTrust(t)
	s, _ := serveLines(t, Config{TLS: ca.server()})
	c, err := dialTLS(t, s, ca.client(""))
	if err != nil {
		t.Fatal(err)
	}
	send(t, c, "bad\n")
	c.tls.NetConn().(*net.TCPConn).SetReadBuffer(1 << 10)
	if n, err := c.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("read %d bytes, %v; want the end", n, err)
	}
}

func TestRequestsThatComeWithTheHandshakeAreServed(t *testing.T) {
	ca := newTrust(t)
	s, _ := serveLines(t, Config{TLS: ca.server()})
	for i := range 20 {
		nc, err := net.Dial("tcp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = nc.Close() })
		_ = nc.SetDeadline(time.Now().Add(patience))
		held := &corked{Conn: nc}
		c := tls.Client(held, ca.client(""))
		if err := c.Handshake(); err != nil {
			t.Fatal(err)
		}
		line := fmt.Sprintf("line %d\n", i)
		send(t, c, line)
		if _, err := nc.Write(held.last); err != nil {
			t.Fatal(err)
		}
		wantRead(t, c, line)
	}
}

func TestAnUnfinishedRecordIsCutInTime(t *testing.T) {
	ca := newTrust(t)
	s, _ := serveLines(t, Config{TLS: ca.server(), FrameTimeout: 100 * time.Millisecond})
	idle, err := dialTLS(t, s, ca.client(""))
	if err != nil {
		t.Fatal(err)
	}
	slow, err := dialTLS(t, s, ca.client(""))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []*socket{idle, slow} {
		send(t, c, "a\n")
		wantRead(t, c, "a\n")
	}
	send(t, slow.TCPConn, "\x17\x03\x03\x40\x00half a record")
	if _, err := slow.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("read: %v, want the end", err)
	}
	send(t, idle, "b\n")
	wantRead(t, idle, "b\n")
}

// corked keeps what is written after the first message.
type corked struct {
	net.Conn
	begun bool
	last  []byte
}

func (c *corked) Write(b []byte) (int, error) {
	if !c.begun {
		c.begun = true
		return c.Conn.Write(b)
	}
	c.last = append(c.last, b...)
	return len(b), nil
}
