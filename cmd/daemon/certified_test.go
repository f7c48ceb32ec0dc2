package daemon

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/certs"
	"github.com/holdfast-queue/holdfast/netproto/access"
)

// trusted makes the files of a server, and a function that makes clients: with the certificate of a
// name, or none.
func trusted(t *testing.T) (TLSFiles, func(name string) *tls.Config) {
	t.Helper()
	span := certs.Span{From: time.Now().Add(-time.Hour), Until: time.Now().Add(time.Hour)}
	ca, err := certs.New("test", span)
	if err != nil {
		t.Fatal(err)
	}
	server, err := ca.Server([]string{"127.0.0.1"}, span)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files := TLSFiles{Cert: filepath.Join(dir, "cert"), Key: filepath.Join(dir, "key"), ClientCA: filepath.Join(dir, "ca")}
	if err := errors.Join(os.WriteFile(files.Cert, server.Cert, 0o600), os.WriteFile(files.Key, server.Key, 0o600), os.WriteFile(files.ClientCA, ca.Cert, 0o600)); err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca.Cert)
	return files, func(name string) *tls.Config {
		config := &tls.Config{RootCAs: pool, ServerName: "127.0.0.1"}
		if name != "" {
			pair, err := ca.Client(name, span)
			if err != nil {
				t.Fatal(err)
			}
			certificate, err := tls.X509KeyPair(pair.Cert, pair.Key)
			if err != nil {
				t.Fatal(err)
			}
			config.Certificates = []tls.Certificate{certificate}
		}
		return config
	}
}

// saidOver sends a request, which has the door close the connection, and returns what comes.
func saidOver(t *testing.T, addr string, client *tls.Config, request string) string {
	t.Helper()
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: patience}, "tcp", addr, client)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	got, _ := io.ReadAll(conn)
	return string(got)
}

func TestACertificateIsItsUserAtEachDoor(t *testing.T) {
	files, client := trusted(t)
	r := run(t, Config{Data: t.TempDir(), BarbershopQueue: "board", TLS: files, Users: []access.User{
		{Name: "worker", Certificates: []string{"cert-worker"}, Grants: []access.Grant{{Glob: "*", Rights: access.Push | access.Take}}},
		{Name: "operator", Certificates: []string{"cert-operator"}, Password: word, Operate: true},
		{Name: "off", Certificates: []string{"cert-off"}, Off: true, Grants: access.Everything(), Operate: true},
	}})
	const get = "GET /backup?format=jsonl HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
	const noAuth = "-NOAUTH Authentication required.\r\n"
	for _, c := range []struct{ certificate, protocol, request, want string }{
		{"cert-worker", "redis", "ACL WHOAMI\r\nRPUSH q a\r\nLLEN q\r\nQUIT\r\n", "$6\r\nworker\r\n:1\r\n-NOPERM this user has no permissions to run the 'llen' command: it needs the right look\r\n+OK\r\n"},
		{"cert-worker", "redis", "AUTH operator " + word + "\r\nACL WHOAMI\r\nRESET\r\nACL WHOAMI\r\nQUIT\r\n", "+OK\r\n$8\r\noperator\r\n+RESET\r\n$6\r\nworker\r\n+OK\r\n"},
		{"cert-off", "redis", "ACL WHOAMI\r\nAUTH operator " + word + "\r\nRESET\r\nPING\r\nQUIT\r\n", noAuth + "+OK\r\n+RESET\r\n" + noAuth + "+OK\r\n"},
		{"stranger", "redis", "PING\r\nQUIT\r\n", noAuth + "+OK\r\n"},
		{"worker", "redis", "PING\r\nQUIT\r\n", noAuth + "+OK\r\n"}, // a user's name, but not of its certificate
		{"", "redis", "PING\r\nQUIT\r\n", noAuth + "+OK\r\n"},
		{"cert-worker", "pinpriq", "\x70\x00\x01\x00\x00\x01\x00\x00\x00\x01xp\x50\x00\x01p\x00", "\x00\x01\x00\x00\x00\x01x"},
		{"cert-operator", "pinpriq", "\x50\x00\x01q", ""},
		{"cert-off", "pinpriq", "\x50\x00\x01q", ""},
		{"", "pinpriq", "\x50\x00\x01q", ""},
		{"cert-worker", "barbershop", "update 1 1\r\nPEEK\r\nPOST\r\n", "OK\r\n-ERROR user worker has no right to look for queue \"board\"\r\n-ERROR HTTP is"},
		{"stranger", "barbershop", "", "CLIENT_ERROR there are users"},
		{"", "barbershop", "", "CLIENT_ERROR there are users"},
		{"cert-operator", "admin", get, "HTTP/1.1 200"},
		{"cert-worker", "admin", get, "HTTP/1.1 403"},
		{"cert-off", "admin", get, "HTTP/1.1 401"},
		{"", "admin", get, "HTTP/1.1 401"},
	} {
		got := saidOver(t, r.addrs[c.protocol], client(c.certificate), c.request)
		if exact := c.protocol == "redis" || c.protocol == "pinpriq"; exact && got != c.want || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: certificate %q: %q gets %.200q, want %q", c.protocol, c.certificate, c.request, got, c.want)
		}
	}
}
