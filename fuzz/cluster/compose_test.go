package cluster

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

var (
	composed = flag.Duration("composed", 0, "how long faults are composed")
	seed     = flag.Uint64("seed", 0, "of the faults that are composed; 0: any")
	clockOff = flag.Duration("clock-off", 8*time.Second, "how far a clock is off at most where faults are composed: claims that a client holds for sure must outlast it")
)

// Faults of any kinds at once, in any order, while other nodes are down. At most one folder is lost
// between two times at which all nodes have a vote and follow.
func TestComposedFaultsLoseNothing(t *testing.T) {
	if *composed == 0 {
		t.Skip("skipped: -composed says how long")
	}
	on := onLoopback
	if machines() == nil {
		on = func(t *testing.T, binary string) *cell { return onMachines(t, binary, 1024) }
	}
	m := &mix{cell: on(t, build(t, clock(t)...))}
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	t.Logf("-seed %d", *seed)
	m.rand = rand.New(rand.NewPCG(*seed, 7))
	m.load = startLoad(m.cell)
	defer m.load.cancel()
	for begun := time.Now(); time.Since(begun) < *composed && len(m.judge.found()) == 0; {
		m.round()
	}
	m.load.stop()
	m.judgeEnd(m.load)
	for _, found := range m.judge.found() {
		t.Error(found)
	}
}

// mix is faults that are composed. What is below load is of one round.
type mix struct {
	*cell
	rand   *rand.Rand
	load   *load
	lost   bool           // a folder is
	unsure *node          // it may be removed
	cut    map[*node]bool // whose link is
	others []*exec.Cmd    // machines that were started under the name of a node
	did    []string
}

func (m *mix) pause(most time.Duration) time.Duration {
	d := time.Duration(m.rand.Int64N(int64(most)))
	time.Sleep(d)
	return d
}

func (m *mix) any() *node { return m.nodes[m.rand.IntN(len(m.nodes))] }

// round makes some faults, ends them, and waits until clients are served as before.
func (m *mix) round() {
	acks, since := m.load.acks.Load(), time.Now()
	m.lost, m.unsure, m.cut, m.others, m.did = false, nil, make(map[*node]bool), nil, nil
	for range 4 + m.rand.IntN(12) {
		if what := m.fault(m.any()); what != "" {
			m.did = append(m.did, fmt.Sprintf("%.1f %s", time.Since(since).Seconds(), what))
		}
		m.pause(2500 * time.Millisecond)
	}
	for n, is := range m.cut {
		if is {
			m.link(n, "up")
		}
	}
	for _, i := range m.rand.Perm(len(m.nodes)) {
		if n := m.nodes[i]; !n.runs.Load() {
			m.launch(n)
			m.pause(time.Second)
		}
	}
	m.settleRemoval()
	for _, other := range m.others { // some waited all the time
		_ = other.Process.Kill()
		_ = other.Wait()
	}
	if m.settled(m.nodes...); len(m.judge.found()) == 0 && !m.load.serves(300) {
		m.judge.find("clients are not answered")
	}
	m.t.Logf("%.1f s, %d answered: %s", time.Since(since).Seconds(), m.load.acks.Load()-acks, strings.Join(m.did, "; "))
}

// launch starts a node, whose clock is sometimes off.
func (m *mix) launch(n *node) {
	n.env = nil
	if m.rand.IntN(4) == 0 {
		n.env = []string{"CLOCK_OFF=" + time.Duration(m.rand.Int64N(int64(2**clockOff))-int64(*clockOff)).String()}
	}
	m.start(n)
	n.asked.Store(n == m.unsure)
}

// fault makes one with a node, and says which; "" if there is nothing to do.
func (m *mix) fault(n *node) string {
	switch k, runs := m.rand.IntN(14), n.runs.Load(); {
	case k <= 2 && runs:
		m.kill(n)
		return "kill " + n.name
	case k <= 6 && !runs:
		m.launch(n)
		return fmt.Sprintf("start %s %v", n.name, n.env)
	case k == 7 && runs:
		_ = n.cmd.Process.Signal(syscall.SIGSTOP)
		d := m.pause(5 * time.Second)
		_ = n.cmd.Process.Signal(syscall.SIGCONT)
		return fmt.Sprintf("stop %s for %v", n.name, d.Round(time.Millisecond))
	case k == 8 && !runs && !m.lost:
		must(m.t, os.RemoveAll(n.folder))
		m.lost = true
		return "wipe " + n.name
	case k == 9 && runs:
		m.end(syscall.SIGTERM, n)
		return "term " + n.name
	case k == 10:
		by := m.any()
		out, err := exec.Command("timeout", "10", m.binary, "cluster", "hand-over", "--admin", by.admin, n.name).CombinedOutput()
		return fmt.Sprintf("hand-over to %s by %s: %v %.90q", n.name, by.name, err, out)
	case k == 11 && !m.lost:
		return m.remove(n, m.any())
	case k == 12 && n.space != "":
		m.cut[n] = !m.cut[n]
		m.link(n, map[bool]string{true: "down", false: "up"}[m.cut[n]])
		return fmt.Sprintf("link of %s cut: %v", n.name, m.cut[n])
	case k == 13:
		return m.impostor(n)
	}
	return ""
}

// remove takes a node out of the cell. Where the command fails it may be removed all the same.
func (m *mix) remove(n, by *node) string {
	if by == n {
		return ""
	}
	n.asked.Store(true)
	m.lost = true
	out, err := exec.Command("timeout", "27", m.binary, "cluster", "remove", "--yes", "--admin", by.admin, n.name).CombinedOutput()
	if err != nil {
		m.unsure = n
	} else {
		if !await(10*time.Second, func() bool { return !n.runs.Load() }) {
			m.kill(n)
		}
		must(m.t, os.RemoveAll(n.folder))
	}
	return fmt.Sprintf("remove %s by %s: %v %.90q", n.name, by.name, err, out)
}

// settleRemoval looks whether a node was removed that may be: it says so, and ends.
func (m *mix) settleRemoval() {
	n := m.unsure
	if n == nil {
		return
	}
	await(20*time.Second, func() bool { return !n.runs.Load() })
	if !n.runs.Load() {
		if text, _ := os.ReadFile(n.log()); strings.Contains(string(text[max(0, len(text)-400):]), "has removed this node") {
			m.did = append(m.did, "it was removed: "+n.name)
			must(m.t, os.RemoveAll(n.folder))
		}
		m.start(n)
	}
	n.asked.Store(false)
}

// impostor starts another machine under the name of a node, which runs or not: it has an empty
// folder, and is not where others dial. It waits for the cell, and must change nothing.
func (m *mix) impostor(n *node) string {
	folder := filepath.Join(m.t.TempDir(), "other")
	argv := []string{m.binary}
	for _, arg := range n.args {
		switch arg {
		case n.redis, n.admin, n.sentinel:
			arg = "127.0.0.1:0"
		case n.folder:
			arg = folder
		}
		argv = append(argv, arg)
	}
	argv = append(argv, "--cluster-listen", "127.0.0.1")
	if n.space != "" {
		argv = append([]string{"nsenter", "--net=/run/netns/" + n.space}, argv...)
	} else { // nodes of other tests may bind there
		argv[len(argv)-1] = fmt.Sprintf("127.255.%d.%d", os.Getpid()%256, len(m.others)+1)
	}
	other := exec.Command(argv[0], argv[1:]...)
	must(m.t, other.Start())
	m.others = append(m.others, other)
	return "another machine starts as " + n.name
}
