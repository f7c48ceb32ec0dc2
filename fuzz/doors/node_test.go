package doors

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-queue/holdfast/cmd/daemon"
	"github.com/holdfast-queue/holdfast/netproto/access"
	"github.com/holdfast-queue/holdfast/netproto/client"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// nodePackage is the package for Node, which has no modules beside it.
const nodePackage = "../../netproto/client/node"

// nodeClient is a library below the package that speaks one of the protocols.
type nodeClient struct{ module, protocol string }

func (n nodeClient) String() string { return n.module + " RESP" + n.protocol }

// nodeClients are all of them with -whole, and else two. A module has the name by which .ci/run
// installs it.
func nodeClients() []nodeClient {
	all := []nodeClient{{"redis", "2"}, {"redis6", "3"}, {"redis", "3"}, {"redis6", "2"}}
	if !*whole {
		return all[:2]
	}
	return all
}

// moduleFolder returns the folder of a module of Node: it is installed here or in a folder that
// NODE_PATH names.
func moduleFolder(t *testing.T, module string) string {
	t.Helper()
	path, err := program(t, "node", "apt install nodejs", "-p", `require("path").dirname(require.resolve(process.argv[1] + "/package.json"))`, module).Output()
	if err != nil {
		t.Skipf("the module %s is not installed: npm install in a folder whose node_modules is NODE_PATH", module)
	}
	return strings.TrimSpace(string(path))
}

// project returns a folder of a program of Node that has the package and node-redis.
func project(t *testing.T, module string) string {
	t.Helper()
	dir := t.TempDir()
	must(t, os.CopyFS(filepath.Join(dir, "node_modules", "holdfast-queue"), os.DirFS(nodePackage)))
	must(t, os.Symlink(moduleFolder(t, module), filepath.Join(dir, "node_modules", "redis")))
	return dir
}

// must fails the test at an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// copyTo copies a file of testdata to a folder.
func copyTo(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	must(t, err)
	path := filepath.Join(dir, name)
	must(t, os.WriteFile(path, text, 0o600))
	return path
}

// node returns a command that runs a program of testdata in a project.
func node(t *testing.T, dir, script, addr, protocol string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := program(t, "node", "apt install nodejs", append([]string{copyTo(t, dir, script)}, args...)...)
	cmd.Env = append(cmd.Env, "HOLDFAST_URL=redis://"+addr, "HOLDFAST_RESP="+protocol)
	return cmd
}

func TestThePackageForNode(t *testing.T) {
	t.Parallel()
	for _, n := range nodeClients() {
		t.Run(n.String(), func(t *testing.T) {
			t.Parallel()
			files, err := filepath.Glob(project(t, n.module) + "/node_modules/holdfast-queue/test/*.test.mjs")
			if err != nil || len(files) == 0 {
				t.Fatalf("the package has no tests: %v", err)
			}
			cmd := program(t, "node", "apt install nodejs", append([]string{"--test", "--test-force-exit", "--test-reporter=spec"}, files...)...)
			cmd.Env = append(cmd.Env, "HOLDFAST_URL=redis://"+start(t).addr, "HOLDFAST_RESP="+n.protocol)
			output(t, cmd)
		})
	}
}

// nodeWorker is a worker that runs.
type nodeWorker struct {
	cmd    *exec.Cmd
	begins chan string // payload and attempt of each packet that it begins with; closed at its end
	errors bytes.Buffer
}

// startWorker starts a worker of the queue jobs.
func startWorker(t *testing.T, cmd *exec.Cmd) *nodeWorker {
	t.Helper()
	w := &nodeWorker{cmd: cmd, begins: make(chan string, 10_000)}
	cmd.Stderr = &w.errors
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	go func() { // ends with the worker
		for lines := bufio.NewScanner(out); lines.Scan(); {
			w.begins <- lines.Text()
		}
		close(w.begins)
	}()
	return w
}

// next returns what the worker begins with next.
func (w *nodeWorker) next(t *testing.T) (payload string, attempt int) {
	t.Helper()
	select {
	case line, ok := <-w.begins:
		if !ok {
			_ = w.cmd.Wait()
			t.Fatalf("the worker has ended; it says\n%s", &w.errors)
		}
		if _, err := fmt.Sscan(line, &payload, &attempt); err != nil {
			t.Fatalf("the worker says %q: %v", line, err)
		}
	case <-time.After(limit):
		t.Fatal("the worker begins with nothing")
	}
	return payload, attempt
}

func TestANodeWorkerOutlivesItsServerAndAnotherEndsItsWork(t *testing.T) {
	t.Parallel()
	for _, n := range nodeClients() {
		t.Run(n.String(), func(t *testing.T) {
			t.Parallel()
			dir, s := project(t, n.module), start(t)
			const packets = 100
			payloads := make([][]byte, packets)
			for i := range payloads {
				payloads[i] = fmt.Append(nil, i)
			}
			c := s.client(t)
			_, err := c.PushBatch(t.Context(), "jobs", payloads)
			must(t, err)
			begun := make(map[string]bool)
			first := startWorker(t, node(t, dir, "worker.mjs", s.addr, n.protocol))
			for i := range 50 {
				payload, _ := first.next(t)
				if begun[payload] {
					t.Errorf("packet %s is begun twice by a worker that lives", payload)
				}
				if begun[payload] = true; i == 20 {
					s.kill()
					s.again(t)
				}
			}
			must(t, first.cmd.Process.Kill())
			for line := range first.begins {
				begun[strings.Fields(line)[0]] = true
			}
			_, err = c.Harvest(t.Context(), "jobs") // the leases of the first one last for 30 s
			must(t, err)
			_, err = c.CloseQueue(t.Context(), "jobs")
			must(t, err)
			second := startWorker(t, node(t, dir, "worker.mjs", s.addr, n.protocol))
			for line := range second.begins { // until the queue is drained
				begun[strings.Fields(line)[0]] = true
			}
			if err := second.cmd.Wait(); err != nil || len(begun) != packets {
				t.Errorf("the second worker ends with %v, and %d of %d packets are begun; it says\n%s", err, len(begun), packets, &second.errors)
			}
			if figures, err := c.Stats(t.Context(), "jobs"); err != nil || figures.Claimed != 0 || figures.Dead != 0 {
				t.Errorf("the queue has %+v, %v; want nothing claimed or dead", figures, err)
			}
		})
	}
}

func TestANodeWorkerThatHangsEndsWithASignal(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.client(t)
	id, err := c.Push(t.Context(), "jobs", []byte("hang"))
	must(t, err)
	w := startWorker(t, node(t, project(t, "redis6"), "worker.mjs", s.addr, "3"))
	w.next(t)
	must(t, w.cmd.Process.Signal(os.Interrupt))
	if err := w.cmd.Wait(); err != nil {
		t.Errorf("the worker ends with %v; it says\n%s", err, &w.errors)
	}
	if p, err := c.Show(t.Context(), "jobs", id); err != nil || p.State != client.StateReady || p.Attempt != 0 {
		t.Errorf("the packet is %+v, %v; want it ready, and never tried", p, err)
	}
}

func TestANodeWorkerThatMayNotWorkEnds(t *testing.T) {
	t.Parallel()
	user := func(rights access.Right) []access.User {
		return []access.User{{Name: "ann", Password: "secret", Grants: []access.Grant{{Glob: "*", Rights: rights}}}}
	}
	reloads, listening := make(chan daemon.Reload), make(chan string, 1)
	config := daemon.Config{
		Data: t.TempDir(), Redis: "127.0.0.1:0", Users: user(access.Push | access.Take), Reloads: reloads, Drain: time.Millisecond,
		Listening: func(_ string, addr net.Addr) { listening <- addr.String() },
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- daemon.Run(ctx, config) }() // ends with ctx
	defer func() { cancel(); <-ended }()
	addr := <-listening
	ends := func(w *nodeWorker, says string) {
		if _ = w.cmd.Wait(); w.cmd.ProcessState.ExitCode() != 1 || !strings.Contains(w.errors.String(), says) {
			t.Errorf("the worker ends with %v, want exit code 1 for %s; it says\n%s", w.cmd.ProcessState, says, &w.errors)
		}
	}
	ends(startWorker(t, node(t, project(t, "redis6"), "worker.mjs", "ann:wrong@"+addr, "2")), "DeniedError: WRONGPASS")
	w := startWorker(t, node(t, project(t, "redis"), "worker.mjs", "ann:secret@"+addr, "3"))
	c := client.New(&redis.Options{Addr: addr, Username: "ann", Password: "secret"})
	defer c.Close()
	_, err := c.Push(t.Context(), "jobs", []byte("1"))
	must(t, err)
	w.next(t)
	config.Users = user(access.Push)
	reloaded := make(chan error, 1)
	reloads <- daemon.Reload{Config: config, Done: func(_ []string, err error) { reloaded <- err }}
	must(t, <-reloaded)
	_, err = c.Push(t.Context(), "jobs", []byte("2")) // a claim that waits is refused when its turn comes
	must(t, err)
	ends(w, "ForbiddenError: NOPERM")
}

// npm is slow, and its cache is the user's.
func TestAFreshProjectOfNodeTakesThePackageThatNPMPacks(t *testing.T) {
	t.Parallel()
	dir, s := t.TempDir(), start(t)
	ours, err := filepath.Abs(nodePackage)
	must(t, err)
	npm := func(args ...string) string {
		cmd := program(t, "npm", "apt install npm", append(args, "--offline", "--no-audit", "--no-fund", "--no-update-notifier")...)
		cmd.Dir = dir
		cmd.Env = append(cmd.Env, "npm_config_cache="+filepath.Join(dir, "cache"))
		return output(t, cmd)
	}
	redis := moduleFolder(t, "redis")
	var packed []struct {
		Filename string
		Files    []struct{ Path string }
	}
	text := npm("pack", "--json", ours)
	must(t, json.Unmarshal([]byte(text[strings.Index(text, "["):]), &packed))
	for _, f := range packed[0].Files {
		if strings.HasPrefix(f.Path, "test/") {
			t.Errorf("%s is packed", f.Path)
		}
	}
	must(t, os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"name": "fresh", "private": true}`), 0o600))
	npm("install", "--legacy-peer-deps", "./"+packed[0].Filename) // node-redis is not fetched again
	must(t, os.Symlink(redis, filepath.Join(dir, "node_modules", "redis")))
	if got := output(t, node(t, dir, "fresh.mjs", s.addr, "3")); got != "a packet\n" {
		t.Errorf("the program says %q, want a packet", got)
	}
}

func TestThePackageForNodeKnowsWhichSettingsAreTimes(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(nodePackage + "/lib/words.js")
	must(t, err)
	var times []string
	for _, k := range content.SettingsTable {
		if k.Kind == content.SettingDuration {
			times = append(times, strconv.Quote(k.Name))
		}
	}
	if want := "times = new Set([" + strings.Join(times, ", ") + "])"; !strings.Contains(string(text), want) {
		t.Errorf("words.js has another list than %s", want)
	}
}

func TestTheTypesOfThePackageForNode(t *testing.T) {
	t.Parallel()
	compiler := filepath.Join(moduleFolder(t, "typescript"), "bin", "tsc")
	for _, n := range nodeClients()[:2] {
		t.Run(n.module, func(t *testing.T) {
			t.Parallel()
			dir := project(t, n.module)
			must(t, os.Symlink(filepath.Dir(moduleFolder(t, "@types/node")), filepath.Join(dir, "node_modules", "@types")))
			must(t, os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"type": "module"}`), 0o600))
			cmd := program(t, "node", "apt install nodejs", compiler, "--strict", "--noEmit", "--skipLibCheck", "false",
				"--target", "es2022", "--module", "nodenext", "--types", "node", copyTo(t, dir, "example.ts"))
			cmd.Dir = dir
			output(t, cmd)
		})
	}
}

func TestAPushFromNodeIsWorkedOnInPythonAndTheReverse(t *testing.T) {
	t.Parallel()
	packages, err := filepath.Abs("../../netproto/client/python")
	must(t, err)
	interpreter := python(t, "redis")
	python := func(t *testing.T, s *server, part string) *exec.Cmd {
		cmd := program(t, interpreter, "apt install python3-redis", "testdata/pushes.py", part)
		cmd.Env = append(cmd.Env, "PYTHONPATH="+packages, "PYTHONDONTWRITEBYTECODE=1", "HOLDFAST_URL=redis://"+s.addr)
		return cmd
	}
	look := program(t, interpreter, "", "-c", "from holdfast_queue import Client")
	look.Env = append(look.Env, "PYTHONPATH="+packages, "PYTHONDONTWRITEBYTECODE=1")
	if look.Run() != nil {
		t.Skip("the package for Python has no client yet")
	}
	for _, producer := range []string{"node", "python"} {
		t.Run(producer, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			js := func(part string) *exec.Cmd { return node(t, project(t, "redis"), "pushes.mjs", s.addr, "3", part) }
			push, work := js("push"), python(t, s, "work")
			if producer == "python" {
				push, work = python(t, s, "push"), js("work")
			}
			output(t, push)
			if got, want := output(t, work), "00ff0d0a "+producer+"\n"; got != want {
				t.Errorf("the worker says %q, want %q", got, want)
			}
		})
	}
}
