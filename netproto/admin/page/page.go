// Package page serves the operator's page at the admin address: API.md describes what it asks for.
// The page is a client of the Redis door: what it does are commands there, with the rights of its
// user. The map:
//
//	page.go      Page: its paths, and what each of them demands
//	static.go    the files of the page
//	session.go   who looks, and the tokens that other sites do not know
//	command.go   commands
//	audit.go     what users have managed and operated
//	settings.go  the server's settings in force, and the nodes of its cell
//	reply.go     replies of the Redis protocol as JSON
//	live.go      one page that is open: what it is sent
//	survey.go    how all queues are, for all open pages
//	history.go   how they were in the last hour
//	figures.go   how the server is
package page

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/holdfast-queue/holdfast/netproto"
	"github.com/holdfast-queue/holdfast/netproto/access"
	"github.com/holdfast-queue/holdfast/netproto/admin"
)

// Name is the page's name in logs and figures, where its connections count.
const Name = "page"

const (
	// MaxConns is how many connections to the Redis door all pages have at a time.
	MaxConns = (maxLives + 1) + (maxCommands + 1)

	maxBody     = 1 << 20         // of a command, in bytes
	bodyTimeout = 5 * time.Second // for that
	maxLogin    = 4 << 10         // of a login, whose client nobody knows
	loginBody   = 2 * time.Second // for that
)

// Config says for whom a page is served.
type Config struct {
	Users   *access.Control // nil: everybody may do everything
	Logger  *slog.Logger
	Version string       // of the server
	Ready   func() error // why the server does not serve
	// Settings returns the server's settings in force; nil: it tells none.
	Settings func() []Setting
	Nodes    admin.Nodes // the cell that the server is of; nil: none
}

// Source is a server that serves.
type Source struct {
	Loop *netproto.Loop
	// Door is a server of the Redis protocol, for the page's own connections.
	Door *netproto.Server
	// Recent returns the newest events that a user may know of, the oldest first, as JSON. It is
	// called in the loop.
	Recent func(pass *access.Pass) [][]byte
	// Figures fills in what the broker does not know. One goroutine at a time calls it.
	Figures func(*Whole)
}

// Page is the page of a server. Any goroutine may call its methods.
type Page struct {
	config   Config
	mux      *http.ServeMux
	source   atomic.Pointer[Source] // nil before Serve
	sessions sessions
	tokens   tokens
	commands *admin.Places // that are carried out
	lives    *admin.Places // that are open
	survey   survey
	history  history
}

// New makes the page of a server that does not serve yet.
func New(c Config) *Page {
	p := &Page{config: c, mux: http.NewServeMux(), sessions: newSessions(), tokens: newTokens(), commands: admin.NewPlaces(maxCommands), lives: admin.NewPlaces(maxLives),
		history: history{queues: make(map[place]*past)}}
	p.serveStatic()
	p.mux.HandleFunc("GET /page/session", p.visited(p.serveSession))
	p.mux.HandleFunc("GET /page/live", p.visited(p.known(p.serveLive)))
	p.mux.HandleFunc("GET /page/audit", p.visited(p.known(p.operated(p.serveAudit))))
	p.mux.HandleFunc("GET /page/settings", p.visited(p.known(p.operated(p.serveSettings))))
	p.mux.HandleFunc("GET /page/cluster", p.visited(p.known(p.operated(p.serveCluster))))
	p.mux.HandleFunc("POST /page/login", p.visited(p.post(p.serveLogin)))
	p.mux.HandleFunc("POST /page/logout", p.visited(p.post(p.serveLogout)))
	p.mux.HandleFunc("POST /page/command", p.visited(p.known(p.post(p.serveCommand))))
	p.mux.HandleFunc("POST /page/history", p.visited(p.known(p.post(p.serveHistory))))
	p.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, http.StatusNotFound, fmt.Sprintf("%s %s is no request of the page", r.Method, r.URL.Path))
	})
	return p
}

// Serve notes that the server serves.
func (p *Page) Serve(s Source) {
	p.source.Store(&s)
	go p.history.run(&s) // ends with the loop
}

// ServeHTTP answers requests. The caller has refused those that come from pages of other sites.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	p.mux.ServeHTTP(w, r)
}

// handler answers a request of a visitor.
type handler func(w http.ResponseWriter, r *http.Request, v visitor)

// visited finds out who makes a request.
func (p *Page) visited(serve handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v, err := p.visitor(r)
		if err != nil {
			refuseLogin(w, err)
			return
		}
		serve(w, r, v)
	}
}

// known passes on requests of a user, or of anybody if there are none, to a server that serves.
func (p *Page) known(serve handler) handler {
	return func(w http.ResponseWriter, r *http.Request, v visitor) {
		why := p.config.Ready()
		if why == nil && p.source.Load() == nil {
			why = errors.New("the server begins to serve: try again")
		}
		switch {
		case p.config.Users != nil && v.account == nil:
			refuse(w, http.StatusUnauthorized, "log in first")
		case why != nil:
			w.Header().Set("Retry-After", "10")
			refuse(w, http.StatusServiceUnavailable, why.Error())
		default:
			serve(w, r, v)
		}
	}
}

// operated passes on requests of those who operate the server.
func (p *Page) operated(serve handler) handler {
	return func(w http.ResponseWriter, r *http.Request, v visitor) {
		if p.config.Users != nil && !v.account.May(access.Operate, nil) {
			refuse(w, http.StatusForbidden, "this is for users who may operate")
			return
		}
		serve(w, r, v)
	}
}

// post passes on requests that only the page itself can make: no form of another site brings such
// a type, and no other site knows the token.
func (p *Page) post(serve handler) handler {
	return func(w http.ResponseWriter, r *http.Request, v visitor) {
		kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
		switch {
		case kind != "application/json":
			refuse(w, http.StatusUnsupportedMediaType, "expected Content-Type: application/json")
		case !p.tokens.is(r.Header.Get(tokenHeader), v.key):
			refuse(w, http.StatusForbidden, "the token is missing or of another session: ask /page/session for it, and send it as "+tokenHeader)
		default:
			serve(w, r, v)
		}
	}
}

// read reads the body of a request, which is one value of JSON, of most bytes and in a time.
func read(w http.ResponseWriter, r *http.Request, into any, most int64, within time.Duration) bool {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(within))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	_ = control.SetReadDeadline(time.Time{}) // the server waits meanwhile for the client to go away
	code := http.StatusBadRequest
	switch long := (*http.MaxBytesError)(nil); {
	case errors.As(err, &long):
		code = http.StatusRequestEntityTooLarge
	case err == nil && !utf8.Valid(body):
		err = errors.New("it is no UTF-8")
	case err == nil:
		err = json.Unmarshal(body, into)
	}
	if err != nil {
		refuse(w, code, "the body is not the JSON that was expected: "+err.Error())
	}
	return err == nil
}

// answer answers with a value as JSON.
func answer(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v) // the client has gone
}

// refuse answers with a status and a sentence.
func refuse(w http.ResponseWriter, code int, why string) {
	answer(w, code, map[string]string{"error": why})
}
