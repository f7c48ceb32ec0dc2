package cluster

import (
	"bytes"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-queue/holdfast/cmd/cluster/peer"
	"github.com/holdfast-queue/holdfast/cmd/daemon"
	"github.com/holdfast-queue/holdfast/cmd/daemon/metrics"
	"github.com/holdfast-queue/holdfast/netproto/admin"
	"github.com/holdfast-queue/holdfast/storage/cell"
)

func TestAnOwnerTellsOfOtherNodesOnceAndOfTheEndOfIt(t *testing.T) {
	var log bytes.Buffer
	w := watch{node: &node{Config: Config{Node: "a"}, logger: slog.New(slog.NewTextHandler(&log, nil))}, told: make(map[string]bool)}
	now := time.Now().UnixMilli()
	look := func(change func(c *peer.Node), up bool, want ...string) {
		t.Helper()
		c := peer.Node{Name: "c", Clock: now + 20_000, Behind: 9000, Digest: "same", Room: 320 << 20}
		change(&c)
		nodes := map[string]peer.Node{"a": {Clock: now, Digest: "same", Room: 1 << 30}, "b": {Clock: now - 1000, Digest: "same", Room: 1 << 30}, "c": c}
		if !up {
			delete(nodes, "c")
		}
		for range 2 {
			w.tellOf(nodes, map[string]bool{"b": true, "c": up})
		}
		var told []string
		for line := range strings.Lines(log.String()) {
			_, line, _ = strings.Cut(line, "level=")
			told = append(told, strings.TrimSpace(line))
		}
		if got, want := strings.Join(told, "\n"), strings.Join(want, "\n"); got != want {
			t.Errorf("told:\n%s\nwant:\n%s", got, want)
		}
		log.Reset()
	}
	well := func(*peer.Node) {}
	look(well, true)
	look(well, false, `WARN msg="node is gone" node=c`)
	look(well, true, `INFO msg="node is back" node=c`)
	look(func(c *peer.Node) { c.Behind, c.Batch = 12_000, 7 }, true, `WARN msg="node lags" node=c batch=7 behind=12s`)
	look(well, true, `INFO msg="node lags no more" node=c`)
	look(func(c *peer.Node) { c.Clock = now - 60_000 }, true, `WARN msg="clock of a node is off" node=c ahead=-59s`)
	look(func(c *peer.Node) { c.Clock = now + 3_600_000 }, true)
	look(well, true, `INFO msg="clock of a node is right again" node=c`)
	look(func(c *peer.Node) { c.Database = 32 << 20 }, true,
		`WARN msg="node has too little room: pushes are refused unless a majority has enough" node=c free=335544320 expected=335544320`)
	look(func(c *peer.Node) { c.Database = 1 << 20 }, true) // not much more
	look(well, true, `INFO msg="node has enough room again" node=c`)
	look(func(c *peer.Node) { c.Digest = "other" }, true, `WARN msg="node has other users or defaults of queues" node=c`)
	look(func(c *peer.Node) { c.Digest = "third" }, true)
	look(well, true, `INFO msg="node has the same users and defaults of queues again" node=c`)
	look(func(c *peer.Node) { c.Nodes = map[string]string{"a": "x:1"} }, true, `WARN msg="node names other addresses" node=c nodes=map[a:x:1]`)
	look(well, true, `INFO msg="node names the same addresses again" node=c`)
}

func TestNodesThatNameOtherAddressesAreToldOfAndLoseNothing(t *testing.T) {
	all := settled(t)
	a := all[0]
	a.push(t, 10)
	var log lines
	for i, other := range []string{"c", "a"} { // whom b and c look for elsewhere
		m := all[i+1]
		m.halt(t)
		m.Nodes = maps.Clone(m.Nodes)
		m.Nodes[other] = freeAddress(t)
		m.log = &log
		m.launch(t)
		a.await(t, haveAll)
	}
	a.halt(t)
	all[1].await(t, func(c *admin.Cluster) bool { return all[1].redis.RPush(t.Context(), "other", "x").Err() == nil })
	log.await(t, "node names other addresses")
	if n := all[1].redis.LLen(t.Context(), "q").Val(); n != 10 {
		t.Errorf("%d packets are left", n)
	}
}

func TestAnOwnerSlowsItsAppendsWhileANodeCatchesUpByASnapshot(t *testing.T) {
	all := trio(t)
	a, c := all[0], all[2]
	var log lines
	a.log = &log
	launchAll(t, all)
	c.halt(t)
	a.push(t, 1100) // etcd's own log begins behind what c has
	c.launch(t)
	log.await(t, "what is appended is slowed: ")
	log.await(t, "what is appended is slowed no more")
}

// Those who listen at its Sentinel door hear it, too.
func TestATakeoverThatANodeSeesWhileItIsCutOffIsToldOfBehindThat(t *testing.T) {
	n := among(t)
	n.found(t)
	n.owner = peer.NewOwner()
	n.owned.Store(&cell.Owner{})
	n.seen.Store(&metrics.Node{})
	n.known.Store(&known{})
	n.role.Store(follower)
	d := daemon.Config{Data: n.folder, Redis: "127.0.0.1:0", Sentinel: freeAddress(t), Owner: n.ownerRedis, Cell: "main", Logger: quiet}
	var err error
	if n.server, err = daemon.Begin(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.server.End(nil) })
	names := redis.NewSentinelClient(&redis.Options{Addr: d.Sentinel})
	defer names.Close()
	listens := names.Subscribe(t.Context(), "+switch-master")
	defer listens.Close()
	if _, err := listens.Receive(t.Context()); err != nil { // that it is subscribed
		t.Fatal(err)
	}
	w := watch{node: n, told: make(map[string]bool)}
	w.look(t.Context(), cell.Status{})
	n.knows(cell.Owner{Node: "b", Addresses: "10.0.0.2:7381 10.0.0.2:6379"})
	w.look(t.Context(), cell.Status{Majority: true})
	m, err := listens.ReceiveTimeout(t.Context(), patience)
	if told, is := m.(*redis.Message); !is || told.Payload != "main 10.0.0.2 6379 10.0.0.2 6379" {
		t.Errorf("it is told %v, %v", m, err)
	}
}
