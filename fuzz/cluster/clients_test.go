package cluster

import (
	"context"
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
	if testing.Short() {
		t.Skip("its nodes are processes of their own")
	}
	t.Parallel()
	c := onLoopback(t, build(t, ""))
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
