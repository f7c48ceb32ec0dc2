package main

import (
	"context"
	"net"
	"testing"
)

func TestBenchHintsAtTheBoardsPort(t *testing.T) {
	s := serve(t, t.TempDir(), "--admin", "127.0.0.1:0")
	for protocol, why := range map[string]string{"pinpriq": "unexpected EOF", "admin": `it answers "HTTP/1.1 400 Bad Request" to stats`} {
		// A server of pinpriq takes the request for the beginning of a longer one, and must not be
		// waited for.
		r := s.run(t, "bench", "update", "--protocol", "barbershop", "--timeout", "1h", "--barbershop", s.addrs[protocol])
		oneErrorLine(t, r, exitFailed, "the server at "+s.addrs[protocol]+" does not say how many items it has: "+why+"; check that it speaks barbershop")
	}
}

func TestABenchThatWaitsForTheBoardCanBeInterrupted(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // takes a connection and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { // ends with a connection or the listener
		conn, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = conn.Read(make([]byte, 1))
		cancel()
		<-t.Context().Done()
		_ = conn.Close()
	}()
	r := command{}.run(ctx, "bench", "update", "--protocol", "barbershop", "--timeout", "1h", "--barbershop", l.Addr().String())
	oneErrorLine(t, r, exitFailed, "interrupted")
}
