package cluster

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-queue/holdfast/netproto/client"
)

// few is how many packets show that a worker goes on.
const few = 5

// shift is workers of all packages, each at one node, that share a queue.
type shift struct {
	t    *testing.T
	mu   sync.Mutex        // guards the rest
	done map[string]int    // of each worker: packets it began with
	by   map[string]string // of each payload: the worker
}

// began notes that a worker has begun with a packet.
func (s *shift) began(worker, payload string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if other, twice := s.by[payload]; twice {
		s.t.Errorf("%s begins with packet %s, which %s had", worker, payload, other)
	}
	s.done[worker]++
	s.by[payload] = worker
}

// await waits until something is so. What a lost answer claimed comes back with its lease.
func (s *shift) await(what string, so func() bool) {
	s.t.Helper()
	is := func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return so()
	}
	if !await(2*limit, is) {
		s.t.Fatalf("%s: never", what)
	}
}

// goOn waits until each of some workers has begun with a few more packets.
func (s *shift) goOn(when string, workers ...string) {
	s.t.Helper()
	had := make(map[string]int)
	s.await(when, func() bool {
		ok := true
		for _, w := range workers {
			if _, known := had[w]; !known {
				had[w] = s.done[w]
			}
			ok = ok && s.done[w] >= had[w]+few
		}
		return ok
	})
}

// program starts a worker that says each payload. The function returned ends it with SIGTERM.
func (s *shift) program(worker string, n *node, command ...string) (end func()) {
	s.t.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	packages, err := filepath.Abs("../../netproto/client/python")
	must(s.t, err)
	cmd.Env = append(os.Environ(), "REDIS_URL=redis://"+n.redis, "PYTHONPATH="+packages, "PYTHONDONTWRITEBYTECODE=1")
	var complains bytes.Buffer
	cmd.Stderr = &complains
	out, err := cmd.StdoutPipe()
	must(s.t, err, cmd.Start())
	ended := make(chan struct{})
	go func() { // ends with the process
		defer close(ended)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			s.began(worker, lines.Text())
		}
		if err := cmd.Wait(); err != nil {
			s.t.Errorf("%s ends with %v; it says\n%s", worker, err, &complains)
		}
	}()
	s.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	return func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(limit):
			s.t.Errorf("%s does not end in %v", worker, limit)
		}
	}
}

// folder has the workers that users copy, and what Node finds beside them. Their leases outlast the
// time in which the owner's own address does not answer.
func folder(t *testing.T) string {
	t.Helper()
	redis, err := exec.Command("node", "-p", `require("path").dirname(require.resolve("redis/package.json"))`).Output()
	if err != nil {
		t.Skip("Node, or its module redis, is not installed: npm install redis in a folder whose node_modules is NODE_PATH")
	}
	dir := t.TempDir()
	modules := filepath.Join(dir, "node_modules")
	for name, lease := range map[string][2]string{"worker.py": {"30.0", "60.0"}, "worker.mjs": {"30_000", "60_000"}} {
		text, err := os.ReadFile("../redis/testdata/" + name)
		must(t, err)
		longer := strings.Replace(string(text), lease[0], lease[1], 1)
		if longer == string(text) {
			t.Fatalf("%s has no lease of %s", name, lease[0])
		}
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(longer), 0o600))
	}
	must(t, os.CopyFS(filepath.Join(modules, "holdfast-queue"), os.DirFS("../../netproto/client/node")),
		os.Symlink(strings.TrimSpace(string(redis)), filepath.Join(modules, "redis")))
	return dir
}

// benchmark has redis-benchmark push through a node, again and again: it ends with its connection.
// A run that ended well has pushed all, and another one at most that.
type benchmark struct {
	stop  context.CancelFunc
	ended chan struct{} // closed when it has ended
	good  []bool        // of each run: whether it ended well
	runs  atomic.Int64  // that ended well
}

const requests = 200 // of one run

func startBenchmark(t *testing.T, n *node) *benchmark {
	ctx, stop := context.WithCancel(t.Context())
	b := &benchmark{stop: stop, ended: make(chan struct{})}
	host, port, _ := net.SplitHostPort(n.redis)
	go func() { // ends with stop, or the test
		defer close(b.ended)
		for ctx.Err() == nil {
			cmd := exec.CommandContext(ctx, "redis-benchmark", "-h", host, "-p", port, "-n", strconv.Itoa(requests), "-c", "4",
				"-r", "1000000", "-q", "RPUSH", fmt.Sprint("run", len(b.good)), "__rand_int__")
			if b.good = append(b.good, cmd.Run() == nil); b.good[len(b.good)-1] {
				b.runs.Add(1)
			} else {
				time.Sleep(20 * time.Millisecond) // a node may refuse at once
			}
		}
	}()
	return b
}

// judge ends the runs, and counts what each has pushed.
func (b *benchmark) judge(t *testing.T, look *client.Client) {
	t.Helper()
	b.stop()
	<-b.ended
	for run, good := range b.good {
		have, err := look.Redis().LLen(t.Context(), fmt.Sprint("run", run)).Result()
		if err != nil || have > requests || good && have != requests {
			t.Errorf("run %d of redis-benchmark pushed %d of %d packets, %v; it ended well: %v", run, have, requests, err, good)
		}
	}
}

// Workers at the two nodes that follow go on while the owner is gone, and those at its own address
// when it is back. Each packet is begun with once.
func TestProgramsOfAllLanguagesGoOnWhenTheOwnerIsKilled(t *testing.T) {
	const python = "/usr/bin/python3"
	if exec.Command(python, "-c", "import redis").Run() != nil || exec.Command("redis-benchmark", "--version").Run() != nil {
		t.Skip("needs Debian's Python, and redis-benchmark: apt install python3-redis redis-tools")
	}
	dir := folder(t)
	inPython, inNode := filepath.Join(dir, "worker.py"), filepath.Join(dir, "worker.mjs")
	t.Parallel()
	c := onLoopback(t, build(t))
	owner := c.owner()
	follow := c.others(owner)
	pool := client.New(&redis.Options{Addr: strings.Join([]string{owner.redis, follow[0].redis, follow[1].redis}, ",")})
	defer pool.Close()
	s := &shift{t: t, done: make(map[string]int), by: make(map[string]string)}
	ends := []func(){
		s.program("Python", follow[0], python, inPython), s.program("Python at the owner", owner, python, inPython),
		s.program("Node", follow[1], "node", inNode), s.program("Node at the owner", owner, "node", inNode),
	}
	var going sync.WaitGroup
	t.Cleanup(going.Wait)
	going.Go(func() { // ends with Shutdown
		if err := pool.Consume(t.Context(), "jobs", func(_ context.Context, p *client.Packet) error {
			s.began("Go", string(p.Payload))
			return nil
		}); err != nil {
			t.Error(err)
		}
	})
	ctx, stop := context.WithCancel(t.Context())
	pushes := make(chan int, 1)
	go func() { // ends with stop
		for pushed := 0; t.Context().Err() == nil; {
			id := strconv.Itoa(pushed)
			if _, err := pool.Push(t.Context(), "jobs", []byte(id), client.Unique(id), client.Window(time.Hour)); err != nil {
				time.Sleep(20 * time.Millisecond) // nodes without an owner may refuse at once
				continue                          // it may have been carried out
			}
			if pushed++; ctx.Err() != nil {
				pushes <- pushed
				return
			}
		}
	}()
	bench := startBenchmark(t, follow[0])

	atFollowers, all := []string{"Go", "Python", "Node"}, []string{"Go", "Python", "Node", "Python at the owner", "Node at the owner"}
	s.goOn("all work", all...)
	s.await("redis-benchmark ends well", func() bool { return bench.runs.Load() > 0 })
	c.kill(owner)
	killed, runs := time.Now(), bench.runs.Load()
	s.goOn("those at the others go on", atFollowers...)
	t.Logf("all at the others had gone on %v after the kill", time.Since(killed).Round(10*time.Millisecond))
	s.await("redis-benchmark ends well again", func() bool { return bench.runs.Load() > runs+1 })
	c.start(owner)
	c.settled(c.nodes...)
	s.goOn("those at the owner go on", all...)
	stop()
	pushed := <-pushes
	s.await("all that was pushed is begun with", func() bool { return len(s.by) >= pushed })
	for _, end := range ends {
		end()
	}
	must(t, pool.Shutdown(t.Context()))
	going.Wait()
	bench.judge(t, pool)
	if left, err := pool.Len(t.Context(), "jobs"); left != 0 || err != nil || len(s.by) != pushed {
		t.Errorf("%d packets were pushed, %d begun with and %d are left, %v", pushed, len(s.by), left, err)
	}
	t.Logf("%d packets, each by one of %v; %d of %d runs of redis-benchmark ended well", pushed, s.done, bench.runs.Load(), len(bench.good))
}
