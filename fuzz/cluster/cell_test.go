package cluster

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/holdfast-queue/holdfast/cmd/cluster/peer"
	"github.com/holdfast-queue/holdfast/cmd/daemon"
	"github.com/holdfast-queue/holdfast/fuzz/planted"
)

// limit bounds every wait. It is far longer than any should take.
const limit = 60 * time.Second

// await waits until something is so, for some time at most, and says whether it is.
func await(most time.Duration, is func() bool) bool {
	for end := time.Now().Add(most); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// must ends a test by errors that are none of a cell.
func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// execute runs a command, which must work.
func execute(t *testing.T, command ...string) {
	t.Helper()
	if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", command, err, out)
	}
}

// cell is nodes, three mostly, whose processes come and go. One goroutine handles it.
type cell struct {
	t      *testing.T
	binary string
	nodes  []*node
	judge  *judge
	ask    *peer.Client // of nodes
}

// node is one of them. It has one folder and the same addresses over all its starts.
type node struct {
	name, folder string
	logs         string // the folder of its log
	host         string
	peers, own   string   // addresses of its etcd, and of the node's own port
	redis, admin string   // addresses for clients, and for operators
	sentinel     string   // for clients of Redis Sentinel
	space, disk  string   // the network namespace that it is in, and its link; the image that its folder is on; "": this host's
	args         []string // of each start
	env          []string // of the next start, beside that of this process

	cmd   *exec.Cmd
	runs  atomic.Bool
	asked atomic.Bool // whether an end of the process is no finding
}

func newNode(name, host, folder string) *node {
	return &node{name: name, folder: filepath.Join(folder, name), logs: folder, host: host, peers: host + ":17380", own: host + ":17381", redis: host + ":17382", admin: host + ":17383", sentinel: host + ":17384"}
}

// programs is the folder of the programs that were built, which tests share. TestMain deletes it.
var (
	programs string
	building sync.Mutex // one is linked at a time
)

// build compiles the program, with some changes, and a door to etcd.
func build(t *testing.T, changes ...planted.Bug) string {
	t.Helper()
	building.Lock()
	defer building.Unlock()
	changes = append(changes, door(), keep())
	name := filepath.Join(programs, fmt.Sprintf("holdfast-%x", sha256.Sum256([]byte(fmt.Sprint(changes)))))
	if _, err := os.Stat(name); err != nil {
		must(t, planted.Depend("./cmd/holdfast"))
		overlay, err := planted.Overlay(t.TempDir(), changes)
		must(t, err)
		execute(t, "env", "CGO_ENABLED=0", "go", "build", "-ldflags", "-s -w", "-o", name, "-overlay", overlay, "github.com/holdfast-queue/holdfast/cmd/holdfast")
	}
	return name
}

// onLoopback founds a cell of three nodes on loopback and starts them.
func onLoopback(t *testing.T, binary string) *cell {
	t.Helper()
	return named(t, binary, "a", "b", "c")
}

// hosts counts the addresses that nodes on loopback got: each has one of its own.
var hosts atomic.Int32

// named does the same for a cell whose nodes have some names.
func named(t *testing.T, binary string, names ...string) *cell {
	t.Helper()
	dir, err := os.MkdirTemp("", "cell-") // a socket's name may not be long
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	var nodes []*node
	for _, name := range names {
		host := fmt.Sprintf("127.%d.%d.%d", 1+os.Getpid()>>8%255, os.Getpid()%256, hosts.Add(1))
		nodes = append(nodes, newNode(name, host, dir))
	}
	return found(t, binary, nodes, "")
}

// list is the nodes as flags have them.
func list(nodes []*node) string {
	var all []string
	for _, n := range nodes {
		all = append(all, n.name+"="+n.peers)
	}
	return strings.Join(all, ",")
}

// found founds a cell with the first node and starts all. The folder has the certificates of each
// node; "": they speak plain.
func found(t *testing.T, binary string, nodes []*node, certificates string) *cell {
	t.Helper()
	c := &cell{t: t, binary: binary, nodes: nodes, judge: newJudge(t)}
	asks := peer.Self{Node: nodes[0].name, Nodes: map[string]string{nodes[0].name: nodes[0].peers}}
	if certificates != "" {
		file := func(name string) string { return filepath.Join(certificates, asks.Node, name) }
		asks.TLS = daemon.TLSFiles{Cert: file("node.pem"), Key: file("node-key.pem"), ClientCA: file("ca.pem")}
	}
	for _, n := range nodes {
		n.args = []string{"serve", "--data", n.folder, "--node", n.name, "--nodes", list(nodes),
			"--redis", n.redis, "--sentinel", n.sentinel, "--insecure", "--pinpriq", "off", "--barbershop", "off", "--admin", n.admin, "--log-level", "debug"}
		if certificates != "" {
			n.args = append(n.args, "--cluster-tls", filepath.Join(certificates, n.name))
		}
	}
	encryption, err := asks.Encryption(t.Context(), slog.New(slog.DiscardHandler))
	must(t, err)
	c.ask = peer.NewClient(encryption)
	execute(t, binary, "cluster", "found", "--node", nodes[0].name, nodes[0].folder)
	t.Cleanup(func() {
		for _, n := range c.nodes {
			if n.cmd != nil {
				c.kill(n)
			}
		}
		if t.Failed() {
			c.tellLogs()
		}
	})
	for i, n := range nodes {
		c.start(n)
		if c.settled(nodes[:i+1]...); len(c.judge.found()) > 0 {
			t.Fatal("the cell does not start")
		}
	}
	return c
}

func (n *node) log() string { return filepath.Join(n.logs, n.name+".log") }

// tellLogs keeps the logs of the nodes.
func (c *cell) tellLogs() {
	keep, err := os.MkdirTemp("", "cluster-logs-")
	for _, n := range c.nodes {
		err = errors.Join(err, exec.Command("cp", n.log(), keep).Run())
	}
	c.t.Logf("what the nodes said is in %s (%v)", keep, err)
}

// start starts a node that does not run.
func (c *cell) start(n *node) {
	c.t.Helper()
	out, err := os.OpenFile(n.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	must(c.t, err)
	defer out.Close()
	argv := append([]string{c.binary}, n.args...)
	if n.space != "" {
		argv = append([]string{"nsenter", "--net=/run/netns/" + n.space}, argv...)
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.Env = out, out, append(os.Environ(), n.env...)
	if rand.IntN(2) == 0 {
		cmd.Env = append(cmd.Env, "KEEP=nothing")
	}
	must(c.t, cmd.Start())
	n.cmd = cmd
	n.runs.Store(true)
	n.asked.Store(false)
	go func() { // ends with the process
		if err := cmd.Wait(); !n.asked.Load() {
			c.judge.find("node %s ends by itself: %v", n.name, err)
		}
		n.runs.Store(false)
	}()
}

// end sends nodes a signal that ends them, and waits for their ends.
func (c *cell) end(s syscall.Signal, nodes ...*node) {
	for _, n := range nodes {
		n.asked.Store(true)
		_ = n.cmd.Process.Signal(s)               // it may have ended
		_ = n.cmd.Process.Signal(syscall.SIGCONT) // it may be stopped
	}
	for _, n := range nodes {
		if !await(limit, func() bool { return !n.runs.Load() }) {
			c.judge.find("node %s does not end in %v after %v", n.name, limit, s)
			_ = n.cmd.Process.Kill()
			await(limit, func() bool { return !n.runs.Load() })
		}
	}
}

func (c *cell) kill(nodes ...*node) { c.end(syscall.SIGKILL, nodes...) }

// about is what a node says of itself.
func (c *cell) about(n *node) (peer.Node, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	return c.ask.Node(ctx, n.own)
}

// which waits for a node that says something of itself, and returns it; any one if none does.
func (c *cell) which(what string, is func(n *node) bool) *node {
	at := -1
	if !await(limit, func() bool { at = slices.IndexFunc(c.nodes, is); return at >= 0 }) {
		c.judge.find("no node %s in %v", what, limit)
		return one(c.nodes)
	}
	return c.nodes[at]
}

func (c *cell) owner() *node {
	return c.which("owns", func(n *node) bool {
		a, err := c.about(n)
		return err == nil && a.Role == "owner"
	})
}

// others are the nodes but for one.
func (c *cell) others(than *node) []*node {
	return slices.DeleteFunc(slices.Clone(c.nodes), func(n *node) bool { return n == than })
}

// etcd asks the etcd of a node, by the socket in its folder.
func (n *node) etcd(ask func(ctx context.Context, c *clientv3.Client) error) error {
	at := "unix:" + filepath.Join(n.folder, "cell", "etcd", "client.sock")
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{at}, Logger: zap.NewNop()})
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return ask(ctx, c)
}

func (c *cell) leader() *node {
	return c.which("leads etcd", func(n *node) (leads bool) {
		_ = n.etcd(func(ctx context.Context, c *clientv3.Client) error {
			status, err := c.Status(ctx, c.Endpoints()[0])
			leads = err == nil && status.Leader == status.Header.MemberId
			return err
		})
		return leads
	})
}

// votes says whether some nodes are all that have a vote: with fewer, one that is gone may stop
// all.
func (c *cell) votes(nodes []*node) (all bool) {
	_ = nodes[0].etcd(func(ctx context.Context, c *clientv3.Client) error {
		members, err := c.MemberList(ctx)
		if err != nil {
			return err
		}
		waits := slices.ContainsFunc(members.Members, func(m *etcdserverpb.Member) bool { return m.IsLearner })
		all = len(members.Members) == len(nodes) && !waits
		return nil
	})
	return all
}

// settled waits until one of some nodes owns, the others follow it, and all have a vote.
func (c *cell) settled(nodes ...*node) {
	c.t.Helper()
	var said string
	if !await(limit, func() bool {
		said = ""
		owners, owner, follow := 0, "", make(map[string]int) // whom how many
		for _, n := range nodes {
			if !n.runs.Load() {
				c.start(n) // as what looks after a server does
			}
			a, err := c.about(n)
			said += fmt.Sprintf(" %s: %+v %v;", n.name, a, err)
			switch a.Role {
			case "owner":
				owners, owner = owners+1, n.name
			case "follower":
				follow[a.Owner]++
			}
		}
		return owners == 1 && follow[owner] == len(nodes)-1 && c.votes(nodes)
	}) {
		c.judge.find("the nodes do not settle in %v:%s", limit, said)
	}
}
