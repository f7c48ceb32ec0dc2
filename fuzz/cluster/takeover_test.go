package cluster

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-queue/holdfast/netproto/client"
)

// beginning begins something at a cell. What it returns judges it behind the death of the owner, by
// a client of nodes that live.
type beginning func(t *testing.T, c *cell) (judge func(t *testing.T, by *redis.Client))

// Each goes on at the next owner by itself.
func TestWhatBeganBeforeATakeoverGoesOnBehindIt(t *testing.T) {
	t.Parallel()
	c := onLoopback(t, build(t))
	owner := c.owner()
	live := c.others(owner)
	by := client.New(&redis.Options{Addr: live[0].redis + "," + live[1].redis, MaxRetries: -1, ReadTimeout: limit}).Redis()
	defer by.Close()
	names := []string{"go-redis", "redis-py", "redis/2", "redis6/3", "ioredis", "ioredis6"}
	var begin []beginning
	for _, name := range names {
		begin = append(begin, bySentinel(name, by))
	}
	judge := make([]func(*testing.T, *redis.Client), len(names))
	for i := range names {
		judge[i] = begin[i](t, c)
	}
	c.kill(owner)
	for i, name := range names {
		t.Run(name, func(t *testing.T) { judge[i](t, by) })
	}
	for _, found := range c.judge.found() {
		t.Error(found)
	}
}
