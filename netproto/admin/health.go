package admin

import (
	"io"
	"net/http"
	"time"
)

// Health is how the server is. Any goroutine may call its methods.
type Health interface {
	// Live returns why the server is stuck and must be started anew; nil if it is not.
	Live() error
	// Ready returns why the server does not serve its clients now, takes at least; nil if it does.
	Ready() error
	// Stores returns that, or why pushes are refused; nil if they are not.
	Stores() error
	// Owns returns why the server does not serve the queues itself; nil if it does, and may.
	Owns() error
	// Served is closed when the server has begun to serve.
	Served() <-chan struct{}
}

// state answers ok, or 503 and what ask says.
func state(ask func() error) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if err := ask(); err != nil {
			refuse(w, http.StatusServiceUnavailable, err.Error())
			return
		}
		ok(w)
	}
}

// ready tells whether the server serves takes. With push in the query it tells of pushes, too.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	ask := s.config.Health.Ready
	if r.URL.Query().Has("push") {
		ask = s.config.Health.Stores
	}
	state(ask)(w, r)
}

func ok(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, "ok\n")
}

// waitForHealth answers ok when the server serves. Before that it waits, as a monitor is used to
// that asks for nothing else.
func (s *Server) waitForHealth(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
	select {
	case <-s.config.Health.Served():
		ok(w)
	case <-r.Context().Done(): // the client has gone, or the server stops
	}
}

// served passes on requests when the server serves.
func (s *Server) served(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-s.config.Health.Served():
			serve(w, r)
		default:
			w.Header().Set("Retry-After", "10")
			state(s.config.Health.Ready)(w, r)
		}
	}
}

// well is the health of a server that has nothing to say. The channel is closed.
type well chan struct{}

func (well) Live() error               { return nil }
func (well) Ready() error              { return nil }
func (well) Stores() error             { return nil }
func (well) Owns() error               { return nil }
func (w well) Served() <-chan struct{} { return w }
