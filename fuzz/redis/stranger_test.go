package redis

import (
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/cmd/daemon"
)

func TestStrangersAreTurnedAway(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		for name, s := range map[string]struct {
			send, want string
		}{
			"GET by HTTP":        {"GET / HTTP/1.1\r\nHost: holdfast\r\n\r\n", ""},
			"POST by HTTP":       {"POST / HTTP/1.1\r\n\r\n", ""},
			"negative length":    {"*1\r\n$-5\r\n", "-ERR Protocol error: invalid bulk length\r\n"},
			"no length":          {"*1\r\n$x\r\n", "-ERR Protocol error: invalid bulk length\r\n"},
			"huge length":        {"*1\r\n$99999999999999999999\r\n", "-ERR Protocol error: invalid bulk length\r\n"},
			"too many arguments": {"*2147483648\r\n", "-ERR Protocol error: invalid multibulk length\r\n"},
			"no count":           {"*x\r\n", "-ERR Protocol error: invalid multibulk length\r\n"},
			"number":             {"*1\r\n:5\r\n", "-ERR Protocol error: expected '$', got ':'\r\n"},
			"nested array":       {"*1\r\n*1\r\n$4\r\nPING\r\n", "-ERR Protocol error: expected '$', got '*'\r\n"},
			"endless line":       {strings.Repeat("x", 100_000), "-ERR Protocol error: too big inline request\r\n"},
			"endless count":      {"*" + strings.Repeat("1", 100_000), "-ERR Protocol error: too big mbulk count string\r\n"},
			"endless length":     {"*1\r\n$" + strings.Repeat("1", 100_000), "-ERR Protocol error: too big bulk count string\r\n"},
		} {
			c := dial(t, addr)
			c.raw(s.send)
			if got, _ := io.ReadAll(c.in); string(got) != s.want { // a reset may follow
				t.Errorf("%s is answered %q, want %q and the end", name, got, s.want)
			}
		}
		c := dial(t, addr)
		c.raw("\x96\x03\x01 \xff\xfe\r\n")
		if got := c.read(); !strings.HasPrefix(got, "-ERR unknown command '") {
			t.Errorf("junk is answered %q, want an error", got)
		}
		c.do("+PONG\r\n", "PING")
	})
}

func TestConnectionsWithHalfARequestHoldNobodyUp(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		const count = 500
		for i := range count {
			dial(t, addr).raw(bulks("LPUSH", "q", "x")[:1+i%20])
		}
		c := dial(t, addr)
		c.do(number(1), "LPUSH", "q", "a")
		c.do(bulk("a"), "RPOP", "q")
	})
}

func TestAClientThatNeverReadsHoldsNobodyUp(t *testing.T) {
	addr := startHoldfast(t, daemon.Config{})
	c, deaf := dial(t, addr), dial(t, addr)
	const size, requests = 500_000, 2_000 // 1 GB of replies
	c.do(ok, "SET", "large", strings.Repeat("x", size))
	sent := make(chan struct{})
	go func() { // ends when the connection does
		defer close(sent)
		_, _ = io.WriteString(deaf.socket, strings.Repeat(bulks("GET", "large"), requests))
	}()
	for range 200 {
		c.do(number(1), "LPUSH", "q", "a")
		c.do(bulk("a"), "RPOP", "q")
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	if memory.HeapAlloc > size*requests/4 {
		t.Errorf("%d MB are held for a client that does not read", memory.HeapAlloc>>20)
	}
	deaf.hangUp()
	<-sent
}

func TestTooManyClientsAreToldSo(t *testing.T) {
	for name, start := range map[string]func(t *testing.T) string{
		"redis-server": func(t *testing.T) string { return startRedis(t, "--maxclients", "2") },
		"holdfast":     func(t *testing.T) string { return startHoldfast(t, daemon.Config{MaxConns: 2}) },
	} {
		t.Run(name, func(t *testing.T) {
			addr := start(t)
			a, b := dial(t, addr), dial(t, addr)
			a.do("+PONG\r\n", "PING")
			b.do("+PONG\r\n", "PING")
			refused := dial(t, addr)
			refused.want("-ERR max number of clients reached\r\n")
			refused.wantClosed()
			a.do("+PONG\r\n", "PING")
		})
	}
}
