package daemon

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/netproto/access"
	"github.com/holdfast-queue/holdfast/netproto/pinpriq"
	"golang.org/x/crypto/bcrypt"
)

// text is a log as one text.
type text struct {
	mu  sync.Mutex
	all strings.Builder
}

func (l *text) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(b)
}

func (l *text) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// said sends bytes to a door and returns all that comes until the door closes. Where the request
// does not ask for that, the client closes its half. One that logs in must not: it has hung up.
func said(t *testing.T, addr, request string) string {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	_, _ = io.WriteString(conn, request)
	if !strings.HasSuffix(request, "QUIT\r\n") && !strings.Contains(request, "Connection: close") {
		_ = conn.(*net.TCPConn).CloseWrite()
	}
	got, _ := io.ReadAll(conn)
	return string(got)
}

const word = "geheim"

// settings are ways to have users, each with what a Redis client then sends to be let in.
func settings(t *testing.T) map[string]struct {
	config Config
	login  string
} {
	t.Helper()
	hash, err := bcrypt.GenerateFromPassword([]byte(word), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	boss := access.User{Name: "boss", Hashes: []string{string(hash)}, Grants: access.Everything(), Operate: true}
	plain := access.User{Name: "plain", Certificates: []string{"plain"}}
	return map[string]struct {
		config Config
		login  string
	}{
		"a password":             {Config{RedisPassword: word}, "AUTH " + word + "\r\n"},
		"users":                  {Config{Users: []access.User{boss}}, "AUTH boss " + word + "\r\n"},
		"users and a password":   {Config{Users: []access.User{plain}, RedisPassword: word}, "AUTH default " + word + "\r\n"},
		"a plain user, no right": {Config{Users: []access.User{boss, plain}, PlainUser: "plain"}, "AUTH boss " + word + "\r\n"},
	}
}

func TestAPasswordOrAUserClosesEveryWayRoundIt(t *testing.T) {
	for name, c := range settings(t) {
		t.Run(name, func(t *testing.T) {
			log := new(text)
			c.config.Data, c.config.Debug = t.TempDir(), true
			c.config.Logger = slog.New(slog.NewTextHandler(log, nil))
			r := run(t, c.config)
			if got := said(t, r.addrs["redis"], c.login+"RPUSH q treasure\r\nRPUSH barbershop treasure\r\nSET s treasure\r\nQUIT\r\n"); got != "+OK\r\n:1\r\n:1\r\n+OK\r\n+OK\r\n" {
				t.Fatalf("with the password: %q", got)
			}

			for _, request := range []string{"LPOP q", "LRANGE q 0 -1", "RPUSH q x", "GET s", "QPOP q", "KEYS *", "INFO", "QUEUES", "CONFIG GET *", "CLIENT LIST",
				"SUBSCRIBE c", "PUBLISH c x", "FLUSHALL", "ACL LIST", "MULTI", "COMMAND", "PING", "RESET\r\nLPOP q", "AUTH\r\nLPOP q", "AUTH wrong\r\nLPOP q", "HELLO 3\r\nLPOP q"} {
				got := said(t, r.addrs["redis"], request+"\r\nQUIT\r\n")
				refused, closed := strings.CutSuffix(strings.TrimPrefix(got, "+RESET\r\n"), "+OK\r\n")
				if !closed {
					t.Errorf("redis: %q gets %q", request, got)
				}
				for line := range strings.Lines(refused) {
					if !strings.HasPrefix(line, "-") {
						t.Errorf("redis: %q gets %q", request, got)
					}
				}
			}
			for _, request := range []string{"next", "NEXT", "PEEK", "stats", "INFO", "SCORE 1", "update 1 1", "UPDATE 1 1"} {
				if got := said(t, r.addrs["barbershop"], request+"\r\n"); !strings.HasPrefix(got, "CLIENT_ERROR ") && !strings.HasPrefix(got, "-ERROR ") {
					t.Errorf("barbershop: %q gets %q", request, got)
				}
			}
			for _, request := range []string{
				"\x50\x00\x01q",
				"\x73\x00\x01q\x41",
				"\x70\x00\x01\x00\x00\x01\x00\x00\x00\x01xq",
			} {
				if got := said(t, r.addrs["pinpriq"], request); got != "" {
					t.Errorf("pinpriq: %q gets %q", request, got)
				}
			}
			for path, want := range map[string]string{
				"/backup": "401", "/backup?queue=q": "401", "/backup?format=jsonl": "401", "//backup": "307", "/metrics": "401", "/debug/pprof/": "401", "/debug/pprof/heap": "401",
				"/healthz": "200", "/livez": "200", "/readyz": "200",
			} {
				got := said(t, r.addrs["admin"], "GET "+path+" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
				if !strings.HasPrefix(got, "HTTP/1.1 "+want) {
					t.Errorf("admin: %s gets %.80q, want %s", path, got, want)
				}
			}

			if got := said(t, r.addrs["redis"], c.login+"LRANGE q 0 -1\r\nLLEN barbershop\r\nGET s\r\nDBSIZE\r\nQUIT\r\n"); got != "+OK\r\n*1\r\n$8\r\ntreasure\r\n:1\r\n$8\r\ntreasure\r\n:3\r\n+OK\r\n" {
				t.Errorf("afterwards: %q", got)
			}
			_, user, _ := strings.Cut(strings.TrimSpace(c.login), " ")
			user, _, named := strings.Cut(user, " ")
			if !named {
				user = access.Default
			}
			auth := "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+word))
			if got := said(t, r.addrs["admin"], "GET /backup?format=jsonl HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"+auth+"\r\n\r\n"); !strings.Contains(got, "treasure") {
				t.Errorf("a backup with the password: %.200q", got)
			}
			closed := strings.Count(log.String(), `msg="door closed"`)
			if want := 2; c.config.PlainUser == "" && closed != want || c.config.PlainUser != "" && closed != 0 {
				t.Errorf("%d doors are said to be closed", closed)
			}
			if strings.Contains(log.String(), word) {
				t.Error("the password is in the log")
			}
			if !strings.Contains(log.String(), `msg=audit protocol=admin user=`+user) {
				t.Error("the backup is not audited")
			}
		})
	}
}

func TestAPlainUserThatCannotBeIsAnErrorAtStart(t *testing.T) {
	for name, c := range map[string]Config{
		"without users":   {PlainUser: "a"},
		"another":         {PlainUser: "a", RedisPassword: word},
		"the same twice":  {PlainUser: "default", RedisPassword: word, Users: []access.User{{Name: "default"}}},
		"with wrong hash": {PlainUser: "a", Users: []access.User{{Name: "a", Hashes: []string{word}}}},
	} {
		c.Data, c.Redis = t.TempDir(), "127.0.0.1:0"
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		err := Run(ctx, c)
		cancel()
		if err == nil || strings.Contains(err.Error(), word) || !strings.Contains(err.Error(), "user") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAPlainUserMayDoWhatItsRightsAllowThroughPinpriq(t *testing.T) {
	users := []access.User{{Name: "plain", Grants: []access.Grant{{Glob: "q", Rights: access.Push | access.Take}}}}
	r := run(t, Config{Data: t.TempDir(), Users: users, PlainUser: "plain"})
	c := dialClient(t, r.addrs["pinpriq"])
	if err := errors.Join(c.Push("q", []byte("x"), pinpriq.PushOptions{Priority: 1}), c.Flush()); err != nil {
		t.Fatal(err)
	}
	if got, err := c.Pop(t.Context(), "q"); err != nil || len(got) != 1 {
		t.Errorf("%d packets, %v", len(got), err)
	}
	if _, err := c.Pop(t.Context(), "other"); err == nil {
		t.Error("it pops from another queue")
	}
}
