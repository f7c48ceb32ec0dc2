package redis

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// worker is a program that users copy. The tests put their work in the place of theirs: it says the
// payload, fails if that is "bad", and else takes until the worker is to stop.
type worker struct {
	source       string
	work, test   string
	lease, short string   // how it says its lease, and one of 1.5 s
	reason       string   // what the reason has before the error's message
	changes      []string // more texts, each with what takes its place
	command      func(t *testing.T, script string) *exec.Cmd
}

var workers = allWorkers()

func allWorkers() map[string]worker {
	all := map[string]worker{"redis-py": {
		source: "worker.py",
		work:   "    print(packet.payload.decode(), flush=True)  # the work\n",
		test: `    print(packet.payload.decode(), flush=True)
    if packet.payload == b"bad":
        raise ValueError("no such address")
    while not client.stopping:
        __import__("time").sleep(0.01)
`,
		lease: "lease=30.0", short: "lease=1.5", reason: "ValueError: ",
		command: func(t *testing.T, script string) *exec.Cmd {
			cmd := program(t, python(t), "", script)
			folder, err := filepath.Abs("../../netproto/client/python")
			if err != nil {
				t.Fatal(err)
			}
			cmd.Env = append(cmd.Env, "PYTHONPATH="+folder, "PYTHONDONTWRITEBYTECODE=1")
			return cmd
		},
	}}
	for _, c := range nodeClients {
		if c.library != "node_redis" {
			continue
		}
		all[c.String()] = worker{
			source: "worker.mjs",
			work:   "  console.log(payload.toString()); // the work\n",
			test: `  console.log(payload.toString());
  if (payload.equals(Buffer.from("bad"))) throw new Error("no such address");
  await new Promise((stop) => process.once("SIGTERM", stop));
`,
			lease: "30_000", short: "1_500",
			changes: []string{`process.env.REDIS_URL ?? "redis://127.0.0.1:6379"`, "{ url: process.env.REDIS_URL, RESP: " + c.protocol + " }"},
			reason:  "Error: ",
			command: func(t *testing.T, script string) *exec.Cmd { return nodeModule(t, script, c.module) },
		}
	}
	return all
}

// nodeModule returns a command that runs a module of JavaScript. Such a script finds its libraries
// beside itself, and NODE_PATH does not count.
func nodeModule(t *testing.T, script, module string) *exec.Cmd {
	t.Helper()
	file := moduleFile(t, module)
	beside := filepath.Join(filepath.Dir(script), "node_modules")
	if err := os.Mkdir(beside, 0o700); err != nil {
		t.Fatal(err)
	}
	root, _, _ := strings.Cut(file, "/node_modules/"+module+"/")
	if err := os.Symlink(filepath.Join(root, "node_modules", module), filepath.Join(beside, "redis")); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(beside, "holdfast-queue"), os.DirFS("../../netproto/client/node")); err != nil {
		t.Fatal(err)
	}
	return program(t, "node", "", script)
}

// working is a worker that runs.
type working struct {
	cmd    *exec.Cmd
	says   *bufio.Reader
	errors bytes.Buffer
}

// start runs a worker with texts of it changed: each is followed by what takes its place.
func (w worker) start(t *testing.T, addr string, changes ...string) *working {
	t.Helper()
	text, err := os.ReadFile("testdata/" + w.source)
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(t.TempDir(), w.source)
	for change := range slices.Chunk(slices.Concat([]string{w.work, w.test}, w.changes, changes), 2) {
		if !strings.Contains(string(text), change[0]) {
			t.Fatalf("%s has no %q", w.source, change[0])
		}
		text = []byte(strings.Replace(string(text), change[0], change[1], 1))
	}
	if err := os.WriteFile(script, text, 0o600); err != nil {
		t.Fatal(err)
	}
	run := &working{cmd: w.command(t, script)}
	run.cmd.Env = append(run.cmd.Env, "REDIS_URL=redis://"+addr)
	run.cmd.Stderr = &run.errors
	out, err := run.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := run.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { run.kill() })
	run.says = bufio.NewReader(out)
	return run
}

// begins waits until the worker has begun with a packet.
func (w *working) begins(t *testing.T, payload string) {
	t.Helper()
	if line, err := w.says.ReadString('\n'); err != nil || line != payload+"\n" {
		_ = w.cmd.Wait()
		t.Fatalf("the worker begins with %q, %v; want %q; it says\n%s", line, err, payload, &w.errors)
	}
}

// kill ends the process as kill -9 does.
func (w *working) kill() {
	_ = w.cmd.Process.Kill()
	_ = w.cmd.Wait()
}

// ends waits for a good end.
func (w *working) ends(t *testing.T) {
	t.Helper()
	if err := w.cmd.Wait(); err != nil {
		t.Errorf("the worker ends with %v; it says\n%s", err, &w.errors)
	}
}

// awaitRenewal waits until the lease of a packet ends later than it did.
func awaitRenewal(t *testing.T, v *victim, id string) {
	t.Helper()
	first := packet(t, v, "QSHOW", "jobs", id)
	for begin := time.Now(); ; {
		p := packet(t, v, "QSHOW", "jobs", id)
		if p["state"] != "claimed" || time.Since(begin) > limit {
			t.Fatalf("the packet is %v, and was %v: want its lease renewed", p, first)
		}
		if p["lease-end"].(float64) > first["lease-end"].(float64)+1 { // two looks may differ by that
			return
		}
	}
}

func TestWorkersThatUsersCopyLoseNoPacket(t *testing.T) {
	t.Parallel()
	for library, w := range workers {
		t.Run(library, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			v := startVictim(t, dir)
			addr := v.addrs["redis"]
			shows(t, v, `"OK"`, "QSET", "jobs", "max-attempts", "3", "backoff-min", "3600000", "backoff-max", "3600000")
			bad := id(cli(t, v, "QPUSH", "jobs", "bad"))
			long := id(cli(t, v, "QPUSH", "jobs", "long"))
			run := w.start(t, addr, w.lease, w.short)
			run.begins(t, "bad")
			run.begins(t, "long")
			p := packet(t, v, "QSHOW", "jobs", bad)
			for begin := time.Now(); p["state"] == "claimed" && time.Since(begin) < limit; { // the answer is on its way
				p = packet(t, v, "QSHOW", "jobs", bad)
			}
			if p["state"] != "delayed" || p["reason"] != w.reason+"no such address" {
				t.Errorf("what failed is %v, want it delayed, because: %sno such address", p, w.reason)
			}
			awaitRenewal(t, v, long)
			run.kill() // in the middle of the work

			run = w.start(t, addr)
			run.begins(t, "long")
			if p := packet(t, v, "QSHOW", "jobs", long); p["attempt"] != 2.0 {
				t.Errorf("the second worker has %v, want attempt 2", p)
			}
			next := id(cli(t, v, "QPUSH", "jobs", "next"))
			if err := run.cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			run.ends(t)
			shows(t, v, "null", "QSHOW", "jobs", long)
			if p := packet(t, v, "QSHOW", "jobs", next); p["state"] != "ready" {
				t.Errorf("what nobody began with is %v, want it ready", p)
			}
		})
	}
}
