package cluster

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-queue/holdfast/netproto/admin"
	"github.com/holdfast-queue/holdfast/storage/cell"
)

func TestANodeIsRemovedOnlyWhereThoseThatStayGoOn(t *testing.T) {
	for name, c := range map[string]struct {
		nodes, remove, want string
		by                  string // a unless given
		minority            bool
	}{
		"one of three":                  {nodes: "VVV", remove: "c"},
		"one of three that is gone":     {nodes: "VVv", remove: "c"},
		"one of two":                    {nodes: "VV", remove: "c", want: "no node"},
		"one of two that is there":      {nodes: "VVv", remove: "b", want: "majority"},
		"a learner":                     {nodes: "VVl", remove: "c"},
		"a learner beside one gone":     {nodes: "VvL", remove: "c", want: "majority"},
		"the owner":                     {nodes: "VVV", remove: "a", want: "owns"},
		"one that is asked":             {nodes: "VVV", remove: "b", by: "b", want: "ask another"},
		"one of whom nobody knows":      {nodes: "VVV", remove: "x", want: "no node"},
		"any of a cell without answers": {nodes: "VVV", remove: "c", minority: true, want: "no majority"},
	} {
		err := removable(&admin.Cluster{Nodes: cellOf(c.nodes), Owner: "a", By: cmp.Or(c.by, "a"), Majority: !c.minority}, c.remove)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestThoseThatStayReachABatchByTheTablesOfAMajorityOfThem(t *testing.T) {
	nodes := cellOf("VVV")
	for i, floor := range []uint64{10, 10, 5} {
		nodes[i].Floor = floor
	}
	for name, want := range map[string]bool{"a": false, "b": false, "c": true} {
		if got := reach(nodes, name, 10); got != want {
			t.Errorf("without %s: %v, want %v", name, got, want)
		}
	}
}

func TestARemovedNodeEndsAndTheOthersGoOnWithoutIt(t *testing.T) {
	all := settled(t)
	all[0].push(t, 10)
	if err := all[0].operator.ChangeCluster(t.Context(), admin.Remove, "a"); !errors.Is(err, admin.ErrRefused) {
		t.Fatalf("the owner is removed: %v", err)
	}
	if err := all[1].operator.ChangeCluster(t.Context(), admin.Remove, "c"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-all[2].ended:
	case <-time.After(patience):
		t.Fatal("the node that was removed runs on")
	}
	if !errors.Is(all[2].err, cell.ErrRemoved) {
		t.Errorf("the node that was removed ends with %v", all[2].err)
	}
	all[2].launch(t)
	if <-all[2].ended; !errors.Is(all[2].err, cell.ErrRemoved) {
		t.Errorf("started again it ends with %v", all[2].err)
	}
	all[1].await(t, func(c *admin.Cluster) bool { return len(c.Nodes) == 2 && c.Majority && c.Owner == "a" })
	all[1].push(t, 10)
	if err := all[0].operator.ChangeCluster(t.Context(), admin.Remove, "b"); err != nil {
		t.Fatalf("the last but one is not removed: %v", err)
	}
	all[0].await(t, func(c *admin.Cluster) bool { return len(c.Nodes) == 1 && c.Majority && c.Owner == "a" })
	if n := all[0].redis.LLen(t.Context(), "q").Val(); n != 20 {
		t.Errorf("%d packets are left, want 20", n)
	}
}

// clone is a second machine that is started as a node which runs, with a folder of its own. It
// binds another address than the others dial.
func (m *machine) clone(t *testing.T) (*machine, *lines) {
	t.Helper()
	log := &lines{}
	other := &machine{Config: m.Config, folder: filepath.Join(t.TempDir(), "clone"), log: log}
	other.Listen = "127.0.0.2"
	other.operator = &admin.Client{Address: freeAddress(t), Timeout: patience}
	other.redis = redis.NewClient(&redis.Options{Addr: freeAddress(t), MaxRetries: -1})
	t.Cleanup(func() { _ = other.redis.Close() })
	other.launch(t)
	return other, log
}

func TestWhoJoinsUnderATakenNameThrowsNobodyOut(t *testing.T) {
	all := settled(t)
	whole := func(c *admin.Cluster) bool { return len(c.Nodes) == 3 && spare(c.Nodes, hasQueues) == 1 }
	for _, m := range all[:2] { // the owner and a follower
		other, log := m.clone(t)
		log.await(t, "the name is taken: node "+m.Node+" runs at "+m.Nodes[m.Node])
		all[2].await(t, whole)
		other.halt(t)
	}
	other, log := all[1].clone(t)
	log.await(t, "the name is taken")
	other.push(t, 1) // what waits for the cell passes clients on
	all[1].halt(t)   // as for an upgrade
	log.await(t, "does not answer at")
	all[0].await(t, func(c *admin.Cluster) bool { return len(c.Nodes) == 3 })
	all[1].launch(t)
	all[0].await(t, whole)
	all[0].push(t, 10)
	all[1].halt(t)
	if err := os.RemoveAll(all[1].folder); err != nil { // it joins anew, and so would the other one
		t.Fatal(err)
	}
	all[1].launch(t)
	all[0].await(t, whole)
	if _, err := other.operator.Cluster(t.Context()); err == nil {
		t.Error("two machines have joined as one node")
	}
}

func TestAHandOverNeedsAFollowerThatHasNearlyAll(t *testing.T) {
	for name, c := range map[string]struct {
		nodes, to, want string
		lag             int64
		batches         uint64
		minority        bool
	}{
		"a follower":                    {nodes: "VVV", to: "c"},
		"one a little behind":           {nodes: "VVV", to: "c", lag: 900},
		"one that lags":                 {nodes: "VVV", to: "c", lag: 1100, want: "1100 ms behind"},
		"one far behind":                {nodes: "VVV", to: "c", batches: 1100, want: "1100 batches behind"},
		"one that is gone":              {nodes: "VVv", to: "c", want: "does not answer"},
		"a learner":                     {nodes: "VVL", to: "c", want: "is learner"},
		"the owner":                     {nodes: "VVV", to: "a", want: "already"},
		"one of whom nobody knows":      {nodes: "VVV", to: "x", want: "no node"},
		"any of a cell without answers": {nodes: "VVV", to: "c", minority: true, want: "nothing"},
	} {
		nodes := cellOf(c.nodes)
		nodes[2].LagMS, nodes[2].Lag = c.lag, c.batches
		if !nodes[2].Voter {
			nodes[2].Role = learner
		}
		if c.nodes == "VVv" {
			nodes[2].Role = ""
		}
		err := takesOver(&admin.Cluster{Nodes: nodes, Owner: "a", Majority: !c.minority}, c.to)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestTheQueuesAreHandedOverToTheNodeThatIsNamed(t *testing.T) {
	all := settled(t)
	all[0].push(t, 10)
	for _, to := range []string{"c", "b", "a"} {
		before := all[0].await(t, func(c *admin.Cluster) bool { return takesOver(c, to) == nil })
		silent := make(chan time.Duration)
		ctx, stop := context.WithCancel(t.Context())
		go func() { silent <- all[0].silence(ctx) }()
		all[1].await(t, func(c *admin.Cluster) bool {
			if takesOver(c, to) != nil {
				return c.Owner == to // it took them while nobody owned them
			}
			err := all[1].operator.ChangeCluster(t.Context(), admin.HandOver, to)
			if err != nil && !strings.Contains(err.Error(), "no node owns the queues") { // as on a busy machine, for a moment
				t.Fatalf("to %s: %v", to, err)
			}
			return err == nil
		})
		after := all[0].await(t, func(c *admin.Cluster) bool { return c.Owner == to })
		all[0].await(t, func(*admin.Cluster) bool { return all[0].redis.RPush(ctx, "other", "x").Err() == nil })
		stop()
		t.Logf("from %s to %s nobody was served for %v", before.Owner, to, <-silent)
		if after.Fence <= before.Fence {
			t.Errorf("the fence is %d, was %d", after.Fence, before.Fence)
		}
	}
	if n := all[0].redis.LLen(t.Context(), "q").Val(); n != 10 {
		t.Errorf("%d packets are left, want 10", n)
	}
}

func TestAnOwnerThatIsStoppedHandsOverBeforeItDrains(t *testing.T) {
	all := trio(t)
	log := &lines{}
	all[0].drain, all[0].log = time.Hour, log
	launchAll(t, all)
	all[0].push(t, 100)
	big := strings.Repeat("x", 1<<18) // no more: on a busy machine etcd loses its quorum while it sends some MB
	if err := all[0].redis.RPush(t.Context(), "big", big).Err(); err != nil {
		t.Fatal(err)
	}
	slow, err := net.Dial("tcp", all[0].redis.Options().Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	if _, err := io.WriteString(slow, strings.Repeat("LRANGE big 0 -1\r\n", 240)); err != nil { // and it reads nothing
		t.Fatal(err)
	}
	all[1].await(t, func(c *admin.Cluster) bool { return takesOver(c, "b") == nil || takesOver(c, "c") == nil })
	all[0].stop()
	all[1].await(t, func(c *admin.Cluster) bool { return c.Owner != "a" && c.Owner != "" })
	all[1].push(t, 1)
	log.await(t, "msg=draining on=a at_most=1s")
	select {
	case <-all[0].ended:
	case <-time.After(patience):
		t.Error("it drains on")
	}
}

// silence is the longest time in which nothing was acknowledged by way of a node, until ctx ends.
func (m *machine) silence(ctx context.Context) (longest time.Duration) {
	for last := time.Now(); ctx.Err() == nil; {
		if m.redis.RPush(ctx, "other", "x").Err() == nil {
			longest, last = max(longest, time.Since(last)), time.Now()
		}
	}
	return longest
}
