package cluster

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-queue/holdfast/fuzz/planted"
)

var (
	cycles = flag.Int("cycles", 0, "how often each fault is made; 0: as often as in the table")
	only   = flag.String("fault", "", "make only faults whose name has this in it")
)

// silence drops what the clients log of nodes that are away.
type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

func TestMain(m *testing.M) {
	redis.SetLogger(silence{})
	code := m.Run()
	if unchanged != "" {
		_ = os.RemoveAll(filepath.Dir(unchanged))
	}
	os.Exit(code)
}

func TestACellOnLoopbackLosesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("its nodes are processes of their own")
	}
	t.Parallel()
	var changes []planted.Bug
	if *cycles > 0 { // all of the program is built for it
		changes = clock()
	}
	c := onLoopback(t, build(t, changes...))
	c.run(faults())
}

// run makes faults under a load, and judges in the end.
func (c *cell) run(faults []fault) {
	l := startLoad(c)
	defer l.cancel()
	for _, f := range faults {
		runs := f.runs
		if *cycles > 0 {
			runs = *cycles
		}
		if !strings.Contains(f.name, *only) {
			runs = 0
		}
		for i := 0; i < runs && len(c.judge.found()) == 0; i++ {
			c.make(f, l, i+1)
		}
	}
	l.stop()
	c.judgeEnd(l)
	for _, text := range c.judge.found() {
		c.t.Error(text)
	}
}

// makeUntilFound makes one fault until something is found, which the end may be needed for.
func (c *cell) makeUntilFound(name string, most int) {
	l := startLoad(c)
	defer l.cancel()
	for _, f := range faults() {
		for i := 0; i < most && len(c.judge.found()) == 0 && strings.Contains(f.name, name); i++ {
			c.make(f, l, i+1)
		}
	}
	l.stop()
	if len(c.judge.found()) == 0 {
		c.judgeEnd(l)
	}
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
	same := 0
	if !await(limit, func() bool {
		first, _ := c.about(c.nodes[0])
		same++
		for _, n := range c.nodes {
			if a, err := c.about(n); err != nil || a.Batch != first.Batch {
				same = 0
			}
		}
		return same == 25
	}) {
		c.judge.find("the nodes do not get to one batch in %v", limit)
	}
	c.kill(c.nodes...)
	var dumps [][]byte
	for _, n := range c.nodes {
		out, err := exec.Command(c.binary, "dump", "--quiet", n.folder).Output()
		if err != nil {
			c.judge.find("node %s cannot be dumped: %v", n.name, err)
		}
		if verify, err := exec.Command(c.binary, "verify", "--quiet", n.folder).CombinedOutput(); err != nil {
			c.judge.find("node %s is not sound: %v\n%s", n.name, err, verify)
		}
		dumps = append(dumps, out)
	}
	for i, d := range dumps[1:] {
		if !bytes.Equal(dumps[0], d) {
			c.judge.find("node %s holds another state than %s:\n%s", c.nodes[i+1].name, c.nodes[0].name, firstDifference(dumps[0], d))
		}
	}
	left, count := readDump(c.t, dumps[0])
	if low, most := l.count.low.Load(), l.count.sent.Load(); count < low || count > most {
		c.judge.find("the counter is %d in the end, it was %d, and %d were sent", count, low, most)
	}
	for _, lane := range l.pops {
		for _, p := range left[lane.queue] {
			lane.popped = append(lane.popped, pop{p, lane.unknown})
		}
		c.judge.popped(lane.queue, lane.pushes[:], lane.popped)
	}
	for _, lane := range l.claims {
		for len(lane.acks) < len(lane.pushes) {
			lane.acks = append(lane.acks, unsent)
		}
		c.judge.claimed(lane.queue, lane.pushes, lane.acks, left[lane.queue])
	}
	l.errs.Range(func(text, _ any) bool { c.t.Logf("refused: %v", text); return true })
}

// firstDifference returns the first lines that differ.
func firstDifference(a, b []byte) string {
	x, y := strings.Split(string(a), "\n"), strings.Split(string(b), "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return x[i] + "\n" + y[i]
		}
	}
	return fmt.Sprintf("%d lines, and %d", len(x), len(y))
}

// readDump returns the packets of each queue, in the order of delivery, and the counter.
func readDump(t *testing.T, dump []byte) (left map[string][]packet, count int64) {
	t.Helper()
	left = make(map[string][]packet)
	lines := bufio.NewScanner(bytes.NewReader(dump))
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var r struct{ Type, Queue, Payload, Name, Value string }
		if json.Unmarshal(lines.Bytes(), &r) != nil {
			continue // it has numbers where others have text
		}
		switch r.Type {
		case "packet":
			p, err := parsePacket(r.Payload)
			if err != nil {
				t.Fatalf("a packet has %q", r.Payload)
			}
			left[r.Queue] = append(left[r.Queue], p)
		case "string":
			if _, err := fmt.Sscan(r.Value, &count); err != nil {
				t.Fatal(err)
			}
		}
	}
	return left, count
}
