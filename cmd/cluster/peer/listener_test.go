package peer

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"testing"
)

// echo is a door that says what it hears, until its term ends.
func echo(l *net.TCPListener) {
	var open sync.WaitGroup
	defer open.Wait()
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		open.Go(func() { // ends with the client
			defer conn.Close()
			_, _ = io.Copy(conn, conn)
		})
	}
}

// speaker is such a door of the owner.
type speaker struct{}

// Pass is a Door.
func (speaker) Pass(conn net.Conn, _ netip.AddrPort) {
	defer conn.Close()
	_, _ = io.Copy(conn, conn)
}

func TestNoConnectionIsRefusedBetweenTheTermsOfANode(t *testing.T) {
	socket, to := listen(t), NewOwner()
	to.Set(serveNode(t, Config{Door: func(string) (Door, error) { return speaker{}.Pass, nil }}))
	var terms, clients sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	const together = 4
	for range together {
		clients.Go(func() { // ends with ctx
			for ctx.Err() == nil {
				conn, err := net.Dial("tcp", socket.Addr().String())
				if err != nil {
					t.Error(err)
					return
				}
				_, err = io.WriteString(conn, "hello")
				got := make([]byte, 5)
				_, rerr := io.ReadFull(conn, got)
				if err := errors.Join(err, rerr); err != nil || string(got) != "hello" {
					t.Errorf("got %q, %v", got, err)
				}
				conn.Close()
			}
		})
	}
	for range 100 {
		for _, serve := range []func(*net.TCPListener){echo, func(l *net.TCPListener) {
			Forwarder{Client: NewClient(nil), Owner: to, Door: "redis", Logger: slog.New(slog.DiscardHandler)}.Forward(context.Background(), l)
		}} {
			l, err := Duplicate(socket)
			must(t, err)
			terms.Go(func() { serve(l) }) // ends with l
			conn, err := net.Dial("tcp", socket.Addr().String())
			must(t, err)
			_, err = io.WriteString(conn, "x")
			must(t, err)
			_, err = io.ReadFull(conn, make([]byte, 1))
			must(t, err)
			conn.Close()
			must(t, l.Close())
		}
	}
	l, err := Duplicate(socket)
	must(t, err)
	terms.Go(func() { echo(l) }) // serves those that still come
	cancel()
	clients.Wait()
	must(t, l.Close())
	terms.Wait()
}
