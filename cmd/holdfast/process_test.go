package main

import (
	"net"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestSystemSignalDrainsAndEndsWellTheFirstTime(t *testing.T) {
	for _, sent := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(sent.String(), func(t *testing.T) {
			if signal.Ignored(sent) {
				t.Skip("skipped: who runs the tests ignores it, and so does what they start")
			}
			cmd, s := process(t, "--data", t.TempDir())
			s.must(t, "push", "q", "x")
			if err := cmd.Process.Signal(sent); err != nil {
				t.Fatal(err)
			}
			if code := s.stop(); code != exitOK {
				t.Errorf("exit code %d, want 0", code)
			}
		})
	}
}

func TestSystemSecondSignalEndsAtOnce(t *testing.T) {
	cmd, s := process(t, "--data", t.TempDir(), "--drain", "1h")
	stuck(t, s)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	refused(t, s.addr)                               // the signal has arrived when nothing listens any more
	for cmd.Process.Signal(syscall.SIGTERM) == nil { // until one of them is late enough to count
		runtime.Gosched()
	}
	if code := s.stop(); code != exitFailed {
		t.Errorf("exit code %d, want 1", code)
	}
}

func TestSignalsAtOneStrokeAreOne(t *testing.T) {
	signals, times := make(chan os.Signal), make(chan time.Time)
	stopped, ended := make(chan struct{}), make(chan struct{})
	now := func() time.Time { return <-times }
	go obey(signals, now, func() { close(stopped) }, func() { close(ended) }) // ends with the last signal of the test
	first := time.Unix(1000, 0)
	arrive := func(after time.Duration) {
		select {
		case <-ended:
			t.Fatalf("ended at once before the signal after %v", after)
		case signals <- syscall.SIGTERM:
			times <- first.Add(after)
		}
	}
	arrive(0)
	<-stopped
	arrive(0)
	arrive(oneSignal - 1)
	arrive(oneSignal)
	<-ended
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
	const packets = 300
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
