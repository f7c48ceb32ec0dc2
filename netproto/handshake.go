package netproto

import (
	"container/list"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// ErrPlain is why a connection that does not speak TLS is closed where others do.
var ErrPlain = errors.New("the first bytes are not TLS, which this address speaks: have the client use it")

var (
	errSlowHandshake = fmt.Errorf("handshake took longer than %v", handshakeTime)
	errCrowded       = fmt.Errorf("handshake took longer than %v, and %d are under way", fairHandshakeTime, maxHandshakes)
)

// handshakes holds the handshakes of a server that are under way. If there are maxHandshakes, the
// next waits until one ends. The oldest gets fairHandshakeTime then. So clients that say nothing do
// not keep others out, and a thousand that come at once get in one after the other.
type handshakes struct {
	places chan struct{} // holds one for each
	line   sync.Mutex    // held by the one that waits for a place
	mu     sync.Mutex
	all    list.List // of *handshake, the oldest first
}

type handshake struct {
	begun  time.Time
	cancel context.CancelCauseFunc
}

func newHandshakes() *handshakes { return &handshakes{places: make(chan struct{}, maxHandshakes)} }

// begin waits for a place; end must follow.
func (h *handshakes) begin(cancel context.CancelCauseFunc) *list.Element {
	h.line.Lock()
	defer h.line.Unlock()
	select {
	case h.places <- struct{}{}:
	default:
		if oldest := h.oldest(); oldest != nil {
			defer time.AfterFunc(time.Until(oldest.begun.Add(fairHandshakeTime)), func() { oldest.cancel(errCrowded) }).Stop()
		}
		h.places <- struct{}{}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.all.PushBack(&handshake{time.Now(), cancel})
}

func (h *handshakes) oldest() *handshake {
	h.mu.Lock()
	defer h.mu.Unlock()
	if first := h.all.Front(); first != nil {
		return first.Value.(*handshake)
	}
	return nil
}

func (h *handshakes) end(e *list.Element) {
	h.mu.Lock()
	h.all.Remove(e)
	h.mu.Unlock()
	<-h.places
}

// shake has a goroutine make the handshake of a connection, and give that to the loop.
func (s *Server) shake(nc net.Conn, c *conn) {
	ctx, cancel := context.WithCancelCause(s.shaking)
	place := s.handshakes.begin(cancel)
	go func() { // ends after handshakeTime, or with the server
		defer cancel(nil)
		l, err := s.encrypt(ctx, nc, c)
		s.handshakes.end(place)
		if err == nil {
			s.enter(c, l)
			return
		}
		switch log := s.config.Logger.With("protocol", s.config.Protocol.Name(), "remote", c.remote.Addr(), "error", err); {
		case errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed): // it said nothing, or the server ends
			log.Debug("handshake failed")
		default:
			log.Warn("handshake failed")
			s.refused(RefusedHandshake)
		}
		if r, ok := s.config.Protocol.(Refuser); ok && err == ErrPlain {
			_, _ = nc.Write(r.Refusal(err)) // does not block: nothing was sent before
		}
		_ = nc.Close()
		s.remove(c)
	}()
}

// encrypt makes the handshake and the link, and notes who the client is.
func (s *Server) encrypt(ctx context.Context, nc net.Conn, c *conn) (link, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, handshakeTime, errSlowHandshake)
	defer cancel()
	below := &carrier{Conn: nc, computing: c.loop.computing}
	above := tls.Server(below, s.config.TLS)
	below.computing <- struct{}{}
	err := above.HandshakeContext(ctx)
	<-below.computing
	var header tls.RecordHeaderError
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.As(err, &header) && header.Conn != nil:
		return nil, ErrPlain
	case err != nil:
		return nil, err
	}
	if chains := above.ConnectionState().VerifiedChains; len(chains) > 0 {
		c.certificate = chains[0][0].Subject.CommonName
	}
	l, err := newLink(nc, c)
	if err != nil {
		return nil, err
	}
	below.sealed = &sealed{link: l, conn: c, tls: above}
	return below.sealed, nil
}

// carrier is what is below a TLS connection: in the handshake what came, then a link.
type carrier struct {
	net.Conn
	computing chan struct{} // holds one for each handshake that does not wait for its client
	sealed    *sealed       // nil in the handshake
}

// Read implements net.Conn, as Write does.
func (c *carrier) Read(b []byte) (int, error) {
	if c.sealed != nil {
		return c.sealed.fetch(b)
	}
	<-c.computing
	n, err := c.Conn.Read(b)
	c.computing <- struct{}{}
	return n, err
}

func (c *carrier) Write(b []byte) (int, error) {
	if c.sealed != nil {
		return c.sealed.put(b)
	}
	return c.Conn.Write(b)
}

// SetWriteDeadline does nothing: TLS sets one behind its last message, which a link may still send.
func (c *carrier) SetWriteDeadline(time.Time) error { return nil }
