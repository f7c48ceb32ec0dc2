package cluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// stock is how many packets lie in a queue that a client of Sentinel pushes into and pops from.
const stock = 20

// finder is a client that finds the owner by Sentinel, and its queue. It says what it does before
// and behind each push and pop. The test is the second producer.
type finder struct {
	*lane
	judge *judge
	mu    sync.Mutex // guards the lane
}

// hear takes what the client says. What it does is not answered until it says so.
func (f *finder) hear(line string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	word, rest, _ := strings.Cut(line, " ")
	p, err := parsePacket(rest)
	switch {
	case word == "push" && err == nil:
		f.pushes[p.producer] = append(f.pushes[p.producer], maybe)
	case word == "pushed" && err == nil:
		f.pushes[p.producer][p.number] = answered
	case line == "pop":
		f.unknown++
	case word == "popped" && err == nil:
		f.unknown--
		f.popped = append(f.popped, pop{p, f.unknown})
	default:
		f.judge.find("%s says %q", f.queue, line)
	}
}

// awaits waits until a packet came out.
func (f *finder) awaits(p packet) {
	if !await(limit, func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return slices.ContainsFunc(f.popped, func(o pop) bool { return o.packet == p })
	}) {
		f.judge.find("%s: packet %v does not come out in %v", f.queue, p, limit)
	}
}

// put has the test push packets into the queue until one is answered.
func (f *finder) put(by *redis.Client) (p packet) {
	await(limit, func() bool {
		p = packet{1, len(f.pushes[1])}
		f.hear(fmt.Sprint("push ", p))
		return by.LPush(context.Background(), f.queue, p.String()).Err() == nil
	})
	f.hear(fmt.Sprint("pushed ", p))
	return p
}

// program has a client of another language push and pop, until end. lacks says what is not
// installed.
func (f *finder) program(t *testing.T, nodes string) (end func(), lacks string) {
	name := strings.Split(f.queue, "/")
	cmd := exec.Command("/usr/bin/python3", "../doors/testdata/sentinel.py")
	cmd.Env = append(os.Environ(), "SENTINEL="+nodes, "QUEUE="+f.queue, "ROUNDS=1000000000")
	if name[0] != "redis-py" {
		module, err := exec.Command("node", "-p", `require("path").dirname(require.resolve(process.argv[1] + "/package.json"))`, name[0]).Output()
		if err != nil {
			return nil, "Node, or the module, is not installed: npm install in a folder whose node_modules is NODE_PATH"
		}
		cmd.Args = []string{"node", "../doors/testdata/sentinel.cjs"}
		cmd.Path, _ = exec.LookPath("node")
		cmd.Env = append(cmd.Env, "MODULE="+strings.TrimSpace(string(module)), "RESP="+name[len(name)-1])
	} else if exec.Command(cmd.Path, "-c", "import redis").Run() != nil {
		return nil, "Debian's Python has no redis: apt install python3-redis"
	}
	cmd.Stderr = t.Output() // what is not answered
	out, err := cmd.StdoutPipe()
	must(t, err, cmd.Start())
	ended := make(chan struct{})
	go func() { // ends with the process
		defer close(ended)
		for lines := bufio.NewReader(out); ; {
			line, err := lines.ReadString('\n')
			if err != nil {
				return // it may have been killed in the midst of a line
			}
			f.hear(strings.TrimSuffix(line, "\n"))
		}
	}()
	return func() {
		_ = cmd.Process.Kill()
		<-ended
		_ = cmd.Wait() // it was killed
	}, ""
}

// inGo does what the programs do, by go-redis.
func (f *finder) inGo(_ *testing.T, nodes string) (end func(), lacks string) {
	c := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "main", SentinelAddrs: strings.Split(nodes, ","), MaxRetries: -1})
	ctx, stop := context.WithCancel(context.Background())
	var going sync.WaitGroup
	going.Go(func() { // ends with ctx
		for p := (packet{}); ctx.Err() == nil; p.number++ {
			f.hear(fmt.Sprint("push ", p))
			if c.LPush(ctx, f.queue, p.String()).Err() == nil {
				f.hear(fmt.Sprint("pushed ", p))
				f.hear("pop")
				if text, err := c.RPop(ctx, f.queue).Result(); err == nil {
					f.hear("popped " + text)
					continue
				}
			}
			time.Sleep(20 * time.Millisecond) // it may be refused at once
		}
	})
	return func() {
		stop()
		going.Wait()
		_ = c.Close()
	}, ""
}

// finish ends with the client: what it left is popped, and all of it judged.
func (f *finder) finish(t *testing.T, by *redis.Client) {
	came := len(f.popped)
	for {
		text, err := by.RPop(t.Context(), f.queue).Result()
		if errors.Is(err, redis.Nil) {
			break
		}
		must(t, err)
		f.hear("pop")
		f.hear("popped " + text)
	}
	f.judge.popped(f.lane)
	t.Logf("%s: %d of %d packets came out", f.queue, came, len(f.pushes[0])+len(f.pushes[1]))
}

// bySentinel begins with a client that finds the owner by itself.
func bySentinel(name string, by *redis.Client) beginning {
	return func(t *testing.T, c *cell) func(*testing.T, *redis.Client) {
		f := &finder{lane: &lane{queue: name}, judge: c.judge}
		for range stock {
			f.put(by)
		}
		var nodes []string
		for _, n := range c.nodes {
			nodes = append(nodes, n.sentinel)
		}
		start := f.program
		if name == "go-redis" {
			start = f.inGo
		}
		end, lacks := start(t, strings.Join(nodes, ","))
		if lacks != "" {
			return func(t *testing.T, _ *redis.Client) { t.Skip(lacks) }
		}
		t.Cleanup(end)
		f.awaits(packet{0, 0})
		return func(t *testing.T, by *redis.Client) {
			f.awaits(f.put(by))
			end()
			f.finish(t, by)
		}
	}
}
