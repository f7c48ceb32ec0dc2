package admin

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/netproto/access"
	"golang.org/x/crypto/bcrypt"
)

// secret is the password of the users of these tests.
const secret = "the secret"

func testUsers(t *testing.T) *access.Control {
	t.Helper()
	hash, err := bcrypt.GenerateFromPassword([]byte(secret), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	all := []access.User{{Name: "operator", Operate: true, Certificates: []string{"cert-op"}}, {Name: "off", Off: true, Operate: true, Certificates: []string{"cert-off"}}}
	for name, grants := range map[string][]access.Grant{
		"all":     access.Everything(),
		"looker":  {{Glob: "q*", Rights: access.Look}, {Glob: "exact", Rights: access.Look}},
		"manager": {{Glob: "q*", Rights: access.Manage}},
		"worker":  {{Glob: "*", Rights: access.Push | access.Take}},
	} {
		all = append(all, access.User{Name: name, Grants: grants})
	}
	for i := range all {
		all[i].Hashes = []string{string(hash)}
	}
	u, err := access.NewUsers(all)
	if err != nil {
		t.Fatal(err)
	}
	return access.NewControl(u)
}

// textLog is a log as one text.
type textLog struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *textLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *textLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// guarded is a server with users, with its log.
func guarded(t *testing.T) (*Server, *textLog) {
	log := new(textLog)
	return start(t, Config{
		Users:    testUsers(t),
		Profiles: true,
		Backup:   func(_ context.Context, w Writer, _ Request) error { return write(w) },
		Logger:   slog.New(slog.NewTextHandler(log, nil)),
	}), log
}

func basic(name, password string) string {
	return "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(name+":"+password)) + "\r\n"
}

func getting(path, header string) string {
	return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n" + header + "\r\n"
}

func TestAUserMayAskForWhatItsRightsAllow(t *testing.T) {
	s, _ := guarded(t)
	for _, c := range []struct {
		user, path string
		want       int
	}{
		{"operator", "/backup", 200},
		{"operator", "/backup?queue=x", 200},
		{"operator", "/backup?format=tar", 200},
		{"all", "/backup", 403},
		{"all", "/backup?format=tar", 403},
		{"all", "/backup?queue=*", 200},
		{"looker", "/backup", 403},
		{"looker", "/backup?queue=q*", 200},
		{"looker", "/backup?queue=q1*&queue=exact", 200},
		{"looker", "/backup?queue=q1*&queue=other", 403},
		{"looker", "/backup?queue=*", 403},
		{"looker", "/backup?queue=[q]1", 403},
		{"looker", "/backup?queue=" + strings.Repeat("q", 2000), 403},
		{"looker", "/backup?format=x", 400},
		{"looker", "/backup?format=tar&queue=q*", 400},
		{"manager", "/backup?queue=q", 200},
		{"worker", "/backup?queue=q", 403},
		{"worker", "/healthz", 200},
		{"operator", "/debug/pprof/", 200},
		{"all", "/debug/pprof/", 403},
	} {
		status, body := ask(t, s, getting(c.path, basic(c.user, secret)))
		if status != c.want {
			t.Errorf("%s: %.50s: %d %q, want %d", c.user, c.path, status, body, c.want)
		}
	}
}

func TestOnlyWhatNeedsNoRightIsServedWithoutALogin(t *testing.T) {
	s, log := guarded(t)
	for _, route := range s.table() {
		status, _ := ask(t, s, getting(route.path, ""))
		if free := route.may == nil; free != (status == 200) || !free && status != 401 {
			t.Errorf("%s: %d", route.path, status)
		}
	}
	for _, path := range []string{"/backup/", "//backup", "/healthz/../backup", "/./backup", "/backup%2f", "/%62ackup", "/BACKUP"} {
		if status, body := ask(t, s, getting(path, "")); status == 200 {
			t.Errorf("%s: %d %q", path, status, body)
		}
	}
	if got := log.String(); strings.Contains(got, "login failed") {
		t.Errorf("a request without a password is logged: %s", got)
	}
}

func TestALoginThatFailsIsAskedForAgainAndLogged(t *testing.T) {
	for name, c := range map[string]struct{ header, logged string }{
		"a wrong password":           {basic("operator", "wrong"), "user=operator"},
		"a user that is off":         {basic("off", secret), "user=off"},
		"no such user":               {basic("not\nthere", secret), "user=unknown"},
		"a colon in the password":    {basic("operator", secret+":x"), "user=operator"},
		"nothing":                    {basic("", ""), "user=unknown"},
		"a password without a name":  {basic("", secret), "user=unknown"},
		"bytes that are no text":     {basic("\xff\x00\r\n", "\xff"), "user=unknown"},
		"no colon":                   {"Authorization: Basic b3BlcmF0b3I=\r\n", ""},
		"no base64":                  {"Authorization: Basic %%%\r\n", ""},
		"another scheme":             {"Authorization: Bearer " + secret + "\r\n", ""},
		"a password of 100 KiB":      {basic("operator", strings.Repeat("x", 100<<10)), "user=operator"},
		"a name of 100 KiB":          {basic(strings.Repeat("x", 100<<10), secret), "user=unknown"},
		"a certificate in the clear": {"X-Client-Cert: cert-op\r\n", ""},
	} {
		s, log := guarded(t)
		conn := dial(t, s)
		if _, err := io.WriteString(conn, getting("/backup", c.header)); err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(io.LimitReader(conn, 12+1))
		if !strings.HasPrefix(string(text), "HTTP/1.1 401") {
			t.Errorf("%s: %q", name, text)
		}
		got := log.String()
		if c.logged == "" != (got == "") || !strings.Contains(got, c.logged) || strings.Contains(got, secret) || len(got) > 500 {
			t.Errorf("%s: logged is %.500q, want %q", name, got, c.logged)
		}
	}
}

func TestAHeaderBeyondTheLimitIsRefused(t *testing.T) {
	s, log := guarded(t)
	// Base64 adds a third. A little is left that the server does not read: a socket holds it.
	header := basic("operator", strings.Repeat("x", (maxHeader+16<<10)*3/4))
	if status, _ := ask(t, s, getting("/backup", header)); status != 431 {
		t.Errorf("status %d, want 431", status)
	}
	if strings.Contains(log.String(), "login failed") {
		t.Error("a login was tried")
	}
}

func TestAnAnswerToAFailedLoginSaysHowToLogIn(t *testing.T) {
	s, _ := guarded(t)
	answer := httptest.NewRecorder()
	s.http.Handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "http://localhost/backup", nil))
	if got := answer.Header().Get("WWW-Authenticate"); answer.Code != 401 || !strings.HasPrefix(got, "Basic realm=") {
		t.Errorf("%d, %q", answer.Code, got)
	}
}

func TestAVerifiedCertificateIsALogin(t *testing.T) {
	s, _ := guarded(t)
	for _, c := range []struct {
		name     string
		verified bool
		password string // of another user, with its name
		want     int
	}{
		{name: "cert-op", verified: true, want: 400},
		{name: "cert-op", want: 401},
		{name: "cert-off", verified: true, want: 401},
		{name: "operator", verified: true, want: 401},
		{name: "", verified: true, want: 401},
		{name: "cert-op", verified: true, password: "looker:" + "wrong", want: 401}, // a password wins
	} {
		r := httptest.NewRequest(http.MethodGet, "https://localhost/backup?format=x", nil) // which needs operate, and is wrong
		certificate := &x509.Certificate{Subject: pkix.Name{CommonName: c.name}}
		r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{certificate}}
		if c.verified {
			r.TLS.VerifiedChains = [][]*x509.Certificate{{certificate}}
		}
		if name, password, ok := strings.Cut(c.password, ":"); ok {
			r.SetBasicAuth(name, password)
		}
		answer := httptest.NewRecorder()
		s.http.Handler.ServeHTTP(answer, r)
		if answer.Code != c.want {
			t.Errorf("certificate %q, verified %v, password %q: %d, want %d", c.name, c.verified, c.password, answer.Code, c.want)
		}
	}
}

func TestManyWrongLoginsOfAnAddressAreToldToComeLater(t *testing.T) {
	s, _ := guarded(t)
	ask(t, s, getting("/backup", basic("operator", "wrong")))
	ctx, hangUp := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	answers := make(chan *httptest.ResponseRecorder, 40)
	for range cap(answers) {
		asking.Go(func() { // ends with its answer, or with ctx
			r := httptest.NewRequest(http.MethodGet, "http://localhost/backup", nil).WithContext(ctx)
			r.RemoteAddr = "127.0.0.1:1"
			r.SetBasicAuth("operator", "wrong")
			answer := httptest.NewRecorder()
			s.http.Handler.ServeHTTP(answer, r)
			answers <- answer
		})
	}
	for answer := range answers {
		if answer.Code == http.StatusServiceUnavailable && answer.Header().Get("Retry-After") != "" {
			break
		} else if answer.Code != http.StatusUnauthorized {
			t.Errorf("status %d", answer.Code)
		}
	}
	hangUp()
	asking.Wait()
}

func TestAUserThatMayLookGetsNoMoreThanItMaySee(t *testing.T) {
	var asked Request
	s := start(t, Config{Users: testUsers(t), Backup: func(_ context.Context, w Writer, r Request) error { asked = r; return write(w) }})
	ask(t, s, getting("/backup?queue=exact", basic("looker", secret)))
	if asked.May == nil || !asked.May([]byte("exact")) || asked.May([]byte("other")) {
		t.Error("the backup may hold more than its user may see")
	}
	ask(t, s, getting("/backup", basic("operator", secret)))
	if asked.May != nil {
		t.Error("an operator's backup is limited")
	}
}

func TestWhatIsToldOfAllQueuesNeedsLookForAllOrOperate(t *testing.T) {
	users := testUsers(t).Users()
	for name, want := range map[string]bool{"operator": true, "all": true, "looker": false, "manager": false, "worker": false} {
		if got := mayLookAtAll(users.Named(name), nil); got != want {
			t.Errorf("%s may look at all: %v", name, got)
		}
	}
}

func TestABackupOfAUserKeepsNoneFromThoseWhoOperate(t *testing.T) {
	e := newEndless()
	s := start(t, Config{Users: testUsers(t), Backup: e.backup})
	begin := func(user, path string) {
		t.Helper()
		if _, err := io.WriteString(dial(t, s), getting(path, basic(user, secret))); err != nil {
			t.Fatal(err)
		}
		select {
		case <-e.began:
		case <-time.After(patience):
			t.Fatalf("%s gets no backup", user)
		}
	}
	refused := func(user, path string) {
		t.Helper()
		if status, body := ask(t, s, getting(path, basic(user, secret))); status != http.StatusServiceUnavailable || !strings.Contains(body, "under way") {
			t.Errorf("%s: %d, %q", user, status, body)
		}
	}
	begin("looker", "/backup?queue=q*")
	refused("looker", "/backup?queue=q*")
	refused("manager", "/backup?queue=q*")
	begin("operator", "/backup")
	refused("operator", "/backup")
	s.Close()
	e.wantEnd(t)
	e.wantEnd(t)
}
