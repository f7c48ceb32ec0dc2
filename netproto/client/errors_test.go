package client_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-queue/holdfast/cmd/certs"
	"github.com/holdfast-queue/holdfast/cmd/daemon"
	"github.com/holdfast-queue/holdfast/netproto"
	"github.com/holdfast-queue/holdfast/netproto/access"
	"github.com/holdfast-queue/holdfast/netproto/client"
)

func TestEveryRefusalIsOfAKind(t *testing.T) {
	c, ctx := newClient(t), t.Context()
	ok(t, c.Redis().Set(ctx, "string", "x", 0).Err())
	ok(t, c.Set(ctx, "full", "bound", "1"))
	must(c.Push(ctx, "full", nil))(t)
	ok(t, c.Set(ctx, "paused", "pause-in", "yes"))
	push := func(queue, payload string, options ...client.Option) error {
		return second(c.Push(ctx, queue, []byte(payload), options...))
	}
	for _, k := range []struct {
		what string
		err  error
		kind error
	}{
		{"an ack of no claim", c.Claimed("q", "1", 1).Ack(ctx), client.ErrStale},
		{"a nack of no claim", second(c.Claimed("q", "1", 1).Nack(ctx, nil)), client.ErrStale},
		{"figures of no queue", second(c.Stats(ctx, "q")), client.ErrNoQueue},
		{"a push to a full queue", push("full", ""), client.ErrFull},
		{"a push to a paused queue", push("paused", ""), client.ErrPaused},
		{"a push to a string", push("string", ""), client.ErrWrongType},
		{"a large payload", push("q", strings.Repeat("x", 1<<20+1)), client.ErrTooLarge},
		{"an option of another call", push("q", "", client.Older(1)), client.ErrInvalid},
		{"a take's option in a push", push("q", "", client.Newest()), client.ErrInvalid},
		{"a push's option in a take", second(c.Pop(ctx, "q", client.Priority(1))), client.ErrInvalid},
		{"an option of Consume", second(c.Pop(ctx, "q", client.Concurrency(1))), client.ErrInvalid},
		{"a setting that is not known", c.Set(ctx, "q", "colour", "red"), client.ErrInvalid},
		{"a setting of nothing", c.Set(ctx, "q"), client.ErrInvalid},
	} {
		if !errors.Is(k.err, k.kind) {
			t.Errorf("%s gives %v, want %v", k.what, k.err, k.kind)
		}
	}
	var reply redis.Error
	if err := push("full", ""); !errors.As(err, &reply) || !strings.HasPrefix(err.Error(), "FULL ") {
		t.Errorf("%v is not the server's error", err)
	}
}

func TestAClientNeedsThePassword(t *testing.T) {
	addr, stop, err := serve(daemon.Config{Data: t.TempDir(), RedisPassword: "secret"})
	ok(t, err)
	defer func() { ok(t, stop()) }()
	for _, password := range []string{"", "wrong", "secret"} {
		c := client.New(&redis.Options{Addr: addr, Password: password})
		defer c.Close()
		_, err := c.Len(t.Context(), "q")
		if good := password == "secret"; good != (err == nil) || good == errors.Is(err, client.ErrDenied) {
			t.Errorf("password %q gives %v", password, err)
		}
		if password != "secret" {
			if err := c.Consume(t.Context(), "q", nil); !errors.Is(err, client.ErrDenied) {
				t.Errorf("Consume with password %q gives %v", password, err)
			}
		}
	}
}

func TestAWrongPasswordIsTriedOnce(t *testing.T) {
	failed := make(chan struct{}, 10)
	log := slog.New(slog.NewTextHandler(writer(func(line []byte) {
		if bytes.Contains(line, []byte("login failed")) {
			failed <- struct{}{}
		}
	}), nil))
	addr, stop, err := serve(daemon.Config{Data: t.TempDir(), RedisPassword: "secret", Logger: log})
	ok(t, err)
	c := client.New(&redis.Options{Addr: addr, Password: "wrong", MaxRetries: -1})
	defer c.Close()
	var reply redis.Error
	if _, err := c.Pop(t.Context(), "q", client.Block(time.Second)); !errors.As(err, &reply) || !errors.Is(err, client.ErrDenied) {
		t.Errorf("a wrong password gives %v, want the server's error", err)
	}
	ok(t, stop())
	if len(failed) != 1 {
		t.Errorf("%d logins failed, want 1", len(failed))
	}
}

// writer is a function as an io.Writer.
type writer func(line []byte)

func (w writer) Write(line []byte) (int, error) { w(line); return len(line), nil }

func TestAClientEncryptsAndIsAUserWithRights(t *testing.T) {
	ca, err := certs.New("CA", span())
	ok(t, err)
	pair, err := ca.Server([]string{"127.0.0.1"}, span())
	ok(t, err)
	cert, key := filepath.Join(t.TempDir(), "cert"), filepath.Join(t.TempDir(), "key")
	ok(t, errors.Join(os.WriteFile(cert, pair.Cert, 0o600), os.WriteFile(key, pair.Key, 0o600)))
	ann := access.User{Name: "ann", Password: "secret", Grants: []access.Grant{{Glob: "mails", Rights: access.Push | access.Look}}}
	addr, stop, err := serve(daemon.Config{Data: t.TempDir(), Users: []access.User{ann}, TLS: daemon.TLSFiles{Cert: cert, Key: key}})
	ok(t, err)
	defer func() { ok(t, stop()) }()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca.Cert)
	ask := func(config *tls.Config, password string, call func(c *client.Client) error) error {
		c := client.New(&redis.Options{Addr: addr, Username: "ann", Password: password, TLSConfig: config, MaxRetries: -1})
		defer c.Close()
		return call(c)
	}
	push := func(queue string) func(c *client.Client) error {
		return func(c *client.Client) error { return second(c.Push(t.Context(), queue, nil)) }
	}
	good := &tls.Config{RootCAs: roots}
	ok(t, ask(good, "secret", push("mails")))
	if err := ask(good, "secret", push("other")); !errors.Is(err, client.ErrForbidden) {
		t.Errorf("a push without the right: %v", err)
	}
	if err := ask(good, "wrong", push("mails")); !errors.Is(err, client.ErrDenied) {
		t.Errorf("a push with a wrong password: %v", err)
	}
	var unknown x509.UnknownAuthorityError
	if err := ask(&tls.Config{}, "secret", push("mails")); !errors.As(err, &unknown) || errors.Is(err, client.ErrUnknown) {
		t.Errorf("a push to a server that is not trusted: %v, want one that was not sent", err)
	}
}

// span is when certificates of tests are valid.
func span() certs.Span {
	return certs.Span{From: time.Now().Add(-time.Hour), Until: time.Now().Add(time.Hour)}
}

// A stub refuses each request as a server does that has too many to look up.
func TestALoginThatHasToComeLaterIsNoInvalidCall(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	defer l.Close()
	go func() { // ends with l
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			for lines := bufio.NewScanner(conn); lines.Scan(); {
				if strings.HasPrefix(lines.Text(), "*") {
					fmt.Fprintf(conn, "-ERR %v\r\n", access.ErrBusy)
				}
			}
			_ = conn.Close()
		}
	}()
	c := client.New(&redis.Options{Addr: l.Addr().String(), Password: "secret", MaxRetries: -1, DisableIdentity: true})
	defer c.Close()
	if _, err := c.Push(t.Context(), "q", nil); !errors.Is(err, client.ErrTooMany) {
		t.Errorf("a push gives %v, want ErrTooMany", err)
	}
}

// A stub refuses whoever comes, and hangs up, as a server does that has no room or speaks TLS.
func TestNothingIsCarriedOutByAServerThatRefusesTheConnection(t *testing.T) {
	for refusal, want := range map[string]error{
		"ERR max number of clients reached":  client.ErrTooMany,
		"ERR " + netproto.ErrPlain.Error():   client.ErrInvalid,
		"WRONGPASS no such user or password": client.ErrDenied,
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		ok(t, err)
		go func() { // ends with l
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = conn.Read(make([]byte, 1024))
				fmt.Fprintf(conn, "-%s\r\n", refusal)
				_ = conn.Close()
			}
		}()
		c := client.New(&redis.Options{Addr: l.Addr().String(), MaxRetries: -1})
		if _, err := c.Push(t.Context(), "q", nil); !errors.Is(err, want) || errors.Is(err, client.ErrUnknown) {
			t.Errorf("a push to a server that says %s gives %v, want %v", refusal, err, want)
		}
		_ = c.Close()
		_ = l.Close()
	}
}
