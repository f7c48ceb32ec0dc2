package page_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/netproto/access"
)

// dial opens a connection that lasts until the test ends. It takes few bytes that nobody reads.
func (s *site) dial(t *testing.T) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
	return conn
}

// Whoever needs no login may take all connections, and keeps nobody from asking how the server is.
func TestClientsThatStallMakeRoomForOthers(t *testing.T) {
	const get = "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
	type attack struct {
		clients  int
		says     string
		answered bool // each client waits for its answer, and then says no more
	}
	login := "POST /page/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n%sContent-Length: 1000\r\n\r\n{"
	for name, a := range map[string]attack{
		"a body that does not come":    {100, login, false},
		"answers that nobody reads":    {80, strings.Repeat("GET /page/uplot.js HTTP/1.1\r\nHost: localhost\r\n\r\n", 3000), false},
		"an answer, and no more":       {100, get, true},
		"nothing":                      {100, "", false},
		"a header without an end":      {100, "GET /livez HTTP/1.1\r\nHost: loc", false},
		"a wrong password":             {100, "GET /page/session HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic cm9vdDp3cm9uZw==\r\n\r\n", false},
		"a body that nobody asked for": {100, "POST /livez HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n", false},
	} {
		for kind, users := range map[string][]access.User{"users": {root()}, "everybody": nil} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				s := newSite(t, users...)
				says := strings.Replace(a.says, "%s", "X-Holdfast-Token: "+s.browse().session().Token+"\r\n", 1)
				http.DefaultTransport.(*http.Transport).CloseIdleConnections()
				for range a.clients {
					conn := s.dial(t)
					go func() { _, _ = io.WriteString(conn, says) }() // ends with the connection
					if a.answered {
						if _, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil {
							t.Fatal(err)
						}
					}
				}
				for end := time.Now().Add(patience); ; runtime.Gosched() { // until all have come
					if _, came := s.admin.Connections(); came.Served >= uint64(a.clients) {
						break
					} else if time.Now().After(end) {
						t.Fatalf("%+v", came)
					}
				}
				for i := range 10 {
					conn := s.dial(t)
					fmt.Fprint(conn, get)
					answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
					if err != nil || answer.StatusCode != http.StatusOK {
						t.Fatalf("livez, the try %d: %v, %v", i, answer, err)
					}
				}
			})
		}
	}
}
