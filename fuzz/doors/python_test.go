package doors

import (
	"bufio"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/netproto/client"
)

// pythonPackage is the folder of the Python package.
const pythonPackage = "../../netproto/client/python"

// pythonProgram returns a command of Python that finds the package, and the server.
func pythonProgram(t *testing.T, s *server, args ...string) *exec.Cmd {
	t.Helper()
	cmd := program(t, python(t, "redis"), "", args...)
	folder, err := filepath.Abs(pythonPackage)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Dir = folder
	cmd.Env = append(cmd.Env, "PYTHONPATH="+folder, "PYTHONDONTWRITEBYTECODE=1", "HOLDFAST_URL=redis://"+s.addr)
	return cmd
}

func TestThePythonPackage(t *testing.T) {
	t.Parallel()
	for _, tests := range []string{"calls", "consume", "handlers"} {
		t.Run(tests, func(t *testing.T) {
			t.Parallel()
			output(t, pythonProgram(t, start(t), "-m", "unittest", "tests.test_"+tests))
		})
	}
}

// pythonWorker says each payload when it begins with it. It works as long as the test wants: until
// there is a line for it.
const pythonWorker = `
import os, sys
from holdfast_queue import Client

client = Client(os.environ["HOLDFAST_URL"])

@client.worker("jobs", concurrency=4, lease=float(sys.argv[1]))
def work(packet):
    print(packet.payload.decode(), flush=True)
    if packet.payload.startswith(b"long"):
        sys.stdin.readline()

client.work(timeout=float(sys.argv[2]))
print("drained", flush=True)
`

// pythonWorking is a worker that runs.
type pythonWorking struct {
	cmd  *exec.Cmd
	says *bufio.Reader
	ends func() error // has one long work end
}

// startPythonWorker starts a worker whose claims last so many seconds, and which waits so many for
// its handlers at its end.
func startPythonWorker(t *testing.T, s *server, lease, timeout string) *pythonWorking {
	t.Helper()
	w := &pythonWorking{cmd: pythonProgram(t, s, "-c", pythonWorker, lease, timeout)}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := w.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = w.cmd.Process.Kill()
		_ = w.cmd.Wait()
	})
	w.says = bufio.NewReader(out)
	w.ends = func() error { _, err := fmt.Fprintln(in); return err }
	return w
}

// hears waits for a line.
func (w *pythonWorking) hears(t *testing.T, want string) {
	t.Helper()
	if line, err := w.says.ReadString('\n'); strings.TrimSpace(line) != want {
		t.Fatalf("the worker says %q, %v; want %q", line, err, want)
	}
}

func push(t *testing.T, c *client.Client, payload string) string {
	t.Helper()
	id, err := c.Push(t.Context(), "jobs", []byte(payload))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestAPacketOfAKilledPythonWorkerGoesToAnother(t *testing.T) {
	t.Parallel()
	s := start(t)
	id := push(t, s.client(t), "long")
	w := startPythonWorker(t, s, "1", "30")
	w.hears(t, "long")
	_ = w.cmd.Process.Kill()

	w = startPythonWorker(t, s, "30", "30")
	w.hears(t, "long")
	if p, err := s.client(t).Show(t.Context(), "jobs", id); err != nil || p.Attempt < 2 {
		t.Errorf("the packet is %+v, %v, want another attempt", p, err)
	}
}

func TestAPythonWorkerOutlivesItsServer(t *testing.T) {
	t.Parallel()
	s := start(t)
	id := push(t, s.client(t), "long")
	w := startPythonWorker(t, s, "30", "30")
	w.hears(t, "long")
	s.kill()
	s.again(t)
	c := s.client(t)
	push(t, c, "next") // which it claims over a new connection
	w.hears(t, "next")
	if p, err := c.Show(t.Context(), "jobs", id); err != nil || p.Attempt != 1 || p.State != client.StateClaimed {
		t.Errorf("the packet is %+v, %v, want its first claim to last", p, err)
	}
	if err := w.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := w.ends(); err != nil {
		t.Fatal(err)
	}
	w.hears(t, "drained")
	for begin := time.Now(); ; {
		n, err := c.Len(t.Context(), "jobs")
		if err == nil && n == 0 {
			return
		}
		if time.Since(begin) > limit {
			t.Fatalf("%d packets are left, %v", n, err)
		}
	}
}

func TestAPythonWorkerThatHangsReturnsItsPacketAndEnds(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.client(t)
	id := push(t, c, "long")
	w := startPythonWorker(t, s, "30", "0.1")
	w.hears(t, "long")
	if err := w.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	w.hears(t, "drained")
	if err := w.cmd.Wait(); err != nil {
		t.Errorf("the worker ends with %v", err)
	}
	p, err := c.Show(t.Context(), "jobs", id)
	if err != nil || p.State != client.StateReady || p.Attempt != 0 {
		t.Errorf("the packet is %+v, %v, want it ready, with no attempt", p, err)
	}
}
