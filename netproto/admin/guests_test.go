package admin

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"testing"
	"time"
)

// ended says whether the server has closed a connection: within the patience of the test it must.
func ended(t *testing.T, conn net.Conn) {
	t.Helper()
	if n, err := conn.Read(make([]byte, 1)); n > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read %d bytes, %v; want the end", n, err)
	}
}

// waitFor waits until so many guests are as is says.
func (s *Server) waitFor(t *testing.T, want int, is func(g *guest) bool) {
	t.Helper()
	for end := time.Now().Add(patience); ; runtime.Gosched() {
		n := 0
		s.mu.Lock()
		for _, g := range s.guests {
			if is(g) {
				n++
			}
		}
		s.mu.Unlock()
		if n == want {
			return
		} else if time.Now().After(end) {
			t.Fatalf("%d connections are so, want %d", n, want)
		}
	}
}

func TestAnAnsweredConnectionMakesRoomBeforeOneThatWasNotHeard(t *testing.T) {
	s := start(t, Config{MaxConns: 2})
	silent, answered := dial(t, s), dial(t, s)
	if _, err := io.WriteString(answered, "GET /livez"+localhost); err != nil {
		t.Fatal(err)
	}
	s.waitFor(t, 1, func(g *guest) bool { return g.answered })
	if code, body := ask(t, s, "GET /livez"+localhost); code != http.StatusOK {
		t.Errorf("status %d, %q", code, body)
	}
	if response, err := http.ReadResponse(bufio.NewReader(answered), nil); err != nil || response.StatusCode != http.StatusOK {
		t.Errorf("its answer: %v, %v", response, err)
	}
	if _, err := io.WriteString(silent, "GET /livez"+localhost); err != nil {
		t.Fatal(err)
	}
	if response, err := http.ReadResponse(bufio.NewReader(silent), nil); err != nil || response.StatusCode != http.StatusOK {
		t.Errorf("the one that came first: %v, %v", response, err)
	}
}

func TestTheConnectionNotHeardTheLongestMakesRoom(t *testing.T) {
	asked := make(chan struct{})
	page := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
	})
	s := start(t, Config{MaxConns: 3, Page: page})
	silent := dial(t, s)
	begun := dial(t, s)
	if _, err := io.WriteString(begun, "GET /livez HTTP/1.1\r\n"); err != nil {
		t.Fatal(err)
	}
	waits := dial(t, s)
	if _, err := io.WriteString(waits, "GET /page/x"+localhost); err != nil {
		t.Fatal(err)
	}
	<-asked
	for _, first := range []net.Conn{silent, begun, waits} {
		dial(t, s)
		ended(t, first)
	}
	if code, body := ask(t, s, "GET /livez"+localhost); code != http.StatusOK {
		t.Errorf("status %d, %q", code, body)
	}
}

func TestAConnectionThatIsKeptMakesNoRoom(t *testing.T) {
	leave := make(chan struct{})
	page := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer Keep(r)()
		_ = http.NewResponseController(w).Flush()
		<-leave
	})
	s := start(t, Config{MaxConns: 2, Page: page})
	for range s.config.MaxConns {
		if _, err := io.WriteString(dial(t, s), "GET /page/x"+localhost); err != nil {
			t.Fatal(err)
		}
	}
	s.waitFor(t, s.config.MaxConns, func(g *guest) bool { return g.kept })
	ended(t, dial(t, s))
	leave <- struct{}{}
	s.waitFor(t, 1, func(g *guest) bool { return g.kept })
	if code, body := ask(t, s, "GET /livez"+localhost); code != http.StatusOK {
		t.Errorf("status %d, %q", code, body)
	}
	leave <- struct{}{}
}

// Metrics are made a few at a time, and may then wait for a client as long as it likes.
func TestMetricsThatNobodyReadsKeepNobodyOut(t *testing.T) {
	made := make(chan struct{})
	metrics := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		made <- struct{}{}
		<-r.Context().Done()
	})
	s := start(t, Config{MaxConns: 8, Metrics: metrics})
	for range s.config.MaxConns {
		if _, err := io.WriteString(dial(t, s), "GET /metrics"+localhost); err != nil {
			t.Fatal(err)
		}
		<-made
	}
	if code, body := ask(t, s, "GET /livez"+localhost); code != http.StatusOK {
		t.Errorf("status %d, %q", code, body)
	}
	s.waitFor(t, maxScrapes, func(g *guest) bool { return g.kept })
}

func TestAConnectionHasTimeToBeAnsweredBeforeItMakesRoom(t *testing.T) {
	s := start(t, Config{MaxConns: 1, Stay: time.Hour})
	first := dial(t, s)
	s.waitFor(t, 1, func(*guest) bool { return true })
	var others []*net.TCPConn
	for range 3 {
		conn := dial(t, s)
		if _, err := io.WriteString(conn, "GET /livez"+localhost); err != nil {
			t.Fatal(err)
		}
		others = append(others, conn)
	}
	if _, err := io.WriteString(first, "GET /livez"+localhost); err != nil {
		t.Fatal(err)
	}
	for _, conn := range append([]*net.TCPConn{first}, others...) { // each makes room when it is answered
		if response, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("%v, %v", response, err)
		}
	}
}
