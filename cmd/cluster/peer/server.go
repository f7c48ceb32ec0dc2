package peer

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-queue/holdfast/netproto/admin"
)

const (
	maxAnswer = 64 << 10 // bytes, but for a copy
	maxHeader = 4 << 10  // bytes of a request's or an answer's
	maxSilent = 256      // connections that have not asked for anything yet

	headerTime = 5 * time.Second  // for the handshake and the header of a request
	stallTime  = 30 * time.Second // for an answer, a piece of a copy, or of what a client gets
	joinTime   = 25 * time.Second // less, so that who joins gets the reason why it cannot
)

// Config says what a node answers. Many goroutines call its functions at the same time.
type Config struct {
	// TLS makes what the next connection has. It asks for a certificate of the cell's own authority.
	// nil: plain, for loopback.
	TLS    func() *tls.Config
	Logger *slog.Logger

	Node func() Node
	// Door finds a door of the owner. An error says why nobody is served there now.
	Door func(name string) (Door, error)
	// Files writes an archive of the node's data folder, without the tables that a list has. It
	// returns soon after w has failed.
	Files func(w io.Writer, had []byte) error
	// Join makes a node a learner, and returns etcd's initial cluster for it. ctx ends
	// after 25 s, or when nobody waits for that any more.
	Join func(ctx context.Context, node, peerURL, process string) (cluster string, err error)
}

// Server answers the other nodes.
type Server struct {
	config Config
	http   http.Server

	mu     sync.Mutex
	silent map[net.Conn]bool // connections that have not asked for anything
}

// New makes a server. Serve and Close must follow.
func New(c Config) *Server {
	s := &Server{config: c, silent: make(map[net.Conn]bool)}
	requests := http.NewServeMux()
	requests.HandleFunc("GET /node", s.node)
	requests.HandleFunc("GET /doors/{door}", s.pass)
	requests.HandleFunc("GET /files", s.files)
	requests.HandleFunc("GET /stay", s.stay)
	requests.HandleFunc("POST /join", s.join)
	requests.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, http.StatusNotFound, fmt.Errorf("%s %.100q is no request to a node: is its version another one?", r.Method, r.URL.Path))
	})
	s.http = http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if c.TLS != nil && len(r.TLS.VerifiedChains) == 0 {
				refuse(w, http.StatusForbidden, errors.New("no certificate of the cell's own authority was shown"))
				return
			}
			if c.TLS == nil {
				if err := admin.Foreign(r); err != nil {
					refuse(w, http.StatusForbidden, err)
					return
				}
			}
			requests.ServeHTTP(w, r)
		}),
		ReadHeaderTimeout: headerTime, IdleTimeout: 2 * stallTime, MaxHeaderBytes: maxHeader,
		ConnState: s.count, ErrorLog: admin.Complaints(c.Logger, "node", new(atomic.Uint64)),
	}
	return s
}

// Serve answers those whom l accepts until Close; then it returns nil. l belongs to it.
func (s *Server) Serve(l net.Listener) error {
	if s.config.TLS != nil {
		l = tls.NewListener(l, &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return s.config.TLS(), nil }})
	}
	if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the other nodes: %w", err)
	}
	return nil
}

// Close ends all requests at once. What was passed to a door stays with that.
func (s *Server) Close() { _ = s.http.Close() }

// count closes any of too many silent connections. So strangers hardly keep a node out, which needs
// a few milliseconds.
func (s *Server) count(conn net.Conn, state http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if state != http.StateNew {
		delete(s.silent, conn)
		return
	}
	for c := range s.silent {
		if len(s.silent) < maxSilent {
			break
		}
		delete(s.silent, c)
		cut(c)
	}
	s.silent[conn] = true
}

// cut closes a connection without a last word, for which TLS would wait.
func cut(conn net.Conn) {
	if c, ok := conn.(*tls.Conn); ok {
		conn = c.NetConn()
	}
	_ = conn.Close()
}

// refusal answers what is not done.
type refusal struct {
	Error string `json:"error"` // a sentence
}

func refuse(w http.ResponseWriter, status int, why error) { answer(w, status, refusal{why.Error()}) }

// answer writes JSON.
func answer(w http.ResponseWriter, status int, v any) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(stallTime))
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // who asked sees that it is cut short
}
