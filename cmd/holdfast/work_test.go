package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// gate makes a named pipe. Who reads it waits until the test has opened it.
func gate(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "gate")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// open waits until somebody reads a gate. Closing it lets that go on.
func open(t *testing.T, gate string) io.Closer {
	t.Helper()
	file, err := os.OpenFile(gate, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// inQueue returns the one packet of a queue.
func inQueue(t *testing.T, s *testServer, queue string) (p struct {
	claimed
	Reason string
}) {
	t.Helper()
	if got := s.must(t, "list", queue, "--json"); json.Unmarshal([]byte(got), &p) != nil {
		t.Fatalf("%s has the packets %q, want one", queue, got)
	}
	return p
}

func TestACommandLearnsWhatItsPacketIs(t *testing.T) {
	t.Setenv("HOLDFAST_PACKET_KEY", "of a packet around this one")
	s := serve(t, t.TempDir())
	push := []string{"push", "q", "pay\nload", "--id", "--priority", "7", "--producer", "shop", "--tag", "size=1", "--tag", "a-b=x=y", "--tag", "nul=a\x00"}
	id := strings.TrimSpace(s.must(t, push...))
	s.must(t, "close", "q", "--yes")
	r := s.run(t, "work", "q", "--", "sh", "-c", "cat; echo; env | grep -E '^HOLDFAST_(PACKET|REDIS)' | sort")
	want := "pay\nload\nHOLDFAST_PACKET_ATTEMPT=1\nHOLDFAST_PACKET_ID=" + id + "\nHOLDFAST_PACKET_PRIORITY=7\nHOLDFAST_PACKET_PRODUCER=shop\n" +
		"HOLDFAST_PACKET_QUEUE=q\nHOLDFAST_PACKET_TAG_A_B=x=y\nHOLDFAST_PACKET_TAG_SIZE=1\nHOLDFAST_PACKET_TOKEN=2\nHOLDFAST_REDIS=" + s.addrs["redis"] + "\n"
	if r != (result{stdout: want}) {
		t.Errorf("%+v, want %q", r, want)
	}
	if got := s.must(t, "list", "q"); got != "" {
		t.Errorf("left in the queue:\n%s\nwant nothing", got)
	}
}

func TestSystemWhatACommandFailsWithIsTheReason(t *testing.T) {
	s := serve(t, t.TempDir())
	for i, c := range []struct {
		script, want string
		flags        []string
	}{
		{"echo a >&2; echo ' b' >&2; echo >&2; exit 3", "exit 3: b", nil},
		{"echo a >&2; printf b >&2; exit 3", "exit 3: b", nil},
		{"exit 3", "exit 3", nil},
		{"kill -9 $$", "signal: killed", nil},
		{"echo a >&2; kill -9 $$", "signal: killed: a", nil},
		{"sleep 3600", "the command was ended: it ran longer than 20ms", []string{"--limit", "20ms"}},
		{"head -c 9999 /dev/zero | tr '\\0' x >&2; exit 1", "exit 1: " + strings.Repeat("x", 4096-len("exit 1: ")), nil},
	} {
		q := fmt.Sprint("q", i)
		s.must(t, "set", q, "max-attempts=1")
		s.must(t, "push", q, "x")
		s.must(t, "close", q, "--yes")
		args := append([]string{"work", q}, c.flags...)
		if r := s.run(t, append(args, "--", "sh", "-c", c.script)...); r.code != exitOK {
			t.Errorf("%s: %+v, want that it goes on", c.script, r)
		}
		if p := inQueue(t, s, q); p.State != "dead" || p.Reason != c.want {
			t.Errorf("%s: %s because of %.2000q, want dead and %q", c.script, p.State, p.Reason, c.want)
		}
	}
}

func TestACommandNeedNotReadItsPayload(t *testing.T) {
	s := serve(t, t.TempDir())
	for range 3 {
		s.must(t, "push", "q", strings.Repeat("x", 900_000))
	}
	s.must(t, "close", "q", "--yes")
	if r := s.run(t, "work", "q", "true"); r != (result{}) {
		t.Errorf("%+v, want silence", r)
	}
	if got := s.must(t, "list", "q"); got != "" {
		t.Errorf("left in the queue:\n%s\nwant nothing", got)
	}
}

func TestSystemACommandThatCannotBeStartedEndsTheWork(t *testing.T) {
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#!/nowhere/interpreter\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	s := serve(t, t.TempDir())
	s.must(t, "push", "q", "x")
	oneErrorLine(t, s.run(t, "work", "q", "nowhere-to-be-found"), exitFailed, "nothing was claimed: exec:")
	if p := inQueue(t, s, "q"); p.Attempt != 0 {
		t.Errorf("attempt %d, want none", p.Attempt)
	}
	r := s.run(t, "work", "q", script)
	if r.code != exitFailed || !strings.Contains(r.stderr, "holdfast: the command does not start: fork/exec") {
		t.Errorf("%+v, want an error", r)
	}
}

func TestAPacketThatIsTooLargeForAnEnvironmentFailsAlone(t *testing.T) {
	s := serve(t, t.TempDir())
	s.must(t, "set", "q", "max-attempts=1")
	s.must(t, "push", "q", "y")
	s.must(t, "push", "q", "x", "--priority", "1", "--key", strings.Repeat("k", 200_000))
	s.must(t, "close", "q", "--yes")
	if r := s.run(t, "work", "q", "cat"); r.code != exitOK || r.stdout != "y" {
		t.Errorf("%+v, want that y is worked on", r)
	}
	if p := inQueue(t, s, "q"); !strings.Contains(p.Reason, "argument list too long") {
		t.Errorf("reason %q, want that it is too long", p.Reason)
	}
}

// patient waits until ok.
func patient(ok func() bool) {
	for !ok() {
		runtime.Gosched()
	}
}

func TestALeaseIsRenewedWhileTheCommandRuns(t *testing.T) {
	s, g := serve(t, t.TempDir()), gate(t)
	s.must(t, "push", "q", "x")
	works := s.command().start(t, "work", "q", "--lease", "1s", "--consumer", "w1", "cat", g)
	running := open(t, g)
	first := inQueue(t, s, "q")
	patient(func() bool { return inQueue(t, s, "q").LeaseEnd > first.LeaseEnd+1000 })
	oneErrorLine(t, s.run(t, "claim", "q"), exitNothing, "nothing to claim")
	if p := inQueue(t, s, "q"); p.Attempt != 1 || p.Consumer != "w1" || p.Token != first.Token {
		t.Errorf("%+v, want the same claim", p)
	}
	s.must(t, "close", "q", "--yes")
	_ = running.Close()
	if r := <-works.ended; r != (result{}) {
		t.Errorf("%+v, want silence", r)
	}
}

func TestALostLeaseEndsTheCommand(t *testing.T) {
	s, g, told := serve(t, t.TempDir()), gate(t), filepath.Join(t.TempDir(), "told")
	s.must(t, "push", "q", "x")
	works := s.command().start(t, "work", "q", "--lease", "1s", "--", "sh", "-c", `trap "echo yes >`+told+`; exit 0" TERM; cat `+g+`; wait`)
	defer open(t, g).Close()
	s.must(t, "set", "q", "pause-out=yes")
	s.must(t, "harvest", "q", "--yes")
	patient(func() bool { text, _ := os.ReadFile(told); return string(text) == "yes\n" })
	works.interrupt()
	if r := <-works.ended; r.code != exitOK || !strings.Contains(r.stderr, "a lease is lost") {
		t.Errorf("%+v, want a word of the lost lease", r)
	}
	if p := inQueue(t, s, "q"); p.State != "ready" || p.Attempt != 1 {
		t.Errorf("%+v, want that it is ready for another", p)
	}
}

func TestACommandIsEndedWhenItsPacketIsCancelled(t *testing.T) {
	s, g, told := serve(t, t.TempDir()), gate(t), filepath.Join(t.TempDir(), "told")
	id := strings.TrimSpace(s.must(t, "push", "q", "x", "--id"))
	works := s.command().start(t, "work", "q", "--lease", "1s", "--", "sh", "-c", `trap "echo yes >`+told+`; exit 0" TERM; cat `+g+`; wait`)
	defer open(t, g).Close()
	s.must(t, "set", "q", "max-attempts=1")
	s.must(t, "cancel", "q", id, "--yes")
	patient(func() bool { text, _ := os.ReadFile(told); return string(text) == "yes\n" })
	works.interrupt()
	if r := <-works.ended; r.code != exitOK || strings.Contains(r.stderr, "level=") {
		t.Errorf("%+v, want nothing about a failure", r)
	}
	oneErrorLine(t, s.run(t, "show", "q", id), exitNothing, "no such packet")
}

func TestASignalLetsCommandsEndAndClaimsNoMore(t *testing.T) {
	s, g := serve(t, t.TempDir()), gate(t)
	s.must(t, "push", "q", "first")
	stderr, complaints := io.Pipe()
	told := sees(stderr, "holdfast: waiting for 1 command to end; a second Ctrl-C ends what still runs\n")
	c := s.command()
	c.stderr = complaints
	works := c.start(t, "work", "q", "cat", "-", g)
	running := open(t, g)
	s.must(t, "push", "q", "second")
	works.interrupt()
	awaited(t, told, "word of what it waits for")
	_ = running.Close()
	if r := <-works.ended; r != (result{stdout: "first"}) {
		t.Errorf("%+v; want 0 and the first", r)
	}
	if p := inQueue(t, s, "q"); p.Payload != "second" || p.Attempt != 0 {
		t.Errorf("left %+v, want the second as it was", p)
	}
}

func TestSystemASecondSignalEndsCommandsWithWhatTheyStarted(t *testing.T) {
	s, g := serve(t, t.TempDir()), gate(t)
	s.must(t, "push", "q", "x")
	cmd, _ := worker(t, s, nil, "sh", "-c", "cat "+g+" & wait")
	running := open(t, g).(*os.File)
	defer running.Close()
	ended := make(chan struct{})
	go func() { // ends with the worker
		_ = cmd.Wait()
		close(ended)
	}()
	for sent := false; !sent; { // until one of them is late enough to count
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
			sent = true
		default:
			runtime.Gosched()
		}
	}
	unread(t, running)
}

func TestCommandsRunAtTheSameTime(t *testing.T) {
	s := serve(t, t.TempDir())
	var gates []string
	for range 3 {
		gates = append(gates, gate(t))
		s.must(t, "push", "q", gates[len(gates)-1])
	}
	s.must(t, "close", "q", "--yes")
	works := s.command().start(t, "work", "q", "--concurrency", "3", "--", "sh", "-c", `cat "$(cat)"; echo done`)
	var running []io.Closer
	for _, g := range gates {
		running = append(running, open(t, g))
	}
	for _, g := range running {
		_ = g.Close()
	}
	if r := <-works.ended; r != (result{stdout: "done\ndone\ndone\n"}) {
		t.Errorf("%+v, want three commands", r)
	}
}

func TestWorkOutlivesItsServer(t *testing.T) {
	dir, g := t.TempDir(), gate(t)
	s := serve(t, dir)
	s.must(t, "push", "q", "first")
	works := s.command().start(t, "work", "q", "--", "sh", "-c", "cat; cat "+g)
	running := open(t, g)
	s.stop()
	_ = running.Close() // the command ends while nobody can be told
	again := serve(t, dir, "--redis", s.addrs["redis"])
	again.must(t, "push", "q", "second")
	_ = open(t, g).Close()
	again.must(t, "close", "q", "--yes")
	if r := <-works.ended; r.code != exitOK || r.stdout != "firstsecond" {
		t.Errorf("%+v, want each packet once", r)
	}
}

// worker starts "holdfast work q" as a process.
func worker(t *testing.T, s *testServer, stdout *os.File, command ...string) (*exec.Cmd, *strings.Builder) {
	t.Helper()
	cmd, stderr := itself(t, append([]string{"work", "q", "--"}, command...)...), &strings.Builder{}
	cmd.Env = append(cmd.Env, "HOLDFAST_REDIS="+s.addrs["redis"])
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.WaitDelay = patience
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, stderr
}

func TestSystemWorkEndsWhenNobodyReadsItsOutput(t *testing.T) {
	s, ran := serve(t, t.TempDir()), filepath.Join(t.TempDir(), "ran")
	for range 5 {
		s.must(t, "push", "q", "x")
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Close()
	cmd, _ := worker(t, s, w, "sh", "-c", "echo >>"+ran+"; echo out")
	_ = w.Close()
	_ = cmd.Wait()
	if text := readFile(t, ran); cmd.ProcessState.ExitCode() != exitFailed || len(text) != 1 {
		t.Errorf("exit code %d after %d commands, want 1 after one", cmd.ProcessState.ExitCode(), len(text))
	}
}

func TestSystemCommandsGetTheSignalsOfAShell(t *testing.T) {
	s := serve(t, t.TempDir())
	s.must(t, "set", "q", "max-attempts=1")
	s.must(t, "push", "q", "x")
	s.must(t, "close", "q", "--yes")
	cmd, stderr := worker(t, s, nil, "sh", "-c", "kill -PIPE $$; echo it is ignored >&2; exit 1")
	_ = cmd.Wait()
	if p := inQueue(t, s, "q"); p.Reason != "signal: broken pipe" {
		t.Errorf("reason %q, want the signal; stderr %s", p.Reason, stderr)
	}
}

func TestSystemACommandEndsWithItsWorker(t *testing.T) {
	s, g := serve(t, t.TempDir()), gate(t)
	s.must(t, "push", "q", "x")
	cmd, _ := worker(t, s, nil, "cat", g)
	running := open(t, g).(*os.File)
	defer running.Close()
	_ = cmd.Process.Kill()
	unread(t, running)
}

// unread waits until nobody reads a gate any more.
func unread(t *testing.T, running *os.File) {
	t.Helper()
	end := []unix.PollFd{{Fd: int32(running.Fd())}} // a gate that nobody reads any more has an error
	n, err := 0, error(unix.EINTR)
	for err == unix.EINTR {
		n, err = unix.Poll(end, int(patience.Milliseconds()))
	}
	if n != 1 {
		t.Errorf("the command still runs after %v: %v", patience, err)
	}
}
