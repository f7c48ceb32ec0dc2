package main

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// askRedis sends lines to a server's Redis port and expects replies.
func askRedis(t *testing.T, s *testServer, lines, want string) {
	t.Helper()
	conn, err := net.Dial("tcp", s.addrs["redis"])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(conn, lines); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(want))
	if n, err := io.ReadFull(conn, got); err != nil || string(got) != want {
		t.Errorf("%q: got %q (%v), want %q", lines, got[:n], err, want)
	}
}

func TestRedisClientsMustGiveThePassword(t *testing.T) {
	work := t.TempDir()
	file, empty := filepath.Join(work, "password"), filepath.Join(work, "empty")
	for name, text := range map[string]string{file: "secret\n", empty: "\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const lines, want = "PING\r\nAUTH secret\r\nPING\r\n", "-NOAUTH Authentication required.\r\n+OK\r\n+PONG\r\n"
	for _, flag := range [][2]string{{"--redis-password", "secret"}, {"--redis-password-file", file}} {
		askRedis(t, serve(t, filepath.Join(work, flag[0]), "--redis", "127.0.0.1:0", flag[0], flag[1]), lines, want)
	}
	for file, want := range map[string]string{empty: "is empty", filepath.Join(work, "missing"): "no such file"} {
		r := cli(t, "serve", "--data", filepath.Join(work, "data"), "--pinpriq", "off", "--barbershop", "off", "--admin", "off",
			"--redis", "127.0.0.1:0", "--redis-password-file", file)
		oneErrorLine(t, r, exitFailed, want)
	}
}

func TestRedisCommandsCanBeSwitchedOff(t *testing.T) {
	s := serve(t, t.TempDir(), "--redis", "127.0.0.1:0", "--redis-disable", "ECHO,Time")
	askRedis(t, s, "ECHO x\r\nTIME\r\nPING\r\n",
		"-ERR unknown command 'ECHO', with args beginning with: 'x' \r\n-ERR unknown command 'TIME', with args beginning with: \r\n+PONG\r\n")
}
