package admin

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/holdfast-queue/holdfast/netproto/access"
	"github.com/holdfast-queue/holdfast/netproto/glob"
)

// A rule says whether a user may make a request.
type rule func(a *access.Account, r *http.Request) bool

// mayOperate is the rule of what concerns the whole server.
func mayOperate(a *access.Account, _ *http.Request) bool { return a.May(access.Operate, nil) }

// mayLookAtAll is the rule of what is told of all queues together.
func mayLookAtAll(a *access.Account, _ *http.Request) bool { return a.MayLookAtAll() }

// mayBackUp is the rule of a backup: look for all queues that it names, or operate, which one of
// everything needs.
func mayBackUp(a *access.Account, r *http.Request) bool {
	request, err := parseRequest(r.URL.RawQuery)
	if mayOperate(a, r) || err != nil { // serveBackup refuses it
		return true
	}
	for _, pattern := range request.Queues {
		if !mayLook(a, pattern) {
			return false
		}
	}
	return len(request.Queues) > 0
}

// mayLook says whether a user may look at all queues that a pattern matches.
func mayLook(a *access.Account, pattern string) bool {
	g, err := glob.Compile([]byte(pattern))
	return err == nil && a.MayAll(access.Look, g)
}

// userKey is where the context of a request keeps its user.
type userKey struct{}

// userOf is the user that makes a request that has passed a rule; nil if there are no users.
func userOf(r *http.Request) *access.Account {
	a, _ := r.Context().Value(userKey{}).(*access.Account)
	return a
}

// audit notes what an operator has done.
func (s *Server) audit(r *http.Request, command, queue string) {
	x := access.Action{Protocol: Name, User: access.Default, Command: command}
	if a := userOf(r); a != nil {
		x.User = a.Name()
	}
	remote, _ := netip.ParseAddrPort(r.RemoteAddr)
	x.Host = remote.Addr()
	s.config.Audit.Note(x, remote, []byte(queue), nil, -1)
}

// only passes on the requests that a rule allows; all if there is no rule, or there are no users.
func (s *Server) only(may rule, serve http.HandlerFunc) http.HandlerFunc {
	if may == nil || s.config.Users == nil {
		return serve
	}
	return func(w http.ResponseWriter, r *http.Request) {
		a, err := Login(s.config.Users, s.config.Logger, r)
		switch {
		case errors.Is(err, access.ErrBusy):
			w.Header().Set("Retry-After", "5")
			refuse(w, http.StatusServiceUnavailable, err.Error())
		case err != nil:
			w.Header().Set("WWW-Authenticate", `Basic realm="holdfast", charset="UTF-8"`)
			refuse(w, http.StatusUnauthorized, err.Error())
		case !may(a, r):
			refuse(w, http.StatusForbidden, "user "+a.Name()+" has no right to this: it needs operate; only a backup of some queues needs no more than look for them")
		default:
			serve(w, r.WithContext(context.WithValue(r.Context(), userKey{}, a)))
		}
	}
}

// ErrNoLogin asks for a login.
var ErrNoLogin = errors.New("who asks? Send a user and its password by basic authentication, or a user's client certificate")

// Login finds out which user makes a request: by the password, or else by the client certificate.
// It returns ErrNoLogin without both, and else the errors of Control.Login.
func Login(users *access.Control, log *slog.Logger, r *http.Request) (*access.Account, error) {
	name, password, ok := r.BasicAuth()
	if !ok {
		if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
			if a := users.Users().Certified(r.TLS.VerifiedChains[0][0].Subject.CommonName); a != nil {
				return a, nil
			}
		}
		return nil, ErrNoLogin
	}
	return CheckPassword(users, log, r, name, password)
}

// CheckPassword is Login with a password that stands elsewhere in the request.
func CheckPassword(users *access.Control, log *slog.Logger, r *http.Request, name, password string) (*access.Account, error) {
	remote, _ := netip.ParseAddrPort(r.RemoteAddr)
	if a := users.Remembered(remote.Addr(), []byte(name), []byte(password)); a != nil {
		return a, nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), loginTimeout)
	defer cancel()
	type verdict struct {
		account *access.Account
		err     error
	}
	given := make(chan verdict, 1)
	err := users.Login(ctx, remote.Addr(), []byte(name), []byte(password), func(a *access.Account, err error) { given <- verdict{a, err} })
	var v verdict
	if err == nil {
		v = <-given
		err = v.err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = access.ErrBusy
	}
	if err != nil {
		users.Log(log, Name, r.RemoteAddr, []byte(name), err)
	}
	return v.account, err
}

// loginTimeout is how long a login may wait behind others of its address. The answer must leave
// within the time-out of the connection.
const loginTimeout = 20 * time.Second
