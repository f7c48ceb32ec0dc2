package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
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
	file, wrong, empty := filepath.Join(work, "password"), filepath.Join(work, "wrong"), filepath.Join(work, "empty")
	for name, text := range map[string]string{file: "secret\n", wrong: "guess\n", empty: "\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const lines, want = "PING\r\nAUTH secret\r\nPING\r\n", "-NOAUTH Authentication required.\r\n+OK\r\n+PONG\r\n"
	for name, text := range map[string]string{"HOLDFAST_REDIS_PASSWORD": "secret", "HOLDFAST_REDIS_PASSWORD_FILE": file} {
		askRedis(t, command{env: map[string]string{name: text}}.serve(t, filepath.Join(work, name)), lines, want)
	}
	s := serve(t, filepath.Join(work, "clients"), "--redis-password-file", file)
	const advice = "give the user with --user, and the password with HOLDFAST_PASSWORD or --password-file"
	oneErrorLine(t, s.run(t, "pop", "q"), exitFailed, advice)
	oneErrorLine(t, s.run(t, "pop", "q", "--password-file", wrong), exitFailed, "invalid username-password pair or user is disabled; "+advice)
	oneErrorLine(t, s.run(t, "work", "q", "true", "--password-file", wrong), exitFailed, advice)
	oneErrorLine(t, s.run(t, "pop", "q", "--password-file", file), exitNothing, "nothing to pop")
	oneErrorLine(t, s.run(t, "pop", "q", "--redis-password-file", file), exitNothing, "nothing to pop") // as it was called
	for _, name := range []string{"HOLDFAST_PASSWORD", "HOLDFAST_REDIS_PASSWORD"} {
		env := map[string]string{"HOLDFAST_REDIS": s.addrs["redis"], name: "secret", name + "_FILE": wrong}
		oneErrorLine(t, command{env: env}.run(t.Context(), "pop", "q"), exitNothing, "nothing to pop")
		oneErrorLine(t, command{env: env}.run(t.Context(), "pop", "q", "--password-file", wrong), exitFailed, advice)
	}
	s.must(t, "push", "q", "x", "--password-file", file)
	s.must(t, "close", "q", "--yes", "--password-file", file)
	if got := s.must(t, "work", "q", "--password-file", file, "--", "sh", "-c", "echo $HOLDFAST_PASSWORD_FILE"); got != file+"\n" {
		t.Errorf("a command of work finds the password in %q, want %q", got, file)
	}
	for file, want := range map[string]string{empty: "is empty", filepath.Join(work, "missing"): "no such file"} {
		r := cli(t, "serve", "--data", filepath.Join(work, "data"), "--pinpriq", "off", "--barbershop", "off", "--admin", "off",
			"--redis", "127.0.0.1:0", "--redis-password-file", file)
		oneErrorLine(t, r, exitFailed, want)
	}
}

func TestRedisCommandsCanBeSwitchedOff(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir(), "--redis", "127.0.0.1:0", "--redis-disable", "ECHO,Time")
	askRedis(t, s, "ECHO x\r\nTIME\r\nPING\r\n",
		"-ERR command 'ECHO' is switched off on this server\r\n-ERR command 'TIME' is switched off on this server\r\n+PONG\r\n")
}

// redisRequest is a command as clients send it.
func redisRequest(args ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b.String()
}

// limitOf returns the number that ends the error which a request gets.
func limitOf(t *testing.T, s *testServer, request string) int {
	t.Helper()
	conn, err := net.Dial("tcp", s.addrs["redis"])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(conn, request+"QUIT\r\n"); err != nil {
		t.Fatal(err)
	}
	reply, _ := io.ReadAll(conn)
	found := regexp.MustCompile(`^-ERR .*the limit is (\d+)\r\n`).FindSubmatch(reply)
	if found == nil {
		t.Fatalf("got %.200q, want an error that names a limit", reply)
	}
	limit, _ := strconv.Atoi(string(found[1]))
	return limit
}

// What a server takes is in no dump if it is too long for one, and then the whole dump fails.
func TestTheLongestNamesAndValuesAreDumpedAndLoaded(t *testing.T) {
	work := t.TempDir()
	dir, copied := filepath.Join(work, "data"), filepath.Join(work, "copy")
	s := serve(t, dir, "--redis", "127.0.0.1:0")
	text := func(n int) string { return strings.Repeat("\x01", n) } // 6 bytes of JSON each
	name := func(first byte) string {
		return string(first) + text(limitOf(t, s, redisRequest("SET", text(900_000), ""))-1)
	}
	long := limitOf(t, s, redisRequest("SET", "s", text(1<<20+1)))
	stored := limitOf(t, s, redisRequest("HSET", "h", text(long), text(long)))
	for _, args := range [][]string{
		{"SET", "s", text(long)}, {"SET", name('s'), text(long)}, {"RENAME", "s", name('r')},
		{"HSET", "h", "f", text(long)}, {"HSET", name('h'), "f", text(long)}, {"HSET", name('h'), text(long), text(stored - long)},
		{"RPUSH", "l", text(long)}, {"RPUSH", name('l'), text(long)}, {"RENAME", name('l'), name('m')},
	} {
		want := ":"
		if args[0] == "SET" || args[0] == "RENAME" {
			want = "+OK"
		}
		askRedis(t, s, redisRequest(args...), want)
	}
	for _, args := range [][]string{
		{"RENAME", "l", name('r') + "x"}, {"RPUSH", name('r') + "x", "v"}, {"HSET", name('r') + "x", "f", "v"}, {"APPEND", name('r') + "x", "v"},
	} {
		askRedis(t, s, redisRequest(args...), "-ERR too large: ")
	}
	s.stop()
	for _, format := range []string{"jsonl", "msgpack"} {
		file := filepath.Join(work, format)
		done(t, "dump", dir, "-o", file, "--format", format, "--quiet")
		done(t, "load", file, copied+format, "--quiet")
		done(t, "dump", copied+format, "-o", file+"2", "--format", format, "--quiet")
		if !bytes.Equal(readFile(t, file), readFile(t, file+"2")) {
			t.Errorf("%s: what was loaded has another dump", format)
		}
	}
}
