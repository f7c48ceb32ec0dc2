package cluster

import (
	"context"
	"hash/crc32"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-queue/holdfast/netproto/client"
)

// While the owner dies each worker holds a claim, so that nothing is asked for. Leases outlast a
// takeover.
func TestWorkersGoOnWhenTheOwnerIsKilled(t *testing.T) {
	t.Parallel()
	c := onLoopback(t, build(t))
	owner := c.owner()
	all := []string{owner.redis}
	for _, n := range c.others(owner) {
		all = append(all, n.redis)
	}
	const packets, workers = 200, 8
	ctx, stop := context.WithTimeout(t.Context(), limit)
	defer stop()
	same, other := client.New(&redis.Options{Addr: owner.redis}), client.New(&redis.Options{Addr: all[1]})
	pool := client.New(&redis.Options{Addr: strings.Join(all, ",")})
	var payloads [][]byte
	for i := range packets {
		payloads = append(payloads, []byte(strconv.Itoa(i)))
	}
	if _, err := pool.PushBatch(ctx, "q", payloads); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	tokens := make(map[string][]int64) // of each packet: those that it was done with
	begun, killed, done := make(chan struct{}, packets), make(chan struct{}), make(chan struct{}, packets)
	work := func(ctx context.Context, p *client.Packet) error {
		begun <- struct{}{}
		<-killed
		mu.Lock()
		defer mu.Unlock()
		tokens[string(p.Payload)] = append(tokens[string(p.Payload)], p.Token)
		done <- struct{}{}
		return ctx.Err()
	}
	var working sync.WaitGroup
	for _, c := range []*client.Client{pool, other} {
		working.Go(func() { // ends with Shutdown
			if err := c.Consume(ctx, "q", work, client.Concurrency(workers)); err != nil {
				t.Error(err)
			}
		})
	}
	for range 2 * workers {
		<-begun
	}
	c.kill(owner)
	killedAt := time.Now()
	close(killed)
	if id, err := other.Push(ctx, "new", nil); err != nil || id == "" {
		t.Errorf("a push through a node that follows, while there is no owner: %v", err)
	}
	t.Logf("a push was answered %v after the kill", time.Since(killedAt).Round(10*time.Millisecond))
	for range packets {
		select {
		case <-done:
		case <-ctx.Done():
			t.Fatalf("%d of %d packets are done", len(tokens), packets)
		}
	}
	for _, c := range []*client.Client{pool, other} {
		if err := c.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	}
	working.Wait()
	for payload, by := range tokens {
		if len(by) != 1 {
			t.Errorf("packet %s was done with the tokens %v", payload, by)
		}
	}
	c.start(owner)
	c.settled(c.nodes...)
	for _, c := range []*client.Client{same, other, pool} {
		if left, err := c.Len(ctx, "q"); left != 0 || err != nil {
			t.Errorf("%d packets are left, %v", left, err)
		}
		_ = c.Close()
	}
}

// sees waits until the answer of a node's operator's port has a status and some texts.
func (c *cell) sees(n *node, path string, code int, texts ...string) {
	c.t.Helper()
	said, status := "", 0
	if !await(limit, func() bool {
		r, err := http.Get("http://" + n.admin + path)
		if err != nil {
			return false
		}
		body, _ := io.ReadAll(r.Body)
		_ = r.Body.Close()
		said, status = string(body), r.StatusCode
		return status == code && !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(said, text) })
	}) {
		c.t.Fatalf("%s of node %s is %d, want %d with %q:\n%.3000s", path, n.name, status, code, texts, said)
	}
}

// logs waits until a node has logged a text.
func (c *cell) logs(n *node, text string) {
	c.t.Helper()
	if !await(limit, func() bool {
		all, err := os.ReadFile(n.log())
		return err == nil && strings.Contains(string(all), text)
	}) {
		c.t.Fatalf("node %s never logs %q", n.name, text)
	}
}

func TestEachNodeTellsHowItIs(t *testing.T) {
	t.Parallel()
	c := onLoopback(t, build(t))
	owner := c.owner()
	c.sees(owner, "/owner", 200, "ok")
	c.sees(owner, "/readyz", 200, "ok")
	c.sees(owner, "/metrics", 200, `holdfast_node_role{role="owner"} 1`, "holdfast_cell_spare_nodes 1", "holdfast_queues{", "holdfast_node_lease_margin_seconds 1.")
	for _, n := range c.others(owner) {
		c.sees(n, "/owner", 503, "following: node "+owner.name+" owns the queues")
		c.sees(n, "/readyz", 200, "ok")
		c.sees(n, "/page/live", 503, "following: node "+owner.name+" owns the queues")
		c.sees(n, "/metrics", 200, `holdfast_node_role{role="follower"} 1`, "holdfast_cell_spare_nodes 1", "holdfast_storage_floor_batch",
			`holdfast_cell_node_up{node="`+owner.name+`"} 1`, "holdfast_node_lag_batches 0", "holdfast_node_lease_margin_seconds 0")
	}
	c.kill(owner)
	next := c.owner()
	c.sees(next, "/owner", 200, "ok")
	c.sees(next, "/metrics", 200, "holdfast_cell_spare_nodes 0", `holdfast_cell_node_up{node="`+owner.name+`"} 0`, "holdfast_cell_takeovers_total ")
	c.logs(next, `"node is gone" node=`+owner.name)
	file := owner.folder + ".toml"
	must(t, os.WriteFile(file, []byte("[queues.jobs]\nbound = 7\n"), 0o600))
	owner.args = append(owner.args, "--config", file)
	c.start(owner)
	c.settled(c.nodes...)
	c.logs(next, `"node is back" node=`+owner.name)
	c.logs(next, "node has other users or defaults of queues")
	c.sees(owner, "/owner", 503, "following: node "+next.name)
	c.sees(owner, "/page/live", 503, "following: node "+next.name)
	alone := c.others(owner)
	c.kill(alone...)
	c.sees(owner, "/readyz", 503, "no node owns the queues")
	c.logs(owner, "no majority of the nodes answers")
	c.sees(owner, "/metrics", 200, "holdfast_cell_spare_nodes 0")
	for _, n := range alone {
		c.start(n)
	}
	c.settled(c.nodes...)
	c.logs(owner, "a majority of the nodes answers again")
	c.sees(c.owner(), "/metrics", 200, "holdfast_cell_spare_nodes 1")
}

// It is what Example_cells of the client shows, with a cell in each place.
func TestTheNameOfAQueueChoosesItsCell(t *testing.T) {
	t.Parallel()
	binary := build(t)
	var cells []*client.Client
	for range 2 {
		c := client.New(&redis.Options{Addr: named(t, binary, "a").nodes[0].redis})
		defer c.Close()
		cells = append(cells, c)
	}
	ctx, stop := context.WithTimeout(t.Context(), limit)
	defer stop()
	of := func(queue string) int { return int(crc32.ChecksumIEEE([]byte(queue)) % uint32(len(cells))) }
	for place, queue := range []string{"example.mails", "example.bills"} {
		if _, err := cells[of(queue)].Push(ctx, queue, []byte("17")); err != nil {
			t.Fatal(err)
		}
		for i, c := range cells {
			n, err := c.Len(ctx, queue)
			if err != nil || (n == 1) != (i == place) {
				t.Errorf("cell %d has %d packets of %s (%v), want one in cell %d alone", i, n, queue, err, place)
			}
		}
	}
}
