package page

import (
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-queue/holdfast/netproto/access"
	"github.com/holdfast-queue/holdfast/netproto/admin"
	"github.com/holdfast-queue/holdfast/netproto/words"
)

const (
	tokenHeader = "X-Holdfast-Token"

	maxSessions = 20             // of one user; the one that was unused the longest makes room
	maxIdle     = 12 * time.Hour // that a session is not used
	maxAge      = 7 * 24 * time.Hour
)

// sessions holds the sessions that logins have begun, by the hashes of their cookies.
type sessions struct {
	mu sync.Mutex
	of map[[sha256.Size]byte]*session
}

// session is a browser that has logged in.
type session struct {
	user        *access.User // as it was then
	begun, used time.Time
}

func newSessions() sessions { return sessions{of: make(map[[sha256.Size]byte]*session)} }

// account is the user of a session in the present set; nil if the session has ended. It ends with
// its time, with the user, and with the user's password.
func (s *session) account(users *access.Control, now time.Time) *access.Account {
	a := users.Users().Named(s.user.Name)
	if a == nil || a.User().Off || now.Sub(s.used) > maxIdle || now.Sub(s.begun) > maxAge ||
		a.User().Password != s.user.Password || !slices.Equal(a.User().Hashes, s.user.Hashes) {
		return nil
	}
	return a
}

// begin begins a session of a user, and returns its cookie.
func (s *sessions) begin(users *access.Control, a *access.Account) (cookie string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	var own [][sha256.Size]byte
	for key, one := range s.of {
		if one.account(users, now) == nil {
			delete(s.of, key)
		} else if one.user.Name == a.Name() {
			own = append(own, key)
		}
	}
	if len(own) >= maxSessions {
		delete(s.of, slices.MinFunc(own, func(a, b [sha256.Size]byte) int { return s.of[a].used.Compare(s.of[b].used) }))
	}
	cookie = secret()
	s.of[sha256.Sum256([]byte(cookie))] = &session{user: a.User(), begun: now, used: now}
	return cookie
}

// find returns the user of a cookie, nil if it is none or its session has ended.
func (s *sessions) find(users *access.Control, cookie string) *access.Account {
	s.mu.Lock()
	defer s.mu.Unlock()
	key, now := sha256.Sum256([]byte(cookie)), time.Now()
	one := s.of[key]
	if one == nil {
		return nil
	}
	a := one.account(users, now)
	if one.used = now; a == nil {
		delete(s.of, key)
	}
	return a
}

// end ends the session of a cookie.
func (s *sessions) end(cookie string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.of, sha256.Sum256([]byte(cookie)))
}

// secret is 256 random bits as text.
func secret() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // which never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// tokens are what a page has to know to change something: a hash, with a key of the process, of
// whose it is.
type tokens struct{ key string }

func newTokens() tokens { return tokens{secret()} }

func (t tokens) of(whose string) string {
	mac := hmac.New(sha256.New, []byte(t.key))
	mac.Write([]byte(whose))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func (t tokens) is(token, whose string) bool { return hmac.Equal([]byte(token), []byte(t.of(whose))) }

// visitor is who makes a request.
type visitor struct {
	account *access.Account // nil: nobody, or there are no users
	key     string          // whose token the request needs
	cookie  string          // of the session; "" without
}

// visitor finds out who makes a request: by a password in its header, by the cookie of a session,
// or by a client certificate. The error says why a password is not taken.
func (p *Page) visitor(r *http.Request) (v visitor, err error) {
	if p.config.Users == nil {
		return v, nil
	}
	if _, _, password := r.BasicAuth(); !password {
		for _, c := range r.CookiesNamed(cookieName(r)) {
			if a := p.sessions.find(p.config.Users, c.Value); a != nil {
				return visitor{a, "session " + c.Value, c.Value}, nil
			}
		}
	}
	a, err := admin.Login(p.config.Users, p.config.Logger, r)
	switch {
	case err == nil:
		return visitor{account: a, key: "user " + a.Name()}, nil
	case errors.Is(err, admin.ErrNoLogin):
		return v, nil
	}
	return v, err
}

// cookieName is of the session's cookie. Browsers give cookies to all ports of a host, so the port
// is in it; and over TLS the prefix has them take it from no other host.
func cookieName(r *http.Request) string {
	name := "holdfast"
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		if _, port, err := net.SplitHostPort(local.String()); err == nil {
			name += "-" + port
		}
	}
	if r.TLS != nil {
		name = "__Host-" + name
	}
	return name
}

func setCookie(w http.ResponseWriter, r *http.Request, value string, age time.Duration) {
	http.SetCookie(w, &http.Cookie{
		Name: cookieName(r), Value: value, Path: "/", MaxAge: cmp.Or(int(age.Seconds()), -1),
		HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode,
	})
}

// serveSession tells the page who looks.
func (p *Page) serveSession(w http.ResponseWriter, _ *http.Request, v visitor) {
	login, host := p.config.Users != nil && v.account == nil, ""
	if !login {
		host, _ = os.Hostname() // a page without a name does as well
	}
	answer(w, http.StatusOK, struct {
		User    *string `json:"user"`
		Login   bool    `json:"login"` // is needed first
		Token   string  `json:"token"`
		Version string  `json:"version"`
		Operate bool    `json:"operate"`
		Look    bool    `json:"look"` // at some queue
		Host    string  `json:"host"`
		// What the page looks for in the figures of queues.
		Troubles []words.Trouble `json:"troubles"`
	}{
		User:    nameOf(v.account),
		Login:   login,
		Token:   p.tokens.of(v.key),
		Version: p.config.Version,
		Operate: p.config.Users == nil || v.account.May(access.Operate, nil),
		Look:    p.config.Users == nil || v.account.MaySome(access.Look),
		Host:    host,

		Troubles: words.Troubles,
	})
}

func nameOf(a *access.Account) *string {
	if a == nil {
		return nil
	}
	return new(a.Name())
}

// serveLogin begins a session.
func (p *Page) serveLogin(w http.ResponseWriter, r *http.Request, _ visitor) {
	if p.config.Users == nil {
		refuse(w, http.StatusBadRequest, "there are no users: everybody may do everything")
		return
	}
	var given struct{ User, Password string }
	if !read(w, r, &given, maxLogin, loginBody) {
		return
	}
	a, err := admin.CheckPassword(p.config.Users, p.config.Logger, r, given.User, given.Password)
	if err != nil {
		refuseLogin(w, err)
		return
	}
	setCookie(w, r, p.sessions.begin(p.config.Users, a), maxAge)
	w.WriteHeader(http.StatusNoContent)
}

// serveLogout ends the session.
func (p *Page) serveLogout(w http.ResponseWriter, r *http.Request, v visitor) {
	p.sessions.end(v.cookie)
	setCookie(w, r, "", 0)
	w.WriteHeader(http.StatusNoContent)
}

// refuseLogin answers why a password is not taken.
func refuseLogin(w http.ResponseWriter, err error) {
	code := http.StatusUnauthorized
	if errors.Is(err, access.ErrBusy) {
		w.Header().Set("Retry-After", "5")
		code = http.StatusServiceUnavailable
	}
	refuse(w, code, err.Error())
}
