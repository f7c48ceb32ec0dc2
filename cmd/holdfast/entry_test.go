package main

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
)

// ca is an authority with its files, and with those of what it signs.
type ca struct {
	*certs.Authority
	dir string
}

// now is a span in which certificates are valid.
func now() certs.Span {
	return certs.Span{From: time.Now().Add(-time.Hour), Until: time.Now().Add(time.Hour)}
}

func newCA(t *testing.T) *ca {
	t.Helper()
	long := certs.Span{From: time.Now().Add(-24 * time.Hour), Until: time.Now().Add(24 * time.Hour)}
	made, err := certs.New("CA", long)
	if err != nil {
		t.Fatal(err)
	}
	c := &ca{made, t.TempDir()}
	c.write(t, "ca", made.Pair, nil)
	return c
}

func (c *ca) file(name string) string { return filepath.Join(c.dir, name) }

// write makes the files name.pem and name.key.
func (c *ca) write(t *testing.T, name string, p certs.Pair, err error) {
	t.Helper()
	err = errors.Join(err, os.WriteFile(c.file(name+".pem"), p.Cert, 0o600), os.WriteFile(c.file(name+".key"), p.Key, 0o600))
	if err != nil {
		t.Fatal(err)
	}
}

func (c *ca) server(t *testing.T, name, host string, span certs.Span) {
	t.Helper()
	pair, err := c.Server([]string{host}, span)
	c.write(t, name, pair, err)
}

// front encrypts what goes to an address and comes from it, with a certificate of the name.
func (a *ca) front(t *testing.T, name, address string, config *tls.Config) string {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(a.file(name+".pem"), a.file(name+".key"))
	if err != nil {
		t.Fatal(err)
	}
	config.Certificates = []tls.Certificate{pair}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() { // ends with the listener
		for {
			sealed, err := listener.Accept()
			if err != nil {
				return
			}
			go pass(sealed.(*tls.Conn), address)
		}
	}()
	return listener.Addr().String()
}

// pass carries bytes both ways until both ends are done.
func pass(sealed *tls.Conn, address string) {
	defer sealed.Close()
	plain, err := net.Dial("tcp", address)
	if err != nil || sealed.Handshake() != nil {
		return
	}
	defer plain.Close()
	go func() { // ends with either connection
		_, _ = io.Copy(plain, sealed)
		_ = plain.(*net.TCPConn).CloseWrite()
	}()
	_, _ = io.Copy(sealed, plain)
}

func TestAllClientsSpeakTLS(t *testing.T) {
	a := newCA(t)
	a.server(t, "server", "127.0.0.1", now())
	s := command{env: map[string]string{"HOLDFAST_REDIS_PASSWORD": "secret"}}.serve(t, t.TempDir(), "--admin", "127.0.0.1:0", "--barbershop", "127.0.0.1:0",
		"--tls-cert", a.file("server.pem"), "--tls-key", a.file("server.key"), "--plain-user", "default")
	env := map[string]string{"HOLDFAST_TLS_CA": a.file("ca.pem"), "HOLDFAST_PASSWORD": "secret"}
	for protocol, addr := range s.addrs {
		env["HOLDFAST_"+strings.ToUpper(protocol)] = addr
	}
	for _, c := range []struct{ args, stdin, want string }{
		{"push jobs hello", "", ""},
		{"work jobs --limit 1m -- sh -c cat", "", "hello"},
		{"barbershop import -", "17 250\n", "1 line imported"},
		{"barbershop export -", "", "17 250"},
		{"backup --to - --format jsonl", "", `"barbershop"`},
		{"drop barbershop --yes", "", ""},
		{"bench mixed --protocol redis --count 2000 --connections 4", "", "packets/s in all"},
		{"bench mixed --protocol pinpriq --count 2000 --connections 4", "", "packets/s in all"},
		{"bench mixed --protocol barbershop --count 2000 --items 100 --connections 4", "", "operations/s in all"},
		{"status", "", "version"},
		{"health", "", "ok"},
	} {
		args := strings.Fields(c.args)
		if args[0] == "work" { // it goes on until the queue is drained
			if r := (command{env: env}).run(t.Context(), "close", "jobs", "--yes"); r.code != exitOK {
				t.Fatalf("close: %+v", r)
			}
		}
		if r := (command{stdin: c.stdin, env: env}).run(t.Context(), args...); r.code != exitOK || !strings.Contains(r.stdout, c.want) {
			t.Errorf("%s: %+v, want %q", c.args, r, c.want)
		}
	}
}

func TestWhatKeepsAClientOutIsSaidInWords(t *testing.T) {
	t.Parallel()
	a, other := newCA(t), newCA(t)
	hour := func(from int) certs.Span {
		begin := time.Now().Add(time.Duration(from) * time.Hour)
		return certs.Span{From: begin, Until: begin.Add(time.Hour)}
	}
	past, future := hour(-2), hour(1)
	a.server(t, "server", "127.0.0.1", now())
	a.server(t, "past", "127.0.0.1", past)
	a.server(t, "future", "127.0.0.1", future)
	a.server(t, "elsewhere", "queue.example.com", now())
	gone, err := a.Client("gone", past)
	a.write(t, "gone", gone, err)
	s := serve(t, t.TempDir(), "--admin", "127.0.0.1:0", "--barbershop", "127.0.0.1:0")
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(a.Cert)
	asks := func() *tls.Config { return &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients} }
	asksOld := asks()
	asksOld.MaxVersion = tls.VersionTLS12
	ca := []string{"--tls-ca", a.file("ca.pem")}
	for name, c := range map[string]struct {
		front  string // the name of the certificate; none: it does not encrypt
		config *tls.Config
		flags  []string
		want   string
	}{
		"a CA that is not known":           {"server", &tls.Config{}, []string{"--tls"}, "name the file of its CA with --tls-ca"},
		"another CA":                       {"server", &tls.Config{}, []string{"--tls-ca", other.file("ca.pem")}, "name the file of its CA with --tls-ca"},
		"a certificate that has expired":   {"past", &tls.Config{}, ca, "expired at " + past.Until.UTC().Format("2006-01-02T15:04")},
		"one that is not valid yet":        {"future", &tls.Config{}, ca, "is valid from " + future.From.UTC().Format("2006-01-02T15:04")},
		"one of another machine":           {"elsewhere", &tls.Config{}, ca, "has a certificate for other names"},
		"no client certificate":            {"server", asks(), ca, "give a valid certificate of the CA of its clients with --tls-cert and --tls-key"},
		"no client certificate in TLS 1.2": {"server", asksOld, ca, "if it asks for a client certificate, give --tls-cert and --tls-key"},
		"a client certificate of the past": {"server", asks(), append(ca, "--tls-cert", a.file("gone.pem"), "--tls-key", a.file("gone.key")), "give a valid certificate"},
		"TLS to a plain address":           {"", nil, ca, "does not speak TLS"},
		"plain words to TLS":               {"server", &tls.Config{}, nil, "--tls"},
		"a CA that is no file":             {"", nil, []string{"--tls-ca", "none.pem"}, "read the CA of the server: open none.pem: no such file"},
		"a CA that is no certificate":      {"", nil, []string{"--tls-ca", a.file("ca.key")}, "holds no certificate"},
		"a key of another certificate":     {"", nil, []string{"--tls-cert", a.file("ca.pem"), "--tls-key", a.file("gone.key")}, "private key does not match"},
		"a user without a password":        {"", nil, []string{"--user", "ann"}, "user ann needs a password"},
	} {
		for command, protocol := range map[string]string{"queues": "redis", "backup --to -": "admin", "barbershop import -": "barbershop", "bench": "pinpriq"} {
			if strings.Contains(name, "user") && (protocol == "pinpriq" || protocol == "barbershop") {
				continue // they know no login
			}
			t.Run(name+" "+protocol, func(t *testing.T) {
				address := s.addrs[protocol]
				if c.front != "" {
					address = a.front(t, c.front, address, c.config)
				}
				args := append(strings.Fields(command), "--"+protocol, address)
				r := s.run(t, append(args, c.flags...)...)
				oneErrorLine(t, r, exitFailed, c.want)
			})
		}
	}
}

func TestAServerWithUsersTellsClientsHowToGetIn(t *testing.T) {
	t.Parallel()
	a := newCA(t)
	a.server(t, "server", "127.0.0.1", now())
	s := command{env: map[string]string{"HOLDFAST_REDIS_PASSWORD": "secret"}}.serve(t, t.TempDir(), "--admin", "127.0.0.1:0", "--barbershop", "127.0.0.1:0",
		"--tls-cert", a.file("server.pem"), "--tls-key", a.file("server.key"))
	const login, encrypt = "give the user with --user, and the password with HOLDFAST_PASSWORD or --password-file", "give --tls-ca or --tls"
	for command, want := range map[string]string{
		"queues": login, "status": login, "tail": "holdfast: Authentication required; " + login, "backup --to -": login, "bench --protocol redis": login,
		"barbershop import -": "client certificate", "bench": "show the certificate of one with --tls-cert",
	} {
		args := strings.Fields(command)
		oneErrorLine(t, s.run(t, args...), exitFailed, encrypt)
		oneErrorLine(t, s.run(t, append(args, "--tls-ca", a.file("ca.pem"))...), exitFailed, want)
	}
}

func TestAPlainPushToAServerThatSpeaksTLSIsNotSaidToBeUnderWay(t *testing.T) {
	t.Parallel()
	a := newCA(t)
	a.server(t, "server", "127.0.0.1", now())
	s := serve(t, t.TempDir(), "--tls-cert", a.file("server.pem"), "--tls-key", a.file("server.key"))
	oneErrorLine(t, s.run(t, "push", "q", "x"), exitFailed, "holdfast: the first bytes are not TLS, which this address speaks")
}

func TestCommandsAtAnotherPortSayThatTheAddressIsWrong(t *testing.T) {
	s := serve(t, t.TempDir(), "--admin", "127.0.0.1:0")
	for _, command := range []string{"status", "get q", "tail", "push q x", "pop q", "work q true"} {
		r := s.run(t, append(strings.Fields(command), "--redis", s.addrs["admin"])...)
		oneErrorLine(t, r, exitFailed, "speaks HTTP, and nothing was done: give its address for Redis clients with --redis")
	}
}

func TestServersThatDoNotAnswerAHandshakeAreGivenUp(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	r := command{}.run(t.Context(), "queues", "--tls", "--timeout", "500ms", "--redis", silent.Addr().String())
	oneErrorLine(t, r, exitFailed, "does not speak TLS")
}
