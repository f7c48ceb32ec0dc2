package page_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/netproto/access"
)

func TestWithoutUsersThePageNeedsNoLogin(t *testing.T) {
	b := newSite(t).serve().browse()
	if s := b.session(); s.Login || s.User != nil || !s.Operate || !s.Look || s.Version != "1.2.3" || s.Token == "" {
		t.Errorf("session %+v", s)
	}
	if code, text := b.command("QUEUES"); code != 200 || text != `{"reply":[]}` {
		t.Errorf("%d %s", code, text)
	}
	if code, text := b.text("POST", "/page/login", `{"user":"ann","password":"x"}`); code != 400 {
		t.Errorf("login: %d %s", code, text)
	}
}

func TestALoginLastsUntilTheLogout(t *testing.T) {
	b := newSite(t, root(), user("ann")).serve().browse()
	if s := b.session(); !s.Login || s.User != nil || s.Operate || s.Host != "" {
		t.Errorf("before: %+v", s)
	}
	if code, text := b.command("QUEUES"); code != 401 {
		t.Errorf("before: %d %s", code, text)
	}
	cookie := b.login("ann")
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Path != "/" || cookie.Secure || len(cookie.Value) < 43 || cookie.MaxAge <= 0 {
		t.Errorf("cookie %+v", cookie)
	}
	if s := b.session(); s.Login || *s.User != "ann" || s.Operate || s.Look || s.Host == "" {
		t.Errorf("after: %+v", s)
	}
	if code, text := b.command("ACL", "WHOAMI"); code != 200 || text != `{"reply":"ann"}` {
		t.Errorf("after: %d %s", code, text)
	}
	if code, text := b.text("POST", "/page/logout", ""); code != 204 {
		t.Errorf("logout: %d %s", code, text)
	}
	if s := b.session(); !s.Login { // the browser still has the cookie
		t.Errorf("after the logout: %+v", s)
	}
	if code, text := b.command("QUEUES"); code != 401 {
		t.Errorf("after the logout: %d %s", code, text)
	}
}

func TestALoginThatFailsBeginsNoSession(t *testing.T) {
	s := newSite(t, root(), access.User{Name: "off", Off: true})
	b := s.browse()
	b.session()
	for body, want := range map[string]int{
		`{"user":"root","password":"wrong"}`:               401,
		`{"user":"nobody","password":"` + password + `"}`:  401,
		`{"user":"off","password":"` + password + `"}`:     401,
		`{"user":"","password":""}`:                        401,
		`{"user":"root"}`:                                  401,
		`{`:                                                400,
		`{"user":"root","password":"` + password + `"} {}`: 400,
		`{"user":"` + strings.Repeat("x", 1<<20) + `","password":"secret"}`: 413,
	} {
		answer := b.ask("POST", "/page/login", body)
		if answer.StatusCode != want || len(answer.Cookies()) != 0 {
			t.Errorf("%.60s: %d, want %d, cookies %v", body, answer.StatusCode, want, answer.Cookies())
		}
	}
	if log := s.log.String(); !strings.Contains(log, "login failed") || strings.Contains(log, password) {
		t.Errorf("log: %s", log)
	}
}

func TestAPasswordOfBasicAuthenticationNeedsNoSession(t *testing.T) {
	b := newSite(t, root()).serve().browse()
	b.header.Set("Authorization", "Basic cm9vdDp0aGUgc2VjcmV0")
	if s := b.session(); s.Login || *s.User != "root" || !s.Operate || !s.Look {
		t.Errorf("session %+v", s)
	}
	if code, text := b.command("QUEUES"); code != 200 {
		t.Errorf("%d %s", code, text)
	}
	answer := b.ask("GET", "/page/session", "", "Authorization", "Basic cm9vdDp3cm9uZw==")
	if answer.StatusCode != 401 || answer.Header.Get("WWW-Authenticate") != "" {
		t.Errorf("a wrong password: %d, %v", answer.StatusCode, answer.Header)
	}
}

func TestASessionEndsWithItsUser(t *testing.T) {
	other := root()
	other.Name = "ann"
	for name, change := range map[string]func(u *access.User){
		"gone":           func(u *access.User) { u.Name = "other" },
		"switched off":   func(u *access.User) { u.Off = true },
		"another hash":   func(u *access.User) { u.Hashes = []string{"$2a$04$" + strings.Repeat("a", 53)} },
		"a new password": func(u *access.User) { u.Password = "new" },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, root(), other).serve()
			b := s.browse()
			b.login("ann")
			kept := *s.users.Users().Named("ann").User()
			s.users.Swap(usersOf(t, []access.User{root(), kept}))
			if got := b.session(); got.Login {
				t.Errorf("a reload that changes nothing ended the session")
			}
			change(&kept)
			s.users.Swap(usersOf(t, []access.User{root(), kept}))
			if code, text := b.command("QUEUES"); code != 401 {
				t.Errorf("%d %s", code, text)
			}
			if got := b.session(); !got.Login {
				t.Errorf("session %+v", got)
			}
		})
	}
}

func TestAUserHasAFewSessionsAndTheOneUnusedTheLongestEnds(t *testing.T) {
	s := newSite(t, root(), user("ann"))
	first, second := s.browse(), s.browse()
	first.login("ann")
	second.login("ann")
	for range 19 {
		first.session()
		s.browse().login("ann")
	}
	if first.session().Login || !second.session().Login {
		t.Errorf("the first one ended: %t; the second, which was not used, did: %t", first.session().Login, second.session().Login)
	}
}

func TestWhatAnotherSiteSendsIsRefused(t *testing.T) {
	b := newSite(t).serve().browse()
	b.session()
	const body = `{"command":["QUEUES"]}`
	for name, c := range map[string]struct {
		changes []string
		want    int
	}{
		"the page itself":             {nil, 200},
		"a type with a charset":       {[]string{"Content-Type", "application/json; charset=utf-8"}, 200},
		"no token":                    {[]string{"X-Holdfast-Token", ""}, 403},
		"a wrong token":               {[]string{"X-Holdfast-Token", "x"}, 403},
		"the type of a form":          {[]string{"Content-Type", "text/plain"}, 415},
		"no type":                     {[]string{"Content-Type", ""}, 415},
		"two types":                   {[]string{"Content-Type", "text/plain, application/json"}, 415},
		"another origin":              {[]string{"Origin", "http://evil.example"}, 403},
		"another port":                {[]string{"Origin", "http://127.0.0.1:1"}, 403},
		"an origin that is none":      {[]string{"Origin", "null"}, 403},
		"another site":                {[]string{"Sec-Fetch-Site", "cross-site"}, 403},
		"another host of the site":    {[]string{"Sec-Fetch-Site", "same-site"}, 403},
		"a name bound to the address": {[]string{"Host", "evil.example", "Origin", "http://evil.example"}, 403},
	} {
		code, text := b.text("POST", "/page/command", body, c.changes...)
		if code != c.want {
			t.Errorf("%s: %d %s, want %d", name, code, text, c.want)
		}
		for _, path := range []string{"/", "/page/session", "/page/live"} {
			if code := b.ask("GET", path, "", c.changes...).StatusCode; (code == 403) != (c.want == 403 && !strings.Contains(name, "token")) {
				t.Errorf("%s: GET %s: %d", name, path, code)
			}
		}
	}
}

func TestATokenIsOfOneSession(t *testing.T) {
	s := newSite(t, root(), user("ann"), user("bob")).serve()
	ann, bob := s.browse(), s.browse()
	stranger := ann.session().Token
	ann.login("ann")
	bob.login("bob")
	for name, token := range map[string]string{"of a stranger": stranger, "of another user": bob.session().Token} {
		if code, text := ann.text("POST", "/page/command", `{"command":["QUEUES"]}`, "X-Holdfast-Token", token); code != 403 || !strings.Contains(text, "token") {
			t.Errorf("the token %s: %d %s", name, code, text)
		}
	}
}
