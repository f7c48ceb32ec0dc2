package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/terminal"
)

// asProgram makes the test binary the program itself, for the tests that need a process.
const asProgram = "HOLDFAST_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// patience is how long a test waits for what must happen; only a failing one waits that long.
const patience = 30 * time.Second

// nobody is an address where no server is, and where the system puts none.
const nobody = "127.0.0.1:1"

// result is what one run of the program did.
type result struct {
	code           int
	stdout, stderr string
}

// command is one run of the program inside the test.
type command struct {
	stdin          string
	env            map[string]string
	from           io.Reader // in place of stdin
	stdout, stderr io.Writer // in place of the texts of a result
	hangups        func() <-chan os.Signal
}

func (c command) run(ctx context.Context, args ...string) result {
	var stdout, stderr strings.Builder
	p := program{hangups: c.hangups, Process: terminal.Process{
		Stdin:  cmp.Or[io.Reader](c.from, strings.NewReader(c.stdin)),
		Stdout: cmp.Or[io.Writer](c.stdout, &stdout), Stderr: cmp.Or[io.Writer](c.stderr, &stderr), Env: c.lookup,
	}}
	code := p.run(ctx, quietly(args))
	return result{code, stdout.String(), stderr.String()}
}

func (c command) lookup(name string) (string, bool) {
	value, ok := c.env[name]
	return value, ok
}

// running is a command that goes on beside the test.
type running struct {
	interrupt context.CancelFunc
	ended     chan result
}

// start runs a command until it ends or is interrupted, at the latest when the test ends. It then
// closes what the command read and wrote.
func (c command) start(t *testing.T, args ...string) running {
	ctx, cancel := context.WithCancel(t.Context())
	r := running{cancel, make(chan result, 1)}
	go func() { // ends with ctx or the command
		ended := c.run(ctx, args...)
		for _, end := range []any{c.from, c.stdout, c.stderr} {
			if pipe, ok := end.(io.Closer); ok {
				_ = pipe.Close()
			}
		}
		r.ended <- ended
	}()
	return r
}

// quietly has a command show no progress: on a busy machine anything may take long enough for it.
func quietly(args []string) []string {
	shows := func(name string) bool {
		return slices.Contains([]string{"backup", "dump", "load", "verify", "compact", "import", "export"}, name)
	}
	switch {
	case len(args) > 0 && shows(args[0]):
		return slices.Insert(slices.Clone(args), 1, "--quiet")
	case len(args) > 1 && args[0] == "barbershop" && shows(args[1]):
		return slices.Insert(slices.Clone(args), 2, "--quiet")
	}
	return args
}

// logLine is what the tests read of a line of the server's log.
type logLine struct {
	Msg      string `json:"msg"`
	Protocol string `json:"protocol"`
	Addr     string `json:"addr"`
	Packets  int    `json:"packets"`
}

// testServer is a server that runs inside the test, or in a process of its own.
type testServer struct {
	addr      string            // of pinpriq
	addrs     map[string]string // by protocol
	recovered int               // packets it found at its start
	stop      func() (code int)
}

// serve runs "holdfast serve" until the test ends or stop is called, for pinpriq and Redis clients
// on free ports and for nothing else unless args say so.
func serve(t *testing.T, dir string, args ...string) *testServer {
	t.Helper()
	return command{}.serve(t, dir, args...)
}

// serve is the same with an environment. What the server logs later goes to c.stderr, if any.
func (c command) serve(t *testing.T, dir string, args ...string) *testServer {
	t.Helper()
	later := cmp.Or(c.stderr, io.Discard)
	read, write := io.Pipe()
	c.stderr = write
	args = append(serving, append([]string{"--data", dir}, args...)...)
	r := c.start(t, args...)
	s := &testServer{stop: sync.OnceValue(func() int {
		r.interrupt()
		return (<-r.ended).code
	})}
	t.Cleanup(func() { s.stop() })
	s.wait(t, read, later, args)
	return s
}

// serving begins the command line of a server.
var serving = slices.Clip(strings.Fields("serve --pinpriq 127.0.0.1:0 --barbershop off --redis 127.0.0.1:0 --admin off --log json"))

// listeners is how many addresses a server started with args listens on.
func listeners(args []string) int {
	wanted := map[string]bool{}
	for i, flag := range args[:len(args)-1] {
		switch flag {
		case "--pinpriq", "--barbershop", "--redis", "--admin":
			wanted[flag] = args[i+1] != "off"
		}
	}
	n := 0
	for _, on := range wanted {
		if on {
			n++
		}
	}
	return n
}

// wait reads the log up to the last line that says "listening". The rest goes to later.
func (s *testServer) wait(t *testing.T, log io.Reader, later io.Writer, args []string) {
	t.Helper()
	s.addrs = make(map[string]string)
	lines := bufio.NewScanner(log)
	var all []string
	for lines.Scan() {
		all = append(all, lines.Text())
		var line logLine
		if json.Unmarshal(lines.Bytes(), &line) != nil {
			continue
		}
		switch line.Msg {
		case "recovered":
			s.recovered = line.Packets
		case "listening":
			s.addrs[line.Protocol] = line.Addr
			if len(s.addrs) < listeners(args) {
				continue
			}
			s.addr = s.addrs["pinpriq"]
			go func() { _, _ = io.Copy(later, log) }() // ends with the server
			return
		}
	}
	t.Fatalf("server ended before it was listening:\n%s", strings.Join(all, "\n"))
}

// run runs a client command against the server.
func (s *testServer) run(t *testing.T, args ...string) result {
	t.Helper()
	return s.runWith(t, "", args...)
}

// runWith runs a client command with standard input.
func (s *testServer) runWith(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c := s.command()
	c.stdin = stdin
	return c.run(ctx, args...)
}

// command is one that asks the server unless its flags say otherwise.
func (s *testServer) command() command {
	c := command{env: make(map[string]string)}
	for protocol, addr := range s.addrs {
		c.env["HOLDFAST_"+strings.ToUpper(protocol)] = addr
	}
	return c
}

// must runs a client command that has to succeed, and returns what it printed.
func (s *testServer) must(t *testing.T, args ...string) string {
	t.Helper()
	r := s.run(t, args...)
	if r.code != exitOK {
		t.Fatalf("%q: exit code %d, stderr %q", args, r.code, r.stderr)
	}
	return r.stdout
}

// itself is the program as a process that has not begun. It ends with the test at the latest.
func itself(tb testing.TB, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(tb.Context(), executable, quietly(args)...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	return cmd
}

// executable is the file of the tests, and so of the program.
var executable, _ = os.Executable()

// process starts a server as a process of its own.
func process(t *testing.T, args ...string) (*exec.Cmd, *testServer) {
	t.Helper()
	args = append(serving, args...)
	cmd := itself(t, args...)
	read, write := io.Pipe()
	cmd.Stderr = write
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { // ends with the process
		_ = cmd.Wait()
		_ = write.Close()
		close(ended)
	}()
	t.Cleanup(func() { <-ended })
	s := &testServer{stop: func() int {
		select {
		case <-ended:
		case <-time.After(patience):
			t.Error("process did not end")
			_ = cmd.Process.Kill()
			<-ended
		}
		return cmd.ProcessState.ExitCode()
	}}
	s.wait(t, read, io.Discard, args)
	return cmd, s
}
