package main

import (
	"io"
	"net"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// redisReplies sends lines to a server's Redis port and returns what it says to all of them.
func redisReplies(t *testing.T, s *testServer, lines ...string) string {
	t.Helper()
	conn, err := net.Dial("tcp", s.addrs["redis"])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(conn, strings.Join(append(lines, "QUIT\r\n"), "\r\n")); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	return string(got)
}

// fieldOf returns a field of the one packet in a reply.
func fieldOf(t *testing.T, reply, name string) string {
	t.Helper()
	found := regexp.MustCompile(name + `\r\n(?:\$\d+\r\n|:)([^\r]*)\r\n`).FindStringSubmatch(reply)
	if found == nil {
		t.Fatalf("%q has no field %s", reply, name)
	}
	return found[1]
}

func TestClaimsSurviveADumpAndALoad(t *testing.T) {
	t.Parallel()
	work := t.TempDir()
	dir, file, copied := filepath.Join(work, "data"), filepath.Join(work, "dump"), filepath.Join(work, "copy")
	s := serve(t, dir, "--redis", "127.0.0.1:0")
	claim := redisReplies(t, s, "QSET jobs max-attempts 3 dead-letter graves", "QPUSH jobs claimed", "QPUSH jobs dies", "QPUSH jobs later DELAY 9000000",
		"QCLAIM jobs LEASE 9000000 CONSUMER me")
	second := redisReplies(t, s, "QCLAIM jobs")
	died := redisReplies(t, s, "QNACK jobs "+fieldOf(t, second, "id")+" "+fieldOf(t, second, "token")+" DEAD REASON poison")
	if strings.HasPrefix(died, "-") {
		t.Fatalf("nack gave %q", died)
	}
	s.stop()
	if out := done(t, "verify", dir, "--quiet"); !strings.Contains(out, "\nsound: 3 packets of 16 bytes in 2 queues") {
		t.Errorf("verify says %s", out)
	}
	done(t, "compact", dir, "--quiet")
	done(t, "dump", dir, "-o", file, "--quiet")
	done(t, "load", file, copied, "--quiet")
	done(t, "dump", copied, "-o", file+"2", "--quiet")
	if a, b := readFile(t, file), readFile(t, file+"2"); string(a) != string(b) {
		t.Errorf("what was loaded has another dump:\n%s\n%s", a, b)
	}
	s = serve(t, copied, "--redis", "127.0.0.1:0")
	for line, want := range map[string]string{
		"QGET jobs": "max-attempts", "QSHOW jobs " + fieldOf(t, claim, "id"): "claimed", "QLIST graves": "poison", "QLIST jobs STATE delayed": "later",
	} {
		if got := redisReplies(t, s, line); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %s", line, got, want)
		}
	}
	ack := "QACK jobs " + fieldOf(t, claim, "id") + " " + fieldOf(t, claim, "token")
	if got := redisReplies(t, s, ack, "QREDRIVE graves", "QCLAIM jobs"); !strings.HasPrefix(got, ":1\r\n:1\r\n") || fieldOf(t, got, "payload") != "dies" {
		t.Errorf("got %q, want the claim to be acknowledged, and the dead packet in its own queue", got)
	}
	s.stop()
}
