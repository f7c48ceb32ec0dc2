package peer

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestANodeThatJoinsGetsTheCluster(t *testing.T) {
	address := serveNode(t, Config{Join: func(ctx context.Context, node, peerURL, process string) (string, error) {
		if end, ok := ctx.Deadline(); !ok || time.Until(end) > stallTime-time.Second {
			t.Error("who asks is gone before it must answer")
		}
		return "a=http://127.0.0.1:1," + node + "=" + peerURL, nil
	}})
	got, err := NewClient(nil).Join(t.Context(), address, "b", "https://[::1]:7380", "p")
	if want := "a=http://127.0.0.1:1,b=https://[::1]:7380"; got != want || err != nil {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func TestANodeJoinsByItsOwnCertificateAlone(t *testing.T) {
	cell := newAuthority(t)
	address := serveNode(t, Config{TLS: cell.server(t, tls.RequireAndVerifyClientCert).Clone, Join: func(context.Context, string, string, string) (string, error) { return "all", nil }})
	c := cell.client(t, "c")
	c.Certificates = pair(t)(cell.Node("c", "c.example", span()))
	asks := NewClient(c.Clone)
	if _, err := asks.Join(t.Context(), address, "b", "b.example:7380", "p"); err == nil || !strings.Contains(err.Error(), "by a certificate of another one") {
		t.Errorf("b joins by the certificate of c: %v", err)
	}
	if _, err := asks.Join(t.Context(), address, "c", "c.example:7380", "p"); err != nil {
		t.Error(err)
	}
}

func TestAPlainPortAnswersNoWebPage(t *testing.T) {
	address := serveNode(t, Config{Node: func() Node { return Node{} }, Join: func(context.Context, string, string, string) (string, error) { return "all", nil }})
	for name, header := range map[string]http.Header{
		"another site": {"Sec-Fetch-Site": {"cross-site"}}, "an origin": {"Origin": {"http://evil.example"}}, "a name of its own": {"Host": {"evil.example"}},
	} {
		for method, path := range map[string]string{"GET": "/node", "POST": "/join?node=c&peer_url=127.0.0.1:1"} {
			r, err := http.NewRequestWithContext(t.Context(), method, "http://"+address+path, nil)
			must(t, err)
			r.Header, r.Host = header, header.Get("Host")
			answer, err := http.DefaultClient.Do(r)
			must(t, err)
			if _ = answer.Body.Close(); answer.StatusCode != http.StatusForbidden {
				t.Errorf("%s: %s %s is answered %s", name, method, path, answer.Status)
			}
		}
	}
}

func TestANodeThatCannotJoinIsToldWhy(t *testing.T) {
	address := serveNode(t, Config{Join: func(context.Context, string, string, string) (string, error) { return "", errors.New("no majority") }})
	if _, err := NewClient(nil).Join(t.Context(), address, "b", "x", "p"); err == nil || !strings.Contains(err.Error(), "no majority") {
		t.Errorf("got %v", err)
	}
}

func TestAJoinIsGivenUpWhenItsAskerIsGone(t *testing.T) {
	asked, given := make(chan struct{}), make(chan struct{})
	address := serveNode(t, Config{Join: func(ctx context.Context, _, _, _ string) (string, error) {
		close(asked)
		<-ctx.Done()
		close(given)
		return "", ctx.Err()
	}})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { _, _ = NewClient(nil).Join(ctx, address, "b", "x", "p") }() // ends with ctx
	<-asked
	cancel()
	select {
	case <-given:
	case <-time.After(patience):
		t.Error("it goes on")
	}
}
