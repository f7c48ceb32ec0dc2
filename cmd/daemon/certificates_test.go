package daemon

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/certs"
	"github.com/holdfast-queue/holdfast/netproto/pinpriq"
)

// folder holds the files of a server's certificates.
type folder struct {
	t     *testing.T
	ca    *certs.Authority
	files TLSFiles
}

func newFolder(t *testing.T) *folder {
	t.Helper()
	dir := t.TempDir()
	f := &folder{t, newCA(t), TLSFiles{Cert: filepath.Join(dir, "cert"), Key: filepath.Join(dir, "key"), ClientCA: filepath.Join(dir, "ca")}}
	f.write(f.files.ClientCA, f.ca.Cert)
	f.renew(soon(time.Hour))
	return f
}

// soon is from an hour ago until the end of a time.
func soon(d time.Duration) certs.Span {
	return certs.Span{From: time.Now().Add(-time.Hour), Until: time.Now().Add(d)}
}

func newCA(t *testing.T) *certs.Authority {
	t.Helper()
	ca, err := certs.New("test", soon(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

// renew gives the server a new certificate.
func (f *folder) renew(s certs.Span) {
	f.t.Helper()
	p, err := f.ca.Server([]string{"127.0.0.1"}, s)
	if err != nil {
		f.t.Fatal(err)
	}
	f.write(f.files.Cert, p.Cert)
	f.write(f.files.Key, p.Key)
}

func (f *folder) write(name string, text []byte) {
	f.t.Helper()
	if err := os.WriteFile(name, text, 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// client trusts the CA of the server, and shows a certificate of another one, unless that is nil.
func (f *folder) client(of *certs.Authority, span certs.Span) *tls.Config {
	f.t.Helper()
	c := &tls.Config{RootCAs: x509.NewCertPool()}
	c.RootCAs.AppendCertsFromPEM(f.ca.Cert)
	if of == nil {
		return c
	}
	p, err := of.Client("anna", span)
	if err != nil {
		f.t.Fatal(err)
	}
	shown, err := tls.X509KeyPair(p.Cert, p.Key)
	if err != nil {
		f.t.Fatal(err)
	}
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &shown, nil }
	return c
}

// dialTLS connects for the rest of the test.
func dialTLS(t *testing.T, addr string, c *tls.Config) (*tls.Conn, error) {
	t.Helper()
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: patience}, "tcp", addr, c)
	if err == nil {
		t.Cleanup(func() { _ = conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(patience))
	}
	return conn, err
}

// exchange sends a request, and returns the first bytes of the reply.
func exchange(c net.Conn, request string) (string, error) {
	reply := make([]byte, 64)
	if _, err := io.WriteString(c, request); err != nil {
		return "", err
	}
	n, err := c.Read(reply)
	return string(reply[:n]), err
}

func TestEveryDoorSpeaksTLS(t *testing.T) {
	for _, goroutines := range []bool{false, true} {
		t.Run(fmt.Sprintf("goroutines=%v", goroutines), func(t *testing.T) {
			f := newFolder(t)
			r := run(t, Config{Data: t.TempDir(), TLS: f.files, Goroutines: goroutines, Sentinel: "127.0.0.1:0"})
			for _, config := range []*tls.Config{f.client(nil, soon(0)), f.client(f.ca, soon(time.Hour))} {
				for protocol, talk := range map[string][2]string{
					"barbershop": {"update 18 5\r\n", "OK\r\n"},
					"redis":      {"PING\r\n", "+PONG\r\n"},
					"sentinel":   {"ROLE\r\n", "*2\r\n$8\r\nsentinel\r\n"},
					"admin":      {"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 200 OK\r\n"},
				} {
					c, err := dialTLS(t, r.addrs[protocol], config)
					if err != nil {
						t.Fatal(err)
					}
					if got, err := exchange(c, talk[0]); !strings.HasPrefix(got, talk[1]) {
						t.Errorf("%s says %q, %v; want %q", protocol, got, err, talk[1])
					}
				}
				c, err := dialTLS(t, r.addrs["pinpriq"], config)
				if err != nil {
					t.Fatal(err)
				}
				client := pinpriq.NewClient(c)
				if err := errors.Join(client.Push("q", []byte("x"), pinpriq.PushOptions{Priority: 1}), client.Sync(t.Context())); err != nil {
					t.Errorf("pinpriq: %v", err)
				}
			}
		})
	}
}

func TestEveryDoorRefusesClientsThatItCannotTrust(t *testing.T) {
	f := newFolder(t)
	r := run(t, Config{Data: t.TempDir(), TLS: f.files})
	old := f.client(nil, soon(0))
	old.MinVersion, old.MaxVersion = tls.VersionTLS11, tls.VersionTLS11
	for what, config := range map[string]*tls.Config{
		"TLS 1.1":                     old,
		"an expired certificate":      f.client(f.ca, soon(-time.Minute)),
		"a certificate of another CA": f.client(newCA(t), soon(time.Hour)),
	} {
		for protocol, addr := range r.addrs {
			c, err := dialTLS(t, addr, config)
			if err == nil { // a client of TLS 1.3 learns it later
				_, err = c.Read(make([]byte, 1))
			}
			if err == nil || !strings.Contains(err.Error(), "remote error: tls: ") {
				t.Errorf("%s with %s: error %v, want that the server refuses it", protocol, what, err)
			}
		}
	}
}

func TestTheOperatorsHTTPHasItsLimitsOverTLS(t *testing.T) {
	f := newFolder(t)
	var log lockedBuffer
	r := run(t, Config{Data: t.TempDir(), TLS: f.files, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	c, err := dialTLS(t, r.addrs["admin"], f.client(nil, soon(0)))
	if err != nil {
		t.Fatal(err)
	}
	got, err := exchange(c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: "+strings.Repeat("x", 1<<20)+"\r\n\r\n")
	if err == nil && !strings.HasPrefix(got, "HTTP/1.1 431 ") {
		t.Errorf("a huge header gives %q, want that it is refused", got)
	}
	plain, err := net.Dial("tcp", r.addrs["admin"])
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	_ = plain.SetDeadline(time.Now().Add(patience))
	if got, err := exchange(plain, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.0 400 ") {
		t.Errorf("without TLS it says %q, %v; want that it needs it", got, err)
	}
	wrong := f.client(nil, soon(0))
	wrong.RootCAs = x509.NewCertPool()
	if _, err := dialTLS(t, r.addrs["admin"], wrong); err == nil {
		t.Fatal("a client without the CA trusts the server")
	}
	const want = `level=WARN msg="handshake failed" protocol=admin remote=127.0.0.1:`
	for end := time.Now().Add(patience); !strings.Contains(log.String(), want); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the log has no %s:\n%s", want, log.String())
		}
	}
}

// lockedBuffer is a log that is read while it is written.
type lockedBuffer struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.String()
}

func TestACertificateIsReplacedUnderLoadAndNoConnectionIsLost(t *testing.T) {
	t.Parallel()
	f := newFolder(t)
	r := run(t, Config{Data: t.TempDir(), TLS: f.files})
	trust := f.client(nil, soon(0))
	first, err := dialTLS(t, r.addrs["redis"], trust)
	if err != nil {
		t.Fatal(err)
	}
	serial := first.ConnectionState().PeerCertificates[0].SerialNumber
	var replaced atomic.Bool
	var load sync.WaitGroup
	for range 8 {
		c, err := dialTLS(t, r.addrs["redis"], trust)
		if err != nil {
			t.Fatal(err)
		}
		load.Go(func() {
			for n := 0; !replaced.Load() || n < 100; n++ {
				if got, err := exchange(c, "QPUSH q x\r\n"); err != nil || got[0] != '$' {
					t.Errorf("a push gives %q, %v", got, err)
					return
				}
			}
		})
	}
	f.renew(soon(time.Hour))
	for end := time.Now().Add(patience); !replaced.Load(); {
		c, err := dialTLS(t, r.addrs["redis"], trust)
		if err != nil {
			t.Error(err)
		} else {
			replaced.Store(c.ConnectionState().PeerCertificates[0].SerialNumber.Cmp(serial) != 0)
			_ = c.Close()
		}
		if time.Now().After(end) {
			t.Error("the old certificate is still shown")
			replaced.Store(true)
		}
		time.Sleep(10 * time.Millisecond)
	}
	load.Wait()
	if got, err := exchange(first, "PING\r\n"); got != "+PONG\r\n" {
		t.Errorf("the first connection says %q, %v", got, err)
	}
}

func TestFilesThatAreWrongLeaveTheCertificatesInForceAndAreLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFolder(t)
		var log bytes.Buffer
		c, err := NewCertificates(f.files, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		config := c.present.Load()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go c.Watch(ctx)
		f.write(f.files.Key, []byte("half a"))
		time.Sleep(10 * lookInterval)
		synctest.Wait()
		if n := strings.Count(log.String(), "certificates not loaded"); n != 1 || c.present.Load() != config {
			t.Errorf("%d lines, want one, and the certificates from before:\n%s", n, &log)
		}
	})
}

func TestACertificateThatExpiresSoonIsLoggedEachDay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFolder(t)
		f.ca, _ = certs.New("test", soon(100*day))
		f.renew(soon(soonExpired + day/2))
		f.files.ClientCA = ""
		var log bytes.Buffer
		c, err := NewCertificates(f.files, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go c.Watch(ctx)
		time.Sleep(3 * day)
		synctest.Wait()
		if n := strings.Count(log.String(), "certificate expires"); n != 3 {
			t.Errorf("%d lines, want one for each day from half a day on:\n%s", n, &log)
		}
	})
}

func TestASessionDoesNotOutliveTheCAOfItsClient(t *testing.T) {
	f := newFolder(t)
	c, err := NewCertificates(f.files, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", c.config())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() { // ends with the listener
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "hello")
			_ = conn.Close()
		}
	}()
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		f.write(f.files.ClientCA, f.ca.Cert)
		if _, err := c.Reload(); err != nil {
			t.Fatal(err)
		}
		config := f.client(f.ca, soon(time.Hour))
		config.ClientSessionCache, config.MaxVersion = tls.NewLRUClientSessionCache(10), version
		greeted := func() error {
			conn, err := dialTLS(t, l.Addr().String(), config)
			if err != nil {
				return err
			}
			if _, err = io.ReadFull(conn, make([]byte, len("hello"))); conn.ConnectionState().DidResume {
				t.Errorf("version %x: the session was resumed", version)
			}
			return err
		}
		for range 2 {
			if err := greeted(); err != nil {
				t.Fatalf("version %x: %v", version, err)
			}
		}
		f.write(f.files.ClientCA, newCA(t).Cert)
		if changed, err := c.Reload(); err != nil || !slices.Equal(changed, []string{"tls-client-ca"}) {
			t.Fatal(changed, err)
		}
		if err := greeted(); err == nil {
			t.Errorf("version %x: a client of a CA that was taken away gets in", version)
		}
		f.renew(soon(time.Hour))
		if changed, err := c.Reload(); err != nil || !slices.Equal(changed, []string{"tls-cert"}) {
			t.Error(changed, err)
		}
	}
}

func TestServersTakeEachOtherByASecondAuthorityBesideTheFirst(t *testing.T) {
	f, next := newFolder(t), newFolder(t)
	p, err := f.ca.Node("a", "127.0.0.1", soon(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	f.write(f.files.Cert, p.Cert)
	f.write(f.files.Key, p.Key)
	f.write(f.files.ClientCA, append(f.ca.Cert, next.ca.Cert...))
	c, err := NewCertificates(f.files, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		ca *certs.Authority
		ok bool
	}{"the first": {f.ca, true}, "the second": {next.ca, true}, "another": {newCA(t), false}} {
		p, err := row.ca.Node("b", "127.0.0.1", soon(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		pair, err := tls.X509KeyPair(p.Cert, p.Key)
		if err != nil {
			t.Fatal(err)
		}
		other := &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: c.Mutual().RootCAs, SessionTicketsDisabled: true}
		for end, server := range map[string]bool{"accepts": true, "dials": false} {
			dials, accepts := other.Clone(), c.Mutual()
			if !server {
				dials, accepts = c.Mutual(), other
			}
			l, err := tls.Listen("tcp", "127.0.0.1:0", accepts)
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { // ends with the handshake
				conn, err := l.Accept()
				if err == nil {
					err = conn.(*tls.Conn).Handshake()
				}
				ended <- err
			}()
			_, asked := dialTLS(t, l.Addr().String(), dials)
			err = cmp.Or(<-ended, asked)
			_ = l.Close()
			if (err == nil) != row.ok {
				t.Errorf("%s %s: %v", end, name, err)
			}
		}
	}
}

func TestFilesForTLSThatCannotServeAreRefused(t *testing.T) {
	f, other := newFolder(t), newFolder(t)
	expired, early := newFolder(t), newFolder(t)
	expired.renew(soon(-time.Minute))
	early.renew(certs.Span{From: time.Now().Add(30 * time.Minute), Until: time.Now().Add(time.Hour)})
	junk, missing := filepath.Join(t.TempDir(), "junk"), filepath.Join(t.TempDir(), "missing")
	f.write(junk, []byte("junk"))
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		files TLSFiles
		want  string
	}{
		"no key":                   {TLSFiles{Cert: f.files.Cert}, "expected a file of each"},
		"only a CA":                {TLSFiles{ClientCA: f.files.ClientCA}, "expected a file of each"},
		"a certificate's file":     {TLSFiles{Cert: missing, Key: f.files.Key}, missing + ": no such file"},
		"a key's file":             {TLSFiles{Cert: f.files.Cert, Key: missing}, missing + ": no such file"},
		"the key of another":       {TLSFiles{Cert: f.files.Cert, Key: other.files.Key}, other.files.Key + ": expected the private key of the certificate in " + f.files.Cert},
		"a key for a certificate":  {TLSFiles{Cert: f.files.Key, Key: f.files.Key}, f.files.Key + ": no certificate found"},
		"an expired certificate":   {expired.files, expired.files.Cert + ": the certificate expired at "},
		"a certificate to come":    {early.files, early.files.Cert + ": the certificate is valid from "},
		"a CA without certificate": {TLSFiles{f.files.Cert, f.files.Key, junk}, junk + ": no certificate found: expected PEM"},
		"a certificate in a pipe":  {TLSFiles{Cert: pipe, Key: f.files.Key}, pipe + " is no regular file"},
		"a key in a pipe":          {TLSFiles{Cert: f.files.Cert, Key: pipe}, pipe + " is no regular file"},
		"a CA in a pipe":           {TLSFiles{f.files.Cert, f.files.Key, pipe}, pipe + " is no regular file"},
		"a server for a CA":        {TLSFiles{f.files.Cert, f.files.Key, f.files.Cert}, `the certificate of "127.0.0.1" is not one of a CA`},
	} {
		err := Run(t.Context(), Config{Data: filepath.Join(t.TempDir(), "data"), Pinpriq: "127.0.0.1:0", TLS: row.files})
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: error %v, want %q", name, err, row.want)
		}
	}
}

func TestTLSAndUsersTogetherOpenAnAddressToOtherMachines(t *testing.T) {
	f := newFolder(t)
	for name, row := range map[string]struct {
		config Config
		want   string
	}{
		"neither":    {Config{}, "nothing is encrypted, and everybody may do everything"},
		"only TLS":   {Config{TLS: f.files}, "there are no users"},
		"only users": {Config{RedisPassword: "secret"}, "nothing is encrypted, passwords neither"},
		"both":       {Config{TLS: f.files, RedisPassword: "secret"}, ""},
		"insecure":   {Config{Insecure: true}, ""},
	} {
		row.config.Redis = "0.0.0.0:0"
		_, err := row.config.listeners()
		if row.want == "" && err != nil || row.want != "" && (!errors.Is(err, ErrExposed) || !strings.Contains(err.Error(), row.want)) {
			t.Errorf("%s: error %v, want %q", name, err, row.want)
		}
	}
}

func TestTheOperatorsHTTPTakesAnyNameWhereOthersMayReachIt(t *testing.T) {
	f := newFolder(t)
	for password, want := range map[string]bool{"": false, "secret": true} {
		r := run(t, Config{Data: t.TempDir(), TLS: f.files, RedisPassword: password})
		client := http.Client{Transport: &http.Transport{TLSClientConfig: f.client(nil, soon(0))}, Timeout: patience}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+r.addrs["admin"]+"/healthz", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = "queue.example"
		answer, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if got := answer.StatusCode != http.StatusForbidden; got != want {
			t.Errorf("password %q: status %v, want that the name is taken: %v", password, answer.Status, want)
		}
		client.CloseIdleConnections()
	}
}
