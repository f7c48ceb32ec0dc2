package doors

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-queue/holdfast/cmd/daemon"
	"github.com/holdfast-queue/holdfast/netproto/client"
)

// whole runs what takes longer, too.
var whole = flag.Bool("whole", false, "run what takes longer, too: see make doors")

// limit bounds every wait. It is far longer than any should take.
const limit = 60 * time.Second

// serveDir and serveAddr have the test binary serve a folder at an address in place of testing.
const serveDir, serveAddr, serveSentinel = "HOLDFAST_TEST_SERVE", "HOLDFAST_TEST_ADDR", "HOLDFAST_TEST_SENTINEL"

func TestMain(m *testing.M) {
	dir := os.Getenv(serveDir)
	if dir == "" {
		os.Exit(m.Run())
	}
	fmt.Fprintln(os.Stderr, daemon.Run(context.Background(), daemon.Config{
		Data: dir, Redis: os.Getenv(serveAddr), Sentinel: os.Getenv(serveSentinel), Cache: 16 << 20,
		Listening: func(_ string, addr net.Addr) { fmt.Println(addr) },
	}))
	os.Exit(1)
}

// server is Holdfast in a process of its own. It has one address, over all its starts.
type server struct {
	dir, addr string
	sentinel  string // its address for clients of Sentinel; none if empty
	cmd       *exec.Cmd
}

// start starts a server on an empty folder.
func start(t *testing.T) *server {
	t.Helper()
	s := &server{dir: t.TempDir(), addr: "127.0.0.1:0"}
	s.again(t)
	return s
}

// again starts the server where it was.
func (s *server) again(t *testing.T) {
	t.Helper()
	s.cmd = exec.Command(os.Args[0])
	s.cmd.Env = append(os.Environ(), serveDir+"="+s.dir, serveAddr+"="+s.addr, serveSentinel+"="+s.sentinel)
	s.cmd.Stderr = os.Stderr
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.kill)
	lines := bufio.NewReader(out)
	for _, addr := range []*string{&s.sentinel, &s.addr} { // Sentinel answers before the queues are there
		if *addr == "" {
			continue
		}
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal("the server does not start")
		}
		*addr = strings.TrimSpace(line)
	}
}

// kill ends the process as kill -9 does. A second call does nothing.
func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// client returns a client of the server, for the test's own looks.
func (s *server) client(t *testing.T) *client.Client {
	t.Helper()
	c := client.New(&redis.Options{Addr: s.addr})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// program returns a command that has not begun, and ends with the test.
func program(t *testing.T, name, installed string, args ...string) *exec.Cmd {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed: %s", name, installed)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*limit) // some are whole suites of tests
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = os.Environ()
	return cmd
}

// output runs a command to its end, which must be a good one, and returns what it said.
func output(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v; it says:\n%s", cmd, err, said.String())
	}
	return said.String()
}

// python returns Debian's Python, which must have a module.
func python(t *testing.T, module string) string {
	t.Helper()
	const path = "/usr/bin/python3"
	if err := exec.Command(path, "-c", "import "+module).Run(); err != nil {
		t.Skipf("Python has no module %s: apt install python3-%s", module, module)
	}
	return path
}
