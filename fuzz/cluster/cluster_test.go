package cluster

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-queue/holdfast/fuzz/planted"
	"github.com/holdfast-queue/holdfast/recovery/dump"
)

var (
	cycles = flag.Int("cycles", 0, "how often each fault is made; 0: some of them, for two minutes")
	only   = flag.String("fault", "", "make only faults whose name has this in it")
)

// silence drops what the clients log of nodes that are away.
type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

func TestMain(m *testing.M) {
	redis.SetLogger(silence{})
	var err error
	if programs, err = os.MkdirTemp("", "cluster-"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(programs)
	os.Exit(code)
}

// Without -cycles a cell of machines has these faults, too, where it can be had.
func TestACellOnLoopbackLosesNothing(t *testing.T) {
	t.Parallel()
	all, changes := faults(), []planted.Bug(nil)
	if *cycles > 0 { // all of the program is built for it
		all, changes = append(all, longFaults()...), clock(t)
	} else if err := machines(); err == nil {
		t.Skip("skipped: left to TestACellOfMachinesLosesNothing")
	}
	for _, found := range onLoopback(t, build(t, changes...)).run(all, *only, *cycles) {
		t.Error(found)
	}
}

func TestACellOfMachinesLosesNothing(t *testing.T) {
	t.Parallel()
	if err := machines(); err != nil {
		t.Skipf("needs root, iproute2, e2fsprogs and util-linux: %v", err)
	}
	all := linksAndDisks()
	if *cycles == 0 {
		all = append(all, faults()...)
	}
	for _, found := range onMachines(t, build(t), 1024).run(all, *only, *cycles) {
		t.Error(found)
	}
}

// run makes those faults that have something in their names under a load, in any order: each so
// many times, or with 0 as many as two minutes last for. It ends when something is found, judges,
// and returns what was.
func (c *cell) run(faults []fault, name string, times int) []string {
	faults = slices.DeleteFunc(faults, func(f fault) bool { return !strings.Contains(f.name, name) })
	if len(faults) == 0 {
		c.t.Fatalf("no fault of this test has %q in its name", name)
	}
	l := startLoad(c)
	defer l.cancel()
	rand.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
	begun := time.Now()
	for i := 0; i < max(times, 1)*len(faults) && len(c.judge.found()) == 0; i++ {
		if times == 0 && time.Since(begun) > 2*time.Minute {
			break
		}
		c.make(faults[i%len(faults)], l, i/len(faults)+1)
	}
	l.stop()
	c.judgeEnd(l)
	return c.judge.found()
}

// make makes a fault, and waits until clients are served as before.
func (c *cell) make(f fault, l *load, number int) {
	l.silent.Store(0)
	begun, acks := time.Now(), l.acks.Load()
	f.do(c, l)
	if c.settled(c.nodes...); len(c.judge.found()) == 0 && !l.serves(500) {
		c.judge.find("%s: clients are not answered", f.name)
	}
	c.t.Logf("%s %d: silent for %.2f s of %.1f, %d answered", f.name, number,
		time.Duration(l.silent.Load()).Seconds(), time.Since(begun).Seconds(), l.acks.Load()-acks)
}

// judgeEnd stops all nodes at one batch, and compares what they have with what clients were told.
func (c *cell) judgeEnd(l *load) {
	since := time.Now()
	if !await(limit, func() bool {
		first, _ := c.about(c.nodes[0])
		for _, n := range c.nodes {
			if a, err := c.about(n); err != nil || a.Batch != first.Batch {
				since = time.Now()
			}
		}
		return time.Since(since) > time.Second
	}) {
		c.judge.find("the nodes do not get to one batch in %v", limit)
	}
	c.kill(c.nodes...)
	state := func(n *node) string { return n.folder + ".dump" }
	for _, n := range c.nodes {
		for _, command := range [][]string{
			{c.binary, "dump", "--quiet", "--output", state(n), n.folder},
			{c.binary, "verify", "--quiet", n.folder},
			{"diff", "--text", state(c.nodes[0]), state(n)},
		} {
			if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
				c.judge.find("node %s: %v: %v\n%.3000s", n.name, command, err, out)
			}
		}
	}
	left, count, err := readDump(state(c.nodes[0]))
	if err != nil {
		c.judge.find("what is left: %v", err)
	}
	if low, most := l.low.Load(), l.sent.Load(); count < low || count > most {
		c.judge.find("the counter is %d in the end, it was %d, and %d were sent", count, low, most)
	}
	for _, lane := range l.pops {
		for _, p := range left[lane.queue] {
			lane.popped = append(lane.popped, pop{p, lane.unknown})
		}
		c.judge.popped(lane)
	}
	for _, lane := range l.claims {
		c.judge.claimed(lane, left[lane.queue])
	}
	l.errs.Range(func(text, _ any) bool { c.t.Logf("refused: %v", text); return true })
}

// readDump returns the packets of each queue, in the order of delivery, and the counter.
func readDump(name string) (left map[string][]packet, count int64, err error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, 0, err
	}
	defer file.Close()
	left = make(map[string][]packet)
	_, err = dump.Read(context.Background(), file, func(r *dump.Record) (err error) {
		switch r.Type {
		case "packet":
			var p packet
			p, err = parsePacket(string(r.Payload))
			left[string(r.Queue)] = append(left[string(r.Queue)], p)
		case "string":
			_, err = fmt.Sscan(string(r.Value), &count)
		}
		return err
	}, nil)
	return left, count, err
}
