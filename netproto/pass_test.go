package netproto

import (
	"container/list"
	"crypto/tls"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"
)

// passing returns what a server gets when another machine passes a connection on, and the other end
// of it.
func passing(t *testing.T) (far, near *net.TCPConn) {
	t.Helper()
	l, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	if far, err = l.AcceptTCP(); err != nil {
		t.Fatal(err)
	}
	return far, conn.(*net.TCPConn)
}

// over is both ends of TLS between machines, through which connections are passed on.
func (r *trust) over(far, near *net.TCPConn) (net.Conn, net.Conn) {
	return tls.Server(far, r.server()), tls.Client(near, r.client(""))
}

func TestAConnectionThatIsPassedOnIsServedAsAnyOther(t *testing.T) {
	for name, row := range map[string]struct{ door, between bool }{
		"plain":          {false, false},
		"over TLS":       {false, true},
		"of TLS":         {true, false},
		"of TLS over it": {true, true},
	} {
		t.Run(name, func(t *testing.T) {
			ca, c := newTrust(t), Config{}
			if row.door {
				c.TLS = ca.server()
			}
			s, p := serveInside(t, c)
			raw, socket := passing(t)
			far, near, local := net.Conn(raw), net.Conn(socket), raw.LocalAddr()
			if row.door { // where the server listens it has come there
				var err error
				if s.listener, err = Listen("127.0.0.1:0"); err != nil {
					t.Fatal(err)
				}
				local = s.Addr()
			}
			if row.between {
				far, near = ca.over(raw, socket)
			}
			s.Pass(far, netip.MustParseAddrPort("[::ffff:192.0.2.1]:7"))
			client := near
			if row.door {
				client = tls.Client(near, ca.client("ann"))
			}
			long := strings.Repeat("x", 3*maxReadBuffer) + "\n"
			go func() { // ends when all is read
				_, _ = io.WriteString(client, long+"big\n")
				_ = client.(interface{ CloseWrite() error }).CloseWrite()
			}()
			got, err := io.ReadAll(client)
			if err != nil || len(got) != len(long)+bigReply || string(got[:len(long)]) != long {
				t.Errorf("%d bytes behind a client that has ended, %v", len(got), err)
			}
			certificate := map[bool]string{true: "ann"}[row.door]
			s.waitConns(t, 0)
			p.mu.Lock()
			defer p.mu.Unlock()
			if peer := p.peers[0]; peer.Remote().String() != "192.0.2.1:7" || peer.Local().String() != local.String() || peer.Certificate() != certificate || peer.User() != "" {
				t.Errorf("user %q with certificate %q at %v, connected to %v", peer.User(), peer.Certificate(), peer.Remote(), peer.Local())
			}
		})
	}
}

func TestConnectionsThatArePassedOnAreLimited(t *testing.T) {
	log := &journal{}
	s, _ := serveInside(t, Config{MaxConnsPerAddress: 1, Logger: log.logger()})
	first, near := passing(t)
	s.Pass(first, netip.MustParseAddrPort("192.0.2.1:7"))
	send(t, near, "one\n")
	wantRead(t, near, "one\n")
	second, near := passing(t)
	s.Pass(second, netip.MustParseAddrPort("192.0.2.1:8"))
	wantEnd(t, near)
	log.waitFor(t, "connections from this address are open", 1)
}

func TestAServerThatHasEndedClosesWhatIsPassedOn(t *testing.T) {
	s, _ := serveInside(t, Config{})
	s.Close()
	far, near := passing(t)
	s.Pass(far, netip.MustParseAddrPort("192.0.2.1:7"))
	wantEnd(t, near)
}

func TestHandshakesThatWaitAtTheSameTimeAllHaveTheirTurn(t *testing.T) {
	h, placed := newHandshakes(), make(chan struct{})
	var all [maxHandshakes]*list.Element
	for i := range all { // that end only when they must
		var once sync.Once
		all[i] = h.begin(func(error) { once.Do(func() { h.end(all[i]) }) })
	}
	const waiting = 4
	for range waiting {
		go func() { // ends when the oldest have
			h.begin(func(error) {})
			placed <- struct{}{}
		}()
	}
	for range waiting {
		select {
		case <-placed:
		case <-time.After(patience):
			t.Fatal("one waits for ever")
		}
	}
}
