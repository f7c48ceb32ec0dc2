package admin

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// passTo passes a connection of a client elsewhere on to the server.
func passTo(t *testing.T, s *Server, remote string) net.Conn {
	t.Helper()
	near, far := net.Pipe()
	t.Cleanup(func() { near.Close() })
	_ = near.SetDeadline(time.Now().Add(patience))
	s.Pass(far, netip.MustParseAddrPort(remote))
	return near
}

func TestAClientThatIsPassedOnIsAskedForItsPasswordWithItsOwnAddress(t *testing.T) {
	s, log := guarded(t)
	conn := passTo(t, s, "[::ffff:192.0.2.1]:7")
	_, _ = io.WriteString(conn, "GET /backup HTTP/1.1\r\nHost: localhost\r\n"+basic("operator", "wrong")+"\r\n")
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || response.StatusCode != http.StatusUnauthorized {
		t.Fatalf("%v, %v", response, err)
	}
	if got := log.String(); !strings.Contains(got, "login failed") || !strings.Contains(got, "remote=192.0.2.1:7") {
		t.Errorf("the log: %s", got)
	}
	if open, a := s.Connections(); open != 1 || a.Served != 1 {
		t.Errorf("%d connections are open of %d", open, a.Served)
	}
}

func TestAServerThatEndsClosesWhatIsPassedOn(t *testing.T) {
	s, _ := guarded(t)
	before := passTo(t, s, "192.0.2.1:7")
	s.Close()
	for _, conn := range []net.Conn{before, passTo(t, s, "192.0.2.1:8")} {
		if _, err := conn.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("read: %v", err)
		}
	}
}
