package redis

import (
	"bufio"
	"context"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/daemon"
)

// limit bounds every wait. It is far longer than any should take.
const limit = 30 * time.Second

// onEach runs a test on an empty server of each kind.
func onEach(t *testing.T, test func(t *testing.T, addr string)) {
	t.Helper()
	t.Parallel()
	t.Run("redis-server", func(t *testing.T) { test(t, startRedis(t)) })
	t.Run("holdfast", func(t *testing.T) { test(t, startHoldfast(t, daemon.Config{})) })
}

// startHoldfast starts a daemon in this process on an empty folder.
func startHoldfast(t *testing.T, config daemon.Config) string {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	listening, ended := make(chan string, 1), make(chan error, 1)
	config.Data, config.Redis, config.Cache = t.TempDir(), "127.0.0.1:0", 16<<20
	config.Listening = func(_ string, addr net.Addr) { listening <- addr.String() }
	go func() { ended <- daemon.Run(ctx, config) }() // ends when stop is called
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the server ends with %v", err)
		}
	})
	select {
	case addr := <-listening:
		return addr
	case err := <-ended:
		ended <- err
		t.Fatalf("the server does not start: %v", err)
	}
	return ""
}

// startRedis starts the original. It keeps nothing on disk: only what it answers counts here.
func startRedis(t *testing.T, args ...string) string {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("redis-server is not installed: apt install redis-server")
	}
	for range 5 { // another process may take a port that was free
		if port := freePort(t); startedRedis(t, path, port, args) {
			return net.JoinHostPort("127.0.0.1", port)
		}
	}
	t.Fatal("redis-server did not start")
	return ""
}

// startedRedis starts it on a port, and says whether it is ready there.
func startedRedis(t *testing.T, path, port string, args []string) bool {
	t.Helper()
	cmd := exec.Command(path, append([]string{"--bind", "127.0.0.1", "--port", port, "--dir", t.TempDir(), "--save", ""}, args...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	log := bufio.NewScanner(out)
	for log.Scan() {
		if strings.Contains(log.Text(), "Ready to accept connections") {
			go func() { // ends with the process
				for log.Scan() {
				}
			}()
			return true
		}
	}
	return false
}

// freePort returns a port that was free a moment ago.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}
