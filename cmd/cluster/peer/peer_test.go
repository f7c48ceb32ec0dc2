package peer

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
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
	want := Node{Cell: "c", Name: "a", Role: "owner", Batch: 1 << 60}
	address := serveNode(t, Config{TLS: cell.server(t, tls.RequireAndVerifyClientCert), Node: func() Node { return want }})
	got, err := NewClient(cell.client(t, "b")).Node(t.Context(), address)
	if err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestAStrangerIsRefused(t *testing.T) {
	cell, other := newAuthority(t), newAuthority(t)
	stranger := other.client(t, "b")
	stranger.RootCAs = cell.pool()
	nobody := &tls.Config{RootCAs: cell.pool()}
	for name, ask := range map[string]tls.ClientAuthType{"by the handshake": tls.RequireAndVerifyClientCert, "by the server": tls.RequestClientCert} {
		address := serveNode(t, Config{TLS: cell.server(t, ask), Node: func() Node { return Node{} }})
		for _, c := range []*tls.Config{stranger, nobody, nil} {
			if _, err := NewClient(c).Node(t.Context(), address); err == nil {
				t.Errorf("%s: it is answered", name)
			}
		}
	}
}

func TestWhatIsNoRequestIsSaidInASentence(t *testing.T) {
	address := serveNode(t, Config{})
	if err := NewClient(nil).ask(t.Context(), "GET", address, "/other", into(new(Node))); err == nil || !strings.Contains(err.Error(), "is no request to a node") {
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
