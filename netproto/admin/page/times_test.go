package page

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/netproto/access"
)

func controlOf(t *testing.T, all ...access.User) *access.Control {
	t.Helper()
	u, err := access.NewUsers(all)
	if err != nil {
		t.Fatal(err)
	}
	return access.NewControl(u)
}

func TestASessionEndsWithItsTime(t *testing.T) {
	users := controlOf(t, access.User{Name: "ann"})
	for name, c := range map[string]struct {
		begun, used time.Duration // ago
		lives       bool
	}{
		"just begun":     {0, 0, true},
		"used of late":   {6 * 24 * time.Hour, 11 * time.Hour, true},
		"idle":           {13 * time.Hour, 13 * time.Hour, false},
		"older than all": {8 * 24 * time.Hour, 0, false},
	} {
		s := newSessions()
		cookie := s.begin(users, users.Users().Named("ann"))
		for _, one := range s.of {
			one.begun, one.used = one.begun.Add(-c.begun), one.used.Add(-c.used)
		}
		if lives := s.find(users, cookie) != nil; lives != c.lives || len(s.of) > 0 != lives {
			t.Errorf("%s: it lives: %t, %d are kept", name, lives, len(s.of))
		}
	}
}

// ask asks a page over TLS.
func ask(p *Page, r *http.Request, certificate string) *http.Response {
	if certificate != "" {
		r.TLS.VerifiedChains = [][]*x509.Certificate{{{Subject: pkix.Name{CommonName: certificate}}}}
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	return w.Result()
}

func TestOverTLSTheCookieIsOfThisHostAlone(t *testing.T) {
	p := New(Config{Users: controlOf(t, access.User{Name: "ann", Password: "secret"})})
	r := httptest.NewRequest("POST", "https://queue.example/page/login", strings.NewReader(`{"user":"ann","password":"secret"}`))
	local := net.TCPAddrFromAddrPort(netip.MustParseAddrPort("192.0.2.1:7072"))
	r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, local))
	r.TLS = new(tls.ConnectionState)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(tokenHeader, p.tokens.of(""))
	answer := ask(p, r, "")
	if cookies := answer.Cookies(); len(cookies) != 1 || cookies[0].Name != "__Host-holdfast-7072" || !cookies[0].Secure || cookies[0].Domain != "" {
		t.Errorf("%d, cookies %v", answer.StatusCode, cookies)
	}
}

func TestAClientCertificateNeedsNoLogin(t *testing.T) {
	p := New(Config{Users: controlOf(t, access.User{Name: "ann", Certificates: []string{"ann's"}})})
	for certificate, want := range map[string]string{"ann's": `{"user":"ann","login":false`, "bob's": `{"user":null,"login":true`, "": `{"user":null,"login":true`} {
		r := httptest.NewRequest("GET", "https://queue.example/page/session", nil)
		var body [200]byte
		n, _ := ask(p, r, certificate).Body.Read(body[:])
		if got := string(body[:n]); !strings.HasPrefix(got, want) {
			t.Errorf("the certificate %q: %s", certificate, got)
		}
	}
}
