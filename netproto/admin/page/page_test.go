package page_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/crypto/bcrypt"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto"
	"github.com/holdfast-queue/holdfast/netproto/access"
	"github.com/holdfast-queue/holdfast/netproto/admin"
	"github.com/holdfast-queue/holdfast/netproto/admin/page"
	"github.com/holdfast-queue/holdfast/netproto/resp"
	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/storage"
)

const (
	// patience bounds every wait: far longer than any should take.
	patience = 30 * time.Second
	password = "the secret"
)

// site is a server with a page.
type site struct {
	t       testing.TB
	page    *page.Page
	loop    *netproto.Loop
	admin   *admin.Server
	inside  *netproto.Server
	users   *access.Control
	audit   *access.Audit
	log     *textLog
	served  atomic.Bool
	address string
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

// newSite makes a site for some users, nil for everybody.
func newSite(t testing.TB, users ...access.User) *site {
	t.Helper()
	s := &site{t: t, log: new(textLog)}
	if users != nil {
		s.users = access.NewControl(usersOf(t, users))
	}
	log := slog.New(slog.NewTextHandler(s.log, nil))
	s.audit = access.NewAudit(log)
	s.page = page.New(page.Config{Users: s.users, Logger: log, Version: "1.2.3", Ready: func() error {
		if s.served.Load() {
			return nil
		}
		return errors.New("recovering")
	}})
	l, err := netproto.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.admin = admin.NewServer(l, admin.Config{Users: s.users, Logger: log, Audit: s.audit, Page: s.page})
	s.address = l.Addr().String()
	served := make(chan error, 1)
	go func() { served <- s.admin.Serve() }() // ends with Close below
	t.Cleanup(func() {
		s.admin.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return s
}

// serve opens a store behind the page.
func (s *site) serve() *site {
	s.t.Helper()
	store, err := storage.Open(s.t.TempDir(), storage.Options{Sync: storage.SyncNever()})
	if err != nil {
		s.t.Fatal(err)
	}
	state, err := recovery.Restore(store, recovery.Options{Now: time.Now().UnixMilli()})
	if err != nil {
		s.t.Fatal(err)
	}
	m := broker.New(store, state, broker.Options{Cache: 1 << 16})
	s.loop, err = netproto.StartLoop(m, store, netproto.LoopConfig{Goroutines: os.Getenv("HOLDFAST_GOROUTINES") != ""})
	if err != nil {
		s.t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(s.log, nil))
	protocol := resp.New(resp.Config{Users: s.users, Logger: log, Audit: s.audit})
	s.inside = netproto.NewServer(nil, netproto.Config{Loop: s.loop, Protocol: protocol, Logger: log, MaxConns: page.MaxConns})
	if s.users != nil {
		s.users.Watch(s.inside.Review)
	}
	s.served.Store(true)
	s.page.Serve(page.Source{Loop: s.loop, Door: s.inside, Recent: protocol.Recent, Figures: func(w *page.Whole) { w.Tables = 7 }})
	s.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := errors.Join(s.inside.Shutdown(ctx), s.loop.Close(), store.Close()); err != nil {
			s.t.Error(err)
		}
	})
	return s
}

func user(name string, grants ...access.Grant) access.User {
	return access.User{Name: name, Grants: grants}
}

// usersOf gives all users the password.
func usersOf(t testing.TB, all []access.User) *access.Users {
	t.Helper()
	for i := range all {
		if all[i].Hashes == nil {
			hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
			if err != nil {
				t.Fatal(err)
			}
			all[i].Hashes = []string{string(hash)}
		}
	}
	u, err := access.NewUsers(all)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// client is somebody who has the page open.
type client struct {
	*site
	header http.Header
}

func (s *site) browse() *client {
	return &client{s, http.Header{"Origin": {"http://" + s.address}, "Sec-Fetch-Site": {"same-origin"}, "Content-Type": {"application/json"}}}
}

// ask makes a request, with changes of its header: pairs of a name and a value, "" for none.
func (b *client) ask(method, path, body string, changes ...string) *http.Response {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	b.t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, method, "http://"+b.address+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header = b.header.Clone()
	for i := 0; i < len(changes); i += 2 {
		if changes[i] == "Host" {
			r.Host = changes[i+1]
		} else if r.Header.Set(changes[i], changes[i+1]); changes[i+1] == "" {
			r.Header.Del(changes[i])
		}
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { answer.Body.Close() })
	return answer
}

// text makes a request, and returns the status and the body of the answer.
func (b *client) text(method, path, body string, changes ...string) (int, string) {
	b.t.Helper()
	answer := b.ask(method, path, body, changes...)
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return answer.StatusCode, strings.TrimSpace(string(text))
}

type sessionAnswer struct {
	User    *string
	Login   bool
	Token   string
	Version string
	Operate bool
	Look    bool
	Host    string
}

// session asks who it is, and takes over the token.
func (b *client) session() (s sessionAnswer) {
	b.t.Helper()
	code, text := b.text("GET", "/page/session", "")
	if err := json.Unmarshal([]byte(text), &s); code != 200 || err != nil {
		b.t.Fatalf("session: %d %s", code, text)
	}
	b.header.Set("X-Holdfast-Token", s.Token)
	return s
}

// login logs in, and returns what the cookie is.
func (b *client) login(name string) *http.Cookie {
	b.t.Helper()
	b.session()
	answer := b.ask("POST", "/page/login", `{"user":"`+name+`","password":"`+password+`"}`)
	cookies := answer.Cookies()
	if answer.StatusCode != 204 || len(cookies) != 1 {
		b.t.Fatalf("login: %d, cookies %v", answer.StatusCode, cookies)
	}
	b.header.Set("Cookie", cookies[0].Name+"="+cookies[0].Value)
	b.session()
	return cookies[0]
}

// command gives a command of texts.
func (b *client) command(words ...string) (int, string) {
	b.t.Helper()
	body, err := json.Marshal(map[string]any{"command": words})
	if err != nil {
		b.t.Fatal(err)
	}
	return b.text("POST", "/page/command", string(body))
}

// redis carries out a command past the page, as everybody or the user root.
func (s *site) redis(words ...any) {
	s.t.Helper()
	name := ""
	if s.users != nil {
		name = "root"
	}
	db := redis.NewClient(&redis.Options{Protocol: 3, DisableIdentity: true, Dialer: func(context.Context, string, string) (net.Conn, error) {
		return s.inside.Connect(netip.MustParseAddrPort("192.0.2.9:9"), name)
	}})
	defer db.Close()
	if err := db.Do(s.t.Context(), words...).Err(); err != nil && err != redis.Nil {
		s.t.Fatalf("%q: %v", words, err)
	}
}

// root may do everything.
func root() access.User {
	return access.User{Name: "root", Grants: access.Everything(), Operate: true}
}
