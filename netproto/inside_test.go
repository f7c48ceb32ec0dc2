package netproto

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// serveInside is a server without a listener.
func serveInside(t *testing.T, c Config) (*Server, *lines) {
	t.Helper()
	p := &lines{}
	c.Protocol, c.Loop = p, newLoop(t, LoopConfig{})
	s := NewServer(nil, c)
	t.Cleanup(func() {
		s.Close()
		s.open.Wait()
	})
	return s, p
}

func connect(t *testing.T, s *Server, remote string) net.Conn {
	t.Helper()
	conn, err := s.Connect(netip.MustParseAddrPort(remote), "ann")
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(patience))
	t.Cleanup(func() { conn.Close() })
	return conn
}

func TestAConnectionInsideTheProcessIsServedAsAnyOther(t *testing.T) {
	s, p := serveInside(t, Config{})
	conn := connect(t, s, "[::ffff:192.0.2.1]:7")
	long := strings.Repeat("x", 3*maxReadBuffer) + "\n"
	go io.WriteString(conn, long+"big\n") // ends when all is read
	r := bufio.NewReader(conn)
	if got, err := r.ReadString('\n'); got != long || err != nil {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if n, err := io.CopyN(io.Discard, r, bigReply); err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	if peer := p.peers[0]; peer.User() != "ann" || peer.Remote().String() != "192.0.2.1:7" || peer.Certificate() != "" {
		t.Errorf("user %q at %v", peer.User(), peer.Remote())
	}
	conn.Close()
	s.waitConns(t, 0)
}

func TestConnectionsInsideTheProcessAreLimited(t *testing.T) {
	s, _ := serveInside(t, Config{MaxConns: 2, MaxConnsPerAddress: 1})
	connect(t, s, "192.0.2.1:7")
	if _, err := s.Connect(netip.MustParseAddrPort("192.0.2.1:8"), ""); err == nil {
		t.Error("one address has two")
	}
	connect(t, s, "192.0.2.2:7")
	if _, err := s.Connect(netip.MustParseAddrPort("192.0.2.3:7"), ""); err == nil {
		t.Error("there are three")
	}
}

func TestADrainEndsTheConnectionsInsideTheProcess(t *testing.T) {
	s, _ := serveInside(t, Config{})
	served := make(chan error, 1)
	go func() { served <- s.Serve() }() // ends with the drain
	conn := connect(t, s, "127.0.0.1:7")
	r := bufio.NewReader(conn)
	_, _ = io.WriteString(conn, "one\n")
	if got, err := r.ReadString('\n'); got != "one\n" || err != nil {
		t.Fatalf("%q, %v", got, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := errors.Join(s.Shutdown(ctx), <-served); err != nil {
		t.Error(err)
	}
	if _, err := r.ReadByte(); err != io.EOF {
		t.Errorf("after the drain: %v", err)
	}
	if _, err := s.Connect(netip.MustParseAddrPort("127.0.0.1:7"), ""); !errors.Is(err, net.ErrClosed) {
		t.Errorf("another: %v", err)
	}
}
