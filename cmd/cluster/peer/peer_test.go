package peer

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/certs"
	"github.com/holdfast-queue/holdfast/netproto"
)

// authority makes the certificates of a cell or of clients.
type authority struct{ *certs.Authority }

func newAuthority(t testing.TB) authority {
	t.Helper()
	ca, err := certs.New("test", span())
	if err != nil {
		t.Fatal(err)
	}
	return authority{ca}
}

func span() certs.Span {
	return certs.Span{From: time.Now().Add(-time.Hour), Until: time.Now().Add(time.Hour)}
}

func (a authority) server(t testing.TB, ask tls.ClientAuthType) *tls.Config {
	t.Helper()
	return &tls.Config{Certificates: pair(t)(a.Server([]string{"127.0.0.1"}, span())), ClientAuth: ask, ClientCAs: a.pool(), SessionTicketsDisabled: true}
}

func (a authority) client(t testing.TB, name string) *tls.Config {
	t.Helper()
	return &tls.Config{Certificates: pair(t)(a.Client(name, span())), RootCAs: a.pool(), ServerName: "127.0.0.1"}
}

func (a authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(a.Cert)
	return pool
}

func pair(t testing.TB) func(certs.Pair, error) []tls.Certificate {
	return func(p certs.Pair, err error) []tls.Certificate {
		t.Helper()
		c, perr := tls.X509KeyPair(p.Cert, p.Key)
		if err := errors.Join(err, perr); err != nil {
			t.Fatal(err)
		}
		return []tls.Certificate{c}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func listen(t testing.TB) *net.TCPListener {
	t.Helper()
	l, err := netproto.Listen("127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { l.Close() })
	return l
}

// serveNode serves a node's own port until the test ends, and returns its address.
func serveNode(t testing.TB, c Config) string {
	t.Helper()
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	l, s, served := listen(t), New(c), make(chan error, 1)
	go func() { served <- s.Serve(l) }() // ends with Close
	t.Cleanup(func() {
		s.Close()
		must(t, <-served)
	})
	return l.Addr().String()
}

func TestANodeSaysWhatItIs(t *testing.T) {
	cell := newAuthority(t)
	want := Node{Cell: "c", Name: "a", Role: "owner", Batch: 1 << 60, Floors: map[string]uint64{"b": 1 << 60}}
	address := serveNode(t, Config{TLS: cell.server(t, tls.RequireAndVerifyClientCert).Clone, Node: func() Node { return want }})
	got, err := NewClient(cell.client(t, "b").Clone).Node(t.Context(), address)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
}

// told gets the lines of a log.
type told chan string

// Write implements io.Writer.
func (lines told) Write(b []byte) (int, error) {
	lines <- string(b)
	return len(b), nil
}

func TestAStrangerIsRefusedAndTheLogTellsOfIt(t *testing.T) {
	cell, other := newAuthority(t), newAuthority(t)
	stranger := other.client(t, "b")
	stranger.RootCAs = cell.pool()
	nobody := &tls.Config{RootCAs: cell.pool()}
	late := cell.client(t, "b")
	late.Certificates = pair(t)(cell.Client("b", certs.Span{From: span().From, Until: time.Now().Add(-time.Minute)}))
	for name, ask := range map[string]tls.ClientAuthType{"by the handshake": tls.RequireAndVerifyClientCert, "by the server": tls.RequestClientCert} {
		lines := make(told, 16)
		address := serveNode(t, Config{TLS: cell.server(t, ask).Clone, Node: func() Node { return Node{} }, Logger: slog.New(slog.NewTextHandler(lines, nil))})
		for want, c := range map[string]func() *tls.Config{
			"unknown authority": stranger.Clone, "didn't provide a certificate": nobody.Clone, "certificate has expired": late.Clone, "sent an HTTP request to an HTTPS server": nil,
		} {
			if _, err := NewClient(c).Node(t.Context(), address); err == nil {
				t.Errorf("%s: it is answered", name)
			}
			if ask == tls.RequestClientCert {
				continue
			}
			if line := <-lines; !strings.Contains(line, "handshake failed") || !strings.Contains(line, want) || !strings.Contains(line, "remote=127.0.0.1:") {
				t.Errorf("the log says %q, want %q", line, want)
			}
		}
	}
}

func TestANodeOfAnotherHostIsRefused(t *testing.T) {
	cell := newAuthority(t)
	elsewhere := cell.server(t, tls.RequireAndVerifyClientCert)
	elsewhere.Certificates = pair(t)(cell.Node("b", "b.example", span()))
	address := serveNode(t, Config{TLS: elsewhere.Clone, Node: func() Node { return Node{} }, Door: nobodyServed})
	client := NewClient(cell.client(t, "a").Clone)
	_, asked := client.Node(t.Context(), address)
	_, passed := client.Connect(t.Context(), address, "redis", netip.MustParseAddrPort("192.0.2.1:7"))
	for _, err := range []error{asked, passed} {
		if err == nil || !strings.Contains(err.Error(), "certificate") {
			t.Errorf("got %v", err)
		}
	}
}

func TestCertificatesThatAreRenewedAreTakenForTheNextConnection(t *testing.T) {
	old, next := newAuthority(t), newAuthority(t)
	both := old.pool()
	both.AppendCertsFromPEM(next.Cert)
	var far, near atomic.Pointer[tls.Config]
	far.Store(old.server(t, tls.RequireAndVerifyClientCert))
	near.Store(old.client(t, "b"))
	address := serveNode(t, Config{
		TLS: func() *tls.Config { return far.Load().Clone() }, Node: func() Node { return Node{} }, Door: nobodyServed,
	})
	client := NewClient(func() *tls.Config { return near.Load().Clone() })
	ask := func() string {
		client.http.CloseIdleConnections()
		_, asked := client.Node(t.Context(), address)
		_, passed := client.Connect(t.Context(), address, "redis", netip.MustParseAddrPort("192.0.2.1:7"))
		return fmt.Sprint(asked, passed)
	}
	steps := []struct {
		what string
		do   func()
		want string
	}{
		{"all of the first authority", func() {}, "nobody is served"},
		{"the server of the second", func() { far.Store(next.server(t, tls.RequireAndVerifyClientCert)) }, "certificate"},
		{"the client knows both", func() {
			c := next.client(t, "b")
			c.RootCAs = both
			near.Store(c)
		}, "nobody is served"},
	}
	for _, step := range steps {
		step.do()
		if got := ask(); !strings.Contains(got, step.want) {
			t.Errorf("%s: %s, want %q", step.what, got, step.want)
		}
	}
}

func nobodyServed(string) (Door, error) { return nil, errors.New("nobody is served") }

func TestWhatIsNoRequestIsSaidInASentence(t *testing.T) {
	address := serveNode(t, Config{})
	if err := NewClient(nil).ask(t.Context(), "GET", address, "/other", nil, into(new(Node))); err == nil || !strings.Contains(err.Error(), "is no request to a node") {
		t.Errorf("got %v", err)
	}
}

func TestStrangersThatSayNothingMakeRoom(t *testing.T) {
	s, ended := New(Config{Logger: slog.New(slog.DiscardHandler)}), make(chan struct{})
	connect := func() (far net.Conn) {
		near, far := net.Pipe()
		s.count(far, http.StateNew)
		go func() { // ends with far
			_, _ = near.Read(make([]byte, 1))
			ended <- struct{}{}
		}()
		return far
	}
	node := connect()
	s.count(node, http.StateActive)
	for range maxSilent {
		connect()
	}
	const more = 10
	for range more {
		connect()
		<-ended
	}
	if len(s.silent) != maxSilent {
		t.Errorf("%d are open", len(s.silent))
	}
	for c := range s.silent {
		cut(c)
		<-ended
	}
	if err := node.SetDeadline(time.Now()); err != nil {
		t.Errorf("the one that has asked for something is closed: %v", err)
	}
	cut(node)
	<-ended
}
