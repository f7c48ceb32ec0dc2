package admin

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// ill is the health of a server that is not well. The channel is closed when it serves.
type ill chan struct{}

func (ill) Live() error               { return errors.New("stuck") }
func (ill) Ready() error              { return errors.New("on its way") }
func (ill) Stores() error             { return errors.New("full") }
func (ill) Owns() error               { return errors.New("another one owns") }
func (i ill) Served() <-chan struct{} { return i }

const localhost = " HTTP/1.1\r\nHost: localhost\r\n\r\n"

func TestMonitorsGetTheReasonAsASentence(t *testing.T) {
	served := make(ill)
	s := start(t, Config{Health: served})
	for path, want := range map[string]string{"/livez": "stuck\n", "/readyz": "on its way\n", "/readyz?push": "full\n", "/readyz?other": "on its way\n", "/owner": "another one owns\n", "/backup": "on its way\n"} {
		if code, body := ask(t, s, "GET "+path+localhost); code != 503 || body != want {
			t.Errorf("%s: status %d, %q; want 503 and %q", path, code, body, want)
		}
	}
	err := (&Client{Address: s.Addr().String(), Timeout: patience}).Ready(t.Context())
	if !errors.Is(err, ErrNotReady) || !strings.HasSuffix(err.Error(), "is not ready: on its way") {
		t.Errorf("Ready gives %v", err)
	}
	fine := start(t, Config{})
	if err = (&Client{Address: fine.Addr().String(), Timeout: patience}).Ready(t.Context()); err != nil {
		t.Errorf("Ready of a server that is well gives %v", err)
	}
	if code, body := ask(t, fine, "GET /owner"+localhost); code != 200 || body != "ok\n" {
		t.Errorf("/owner of a server that is well: status %d, %q", code, body)
	}
}

func TestHealthWaitsForTheServerLongerThanOtherAnswersMayTake(t *testing.T) {
	served := make(ill)
	s := start(t, Config{Health: served, StallTimeout: 10 * time.Millisecond})
	conn := dial(t, s)
	if _, err := io.WriteString(conn, "GET /healthz"+localhost); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(100*time.Millisecond, func() { close(served) })
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	if answer.Body.Close(); answer.StatusCode != 200 {
		t.Errorf("status %d", answer.StatusCode)
	}
}

func TestAHealthThatWaitsEndsWithItsClient(t *testing.T) {
	s := start(t, Config{Health: make(ill)})
	ctx, cancel := context.WithCancel(t.Context())
	answer, ended := httptest.NewRecorder(), make(chan struct{})
	go func() { // ends with ctx
		s.waitForHealth(answer, httptest.NewRequestWithContext(ctx, http.MethodGet, "/healthz", nil))
		close(ended)
	}()
	cancel()
	select {
	case <-ended:
	case <-time.After(patience):
		t.Fatal("the request still waits")
	}
	if answer.Body.Len() > 0 {
		t.Errorf("the answer is %q", answer.Body)
	}
}

func TestProfilesAreServedOneAtATimeAndLongerThanOtherAnswersMayTake(t *testing.T) {
	s := start(t, Config{Profiles: true, StallTimeout: 900 * time.Millisecond}) // less than one profile takes
	for path, c := range map[string]struct {
		code int
		want string
	}{
		"":                    {200, "goroutine"},
		"goroutine?debug=1":   {200, "serveProfile"},
		"profile?seconds=1":   {200, "\x1f\x8b"},
		"trace?seconds=0.001": {200, "go 1."},
		"cmdline":             {404, "Unknown profile"},
		"nothing":             {404, "Unknown profile"},
	} {
		if code, body := ask(t, s, "GET /debug/pprof/"+path+localhost); code != c.code || !strings.Contains(body, c.want) {
			t.Errorf("%q: status %d, %.100q; want %d and %q", path, code, body, c.code, c.want)
		}
	}
	s.profile.Lock()
	defer s.profile.Unlock()
	if code, body := ask(t, s, "GET /debug/pprof/heap"+localhost); code != 503 || !strings.Contains(body, "one at a time") {
		t.Errorf("status %d, %q; want 503 and a sentence", code, body)
	}
}
