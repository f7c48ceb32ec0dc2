package doors

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestCelery(t *testing.T) {
	t.Parallel()
	installed := install(t)
	for name, test := range map[string]func(*celery){
		"its first steps run unchanged":                  firstSteps,
		"all that it offers":                             canvas,
		"a worker that is killed gives its tasks back":   killedWorker,
		"a server that is killed loses and doubles none": killedServer,
		"what was prefetched and is lost does not begin": lostClaims,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &celery{T: t, server: start(t), python: installed, dir: t.TempDir()}
			if err := os.CopyFS(c.dir, os.DirFS("testdata/celery")); err != nil {
				t.Fatal(err)
			}
			test(c)
		})
	}
}

// install installs the package as a user does, and returns a Python that has it.
func install(t *testing.T) string {
	t.Helper()
	system := python(t, "celery")
	if err := exec.Command(system, "-c", "import setuptools, wheel, pip").Run(); err != nil {
		t.Skip("Python cannot install packages: apt install python3-pip python3-setuptools python3-wheel")
	}
	dir := t.TempDir()
	source := filepath.Join(dir, "source") // a build leaves files beside the package
	if err := os.CopyFS(source, os.DirFS(pythonPackage)); err != nil {
		t.Fatal(err)
	}
	venv := filepath.Join(dir, "venv")
	output(t, program(t, system, "", "-m", "venv", "--system-site-packages", "--without-pip", venv))
	installed := filepath.Join(venv, "bin", "python")
	output(t, program(t, installed, "", "-m", "pip", "install", "-q", "--no-index", "--no-build-isolation", source))
	return installed
}

// celery is a project of Celery beside a server of its own.
type celery struct {
	*testing.T
	*server
	python, dir string
	env         []string
	workers     []*logFile // what they say
}

func (c *celery) program(args ...string) *exec.Cmd {
	cmd := program(c.T, c.python, "", args...)
	cmd.Dir = c.dir
	cmd.Env = append(cmd.Env, "BROKER=holdfast://"+c.addr, "SAYS="+c.says())
	cmd.Env = append(cmd.Env, c.env...)
	return cmd
}

func (c *celery) says() string { return filepath.Join(c.dir, "says") }

// worker starts a worker, and waits until it is ready. It ends with the test.
func (c *celery) worker(args ...string) *exec.Cmd {
	c.Helper()
	cmd := c.program(append([]string{"-m", "celery", "-A", "tasks", "worker", "--loglevel=INFO"}, args...)...)
	said := &logFile{name: filepath.Join(c.dir, fmt.Sprint("worker-", time.Now().UnixNano()))}
	c.workers = append(c.workers, said)
	cmd.Stderr = said.create(c.T)
	if err := cmd.Start(); err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGKILL)
		_ = cmd.Wait()
		if c.Failed() {
			c.Logf("the worker says:\n%s", said.read(c.T))
		}
	})
	await(c.T, "the worker is ready", func() bool { return strings.Contains(said.read(c.T), " ready.") })
	return cmd
}

// count says how often the tasks have said a line.
func (c *celery) count(line string) (n int) {
	c.Helper()
	text, err := os.ReadFile(c.says())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.Fatal(err)
	}
	for said := range strings.Lines(string(text)) {
		if strings.HasPrefix(said, line) {
			n++
		}
	}
	return n
}

// logFile is what a program writes, as processes that it leaves behind would hold a pipe open.
type logFile struct{ name string }

func (f *logFile) create(t *testing.T) *os.File {
	t.Helper()
	file, err := os.Create(f.name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return file
}

func (f *logFile) read(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(f.name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// await waits until something holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it never comes that %s", what)
		}
	}
}

func firstSteps(c *celery) {
	tasks := fmt.Sprintf(`from celery import Celery

app = Celery('tasks', broker='holdfast://%[1]s', backend='holdfast://%[1]s')

@app.task
def add(x, y):
    return x + y
`, c.addr)
	if err := os.WriteFile(filepath.Join(c.dir, "tasks.py"), []byte(tasks), 0o600); err != nil {
		c.Fatal(err)
	}
	c.worker()
	const calls = "from tasks import add\nprint(add.delay(4, 4).get(timeout=30))"
	if got := output(c.T, c.program("-c", calls)); got != "8\n" {
		c.Errorf("4 + 4 is %q", got)
	}
}

func canvas(c *celery) {
	c.worker("--concurrency=1")
	output(c.T, c.program("canvas.py"))
}

func killedWorker(c *celery) {
	c.env = []string{"LEASE=2", "PREFETCH=4"}
	first := c.worker("--concurrency=1")
	push := c.program("push.py", "3", "1")
	var said bytes.Buffer
	push.Stdout, push.Stderr = &said, &said
	if err := push.Start(); err != nil {
		c.Fatal(err)
	}
	await(c.T, "a task begins", func() bool { return c.count("begin") == 1 })
	if err := first.Process.Kill(); err != nil {
		c.Fatal(err)
	}
	c.worker("--concurrency=1")
	if err := push.Wait(); err != nil {
		c.Fatalf("%v; it says:\n%s", err, &said)
	}
	if begun, ended := c.count("begin 0"), c.count("end 0"); begun != 2 || ended != 1 {
		c.Errorf("the task of the killed worker began %d times and ended %d times; want 2 and 1", begun, ended)
	}
}

func lostClaims(c *celery) {
	c.env = []string{"LEASE=2", "PREFETCH=4"}
	c.worker("--concurrency=1")
	const calls = "from tasks import gate\nfor r in [gate.delay(n) for n in range(4)]: r.get(timeout=60)"
	push, server := c.program("-c", calls), c.client(c.T)
	if err := push.Start(); err != nil {
		c.Fatal(err)
	}
	await(c.T, "one task runs and the others are prefetched", func() bool {
		stats, err := server.Stats(c.Context(), "celery")
		return c.count("begin 0") == 1 && err == nil && stats.Claimed == 4
	})
	if n, err := server.Harvest(c.Context(), "celery"); n != 4 || err != nil {
		c.Fatal(n, err)
	}
	await(c.T, "the worker knows what it has lost", func() bool {
		return strings.Count(c.workers[0].read(c.T), "the claim of packet") == 4
	})
	if err := os.WriteFile(c.says()+".go", nil, 0o600); err != nil {
		c.Fatal(err)
	}
	if err := push.Wait(); err != nil {
		c.Fatal(err)
	}
	await(c.T, "the queue is empty", func() bool { n, err := server.Len(c.Context(), "celery"); return n == 0 && err == nil })
	for n, want := range []int{2, 1, 1, 1} {
		if got := c.count(fmt.Sprintf("begin %d\n", n)); got != want {
			c.Errorf("task %d began %d times; want %d", n, got, want)
		}
	}
}

func killedServer(c *celery) {
	tasks, kills := 150, 2
	if *whole {
		tasks, kills = 1000, 15
	}
	c.env = []string{"LEASE=6", "PREFETCH=4"}
	c.worker("--concurrency=3")
	push := c.program("push.py", fmt.Sprint(tasks), "0.05")
	var said bytes.Buffer
	push.Stdout, push.Stderr = &said, &said
	if err := push.Start(); err != nil {
		c.Fatal(err)
	}
	for n := range kills {
		await(c.T, "tasks run", func() bool { return c.count("end") >= 10+60*n })
		c.kill()
		c.again(c.T)
	}
	if err := push.Wait(); err != nil {
		c.Fatalf("%v; it says:\n%s", err, &said)
	}
	counts := make([]int, tasks)
	for n := range counts {
		counts[n] = c.count(fmt.Sprintf("begin %d\n", n))
	}
	if least, most := slices.Min(counts), slices.Max(counts); least != 1 || most != 1 {
		c.Errorf("tasks began %v times; want each once", counts)
	}
}
