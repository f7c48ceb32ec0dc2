package cluster

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-queue/holdfast/cmd/cluster/peer"
	"github.com/holdfast-queue/holdfast/cmd/daemon"
	"github.com/holdfast-queue/holdfast/netproto/admin"
)

// patience bounds every wait. It is far longer than any should take.
const patience = 2 * time.Minute

// TestMain has more tests run beside each other than there are processors, unless -parallel says
// how many: nodes wait for each other most of the time.
func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", fmt.Sprint(2*runtime.GOMAXPROCS(0)))
	os.Exit(m.Run())
}

// machine is a node that runs in this process.
type machine struct {
	Config
	folder   string
	operator *admin.Client
	redis    *redis.Client
	log      io.Writer     // also has what the node logs, unless nil
	drain    time.Duration // a second unless given
	stop     context.CancelFunc
	ended    chan struct{} // closed when Run has returned
	err      error         // what it returned
}

// trio are three nodes that do not run, of which the first has founded a cell. Tests of it mostly
// wait, so others run meanwhile.
func trio(t *testing.T) (all []*machine) {
	t.Helper()
	t.Parallel()
	nodes := make(map[string]string)
	for _, name := range []string{"a", "b", "c"} {
		nodes[name] = freeAddress(t)
		m := &machine{Config: Config{Node: name, Nodes: nodes}, folder: filepath.Join(t.TempDir(), name)}
		m.operator = &admin.Client{Address: freeAddress(t), Timeout: patience}
		m.redis = redis.NewClient(&redis.Options{Addr: freeAddress(t), MaxRetries: -1})
		t.Cleanup(func() { _ = m.redis.Close() })
		all = append(all, m)
	}
	if err := Found(all[0].folder, all[0].Config, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	return all
}

// settled are three nodes that run and follow the first, which owns.
func settled(t *testing.T) []*machine {
	t.Helper()
	all := trio(t)
	launchAll(t, all)
	return all
}

// launchAll has a trio run, and waits until the others follow the first.
func launchAll(t *testing.T, all []*machine) {
	t.Helper()
	for i, m := range all {
		m.Election = 2 * time.Second // so that the first stays the owner on a busy machine
		m.launch(t)
		all[0].await(t, func(c *admin.Cluster) bool {
			for _, at := range c.Nodes {
				if !at.Voter || at.Role != follower && at.Role != owning {
					return false
				}
			}
			return c.Owner == "a" && len(c.Nodes) == i+1
		})
	}
}

// ports is where freeAddress looks next: below the ports that a system gives to those who dial.
var ports atomic.Int32

func init() { ports.Store(15_000 + 2*rand.Int32N(7_000)) }

// freeAddress is one of loopback that nobody listens at, nor at the next port. None is given twice.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 100 {
		address := fmt.Sprint("127.0.0.1:", ports.Add(2))
		next, _ := peer.NextPort(address)
		l, err := net.Listen("tcp", address)
		if err != nil {
			continue
		}
		_ = l.Close()
		if l, err = net.Listen("tcp", next); err == nil {
			_ = l.Close()
			return address
		}
	}
	t.Fatal("no free ports")
	return ""
}

// launch runs a node until it is stopped, or the test ends.
func (m *machine) launch(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	log := io.Writer(t.Output())
	if m.log != nil {
		log = io.MultiWriter(log, m.log)
	}
	d := daemon.Config{
		Data: m.folder, Redis: m.redis.Options().Addr, Admin: m.operator.Address, Drain: cmp.Or(m.drain, time.Second),
		Logger: slog.New(slog.NewTextHandler(log, nil)).With("on", m.Node),
	}
	ended := make(chan struct{})
	m.stop, m.ended = cancel, ended
	go func() { // ends with stop
		defer close(ended)
		m.err = Run(ctx, d, m.Config)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
}

// halt stops a node.
func (m *machine) halt(t *testing.T) {
	t.Helper()
	m.stop()
	if <-m.ended; m.err != nil {
		t.Fatalf("node %s ends: %v", m.Node, m.err)
	}
}

// await waits until the cell is, by what a node says, as it should be.
func (m *machine) await(t *testing.T, is func(c *admin.Cluster) bool) *admin.Cluster {
	t.Helper()
	var c admin.Cluster
	var err error
	for begun := time.Now(); time.Since(begun) < patience; time.Sleep(20 * time.Millisecond) {
		if c, err = m.operator.Cluster(t.Context()); err == nil && is(&c) {
			return &c
		}
	}
	t.Fatalf("node %s says %+v, %v", m.Node, c, err)
	return nil
}

// push pushes packets by way of a node, and waits until there are so many.
func (m *machine) push(t *testing.T, n int) {
	t.Helper()
	for i := range n {
		if err := m.redis.RPush(t.Context(), "q", i).Err(); err != nil {
			t.Fatal(err)
		}
	}
}
