package main

import (
	"net"
	"strings"
	"syscall"
	"testing"
)

func TestSIGTERMDrainsAndEndsWellTheFirstTime(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(signal.String(), func(t *testing.T) {
			cmd, s := process(t, "--data", t.TempDir())
			s.must(t, "push", "q", "x")
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			if code := s.stop(); code != exitOK {
				t.Errorf("exit code %d, want 0", code)
			}
		})
	}
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	cmd, s := process(t, "--data", t.TempDir(), "--drain", "1h")
	stuck(t, s)
	for range 2 {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		refused(t, s.addr) // the signal has arrived when nothing listens any more
	}
	if code := s.stop(); code != exitFailed {
		t.Errorf("exit code %d, want 1", code)
	}
}

// stuck makes a connection that cannot finish: it has asked for more than all buffers between here
// and the server hold, and reads nothing.
func stuck(t *testing.T, s *testServer) {
	t.Helper()
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
	const packets = 1000
	payload := strings.Repeat("x", 60_000)
	push := "\x70\x00\x01\x00\x00\x01\x00\x01\xea\x60" // queue name, TTL 0, priority 1, key of 1, payload of 60,000
	for range packets {
		if _, err := conn.Write([]byte(push + "k" + payload + "q")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := conn.Write([]byte("\x50\x00\x01q\x50\x00\x01q\x50\x00\x01q")); err != nil {
		t.Fatal(err)
	}
	// The reply begins once the server has carried the first pop out.
	if _, err := conn.Read(make([]byte, 2)); err != nil {
		t.Fatal(err)
	}
}

// refused waits until nobody listens on the address.
func refused(t *testing.T, address string) {
	t.Helper()
	for {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return
		}
		_ = conn.Close()
	}
}
