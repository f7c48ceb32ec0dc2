package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	goredis "github.com/redis/go-redis/v9"
)

// onEachClient runs a test on an empty server of each kind, with a client of each protocol version.
func onEachClient(t *testing.T, test func(t *testing.T, client *goredis.Client)) {
	t.Helper()
	onEach(t, func(t *testing.T, addr string) {
		for _, protocol := range []int{2, 3} {
			t.Run(fmt.Sprint("RESP", protocol), func(t *testing.T) {
				// No retries: a reply that is lost must be seen.
				client := goredis.NewClient(&goredis.Options{Addr: addr, Protocol: protocol, MaxRetries: -1, ReadTimeout: limit, ClientName: "outside"})
				t.Cleanup(func() { _ = client.Close() })
				if err := client.FlushDB(t.Context()).Err(); err != nil {
					t.Fatal(err)
				}
				test(t, client)
			})
		}
	})
}

// must fails the test at an error and returns the value otherwise.
func must[V any](v V, err error) func(t testing.TB) V {
	return func(t testing.TB) V {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestGoRedisPublishesConsumesAndCommits(t *testing.T) {
	onEachClient(t, func(t *testing.T, client *goredis.Client) {
		ctx := t.Context()
		const backlog, nextlog, message = "rfq:go:backlog", "rfq:go:nextlog", "rfq:go:message:"
		for _, id := range []string{"a", "b"} {
			must(client.TxPipelined(ctx, func(p goredis.Pipeliner) error {
				p.HSet(ctx, message+id, "id", id, "op", "tile")
				p.LPush(ctx, backlog, id)
				return nil
			}))(t)
		}
		for _, want := range []string{"a", "b"} {
			if id := must(client.BLMove(ctx, backlog, nextlog, "right", "left", 0).Result())(t); id != want {
				t.Errorf("claimed %s, want %s", id, want)
			}
		}
		if fields := must(client.HGetAll(ctx, message+"a").Result())(t); len(fields) != 2 || fields["id"] != "a" || fields["op"] != "tile" {
			t.Errorf("message a is %v", fields)
		}
		done := must(client.TxPipelined(ctx, func(p goredis.Pipeliner) error {
			p.LRem(ctx, nextlog, 0, "a")
			p.Del(ctx, message+"a")
			return nil
		}))(t)
		if done[0].(*goredis.IntCmd).Val() != 1 || done[1].(*goredis.IntCmd).Val() != 1 {
			t.Errorf("the commit did %v", done)
		}
		if id := must(client.LMove(ctx, nextlog, backlog, "right", "left").Result())(t); id != "b" {
			t.Errorf("harvested %s, want b", id)
		}
		if err := client.LMove(ctx, nextlog, backlog, "right", "left").Err(); !errors.Is(err, goredis.Nil) {
			t.Errorf("the next harvest ends with %v, want nil", err)
		}
		if keys := must(client.Keys(ctx, "rfq:*:backlog").Result())(t); !slices.Equal(keys, []string{backlog}) {
			t.Errorf("keys %q", keys)
		}
	})
}

func TestAPopThatGoRedisGaveUpTakesNothing(t *testing.T) {
	onEachClient(t, func(t *testing.T, client *goredis.Client) {
		watcher := dial(t, client.Options().Addr)
		ctx, cancel := context.WithCancel(t.Context())
		popped := make(chan error, 1)
		// A client of its own, closed while it waits: go-redis does not look at ctx while it reads.
		other := goredis.NewClient(client.Options())
		go func() { popped <- other.BRPop(ctx, 0, "q").Err() }() // ends when other is closed
		watcher.awaitBlocked(1)
		cancel()
		if err := other.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-popped; err == nil {
			t.Error("the pop ended without an error")
		}
		watcher.awaitBlocked(0)
		must(client.LPush(t.Context(), "q", "x").Result())(t)
		if got := must(client.LRange(t.Context(), "q", 0, -1).Result())(t); !slices.Equal(got, []string{"x"}) {
			t.Errorf("the list holds %q, want x", got)
		}
	})
}

func TestGoRedisWatches(t *testing.T) {
	onEachClient(t, func(t *testing.T, client *goredis.Client) {
		ctx := t.Context()
		increment := func(between func()) error {
			return client.Watch(ctx, func(tx *goredis.Tx) error {
				n, err := tx.Get(ctx, "n").Int()
				if err != nil && !errors.Is(err, goredis.Nil) {
					return err
				}
				between()
				_, err = tx.TxPipelined(ctx, func(p goredis.Pipeliner) error {
					p.Set(ctx, "n", n+1, 0)
					return nil
				})
				return err
			}, "n")
		}
		wantError(t, increment(func() {}), nil)
		wantError(t, increment(func() { client.Incr(ctx, "n") }), goredis.TxFailedErr)
		if n := must(client.Get(ctx, "n").Int())(t); n != 2 {
			t.Errorf("n is %d, want 2", n)
		}
	})
}

func TestGoRedisSubscribes(t *testing.T) {
	onEachClient(t, func(t *testing.T, client *goredis.Client) {
		ctx := t.Context()
		sub := client.Subscribe(ctx, "news")
		defer sub.Close()
		must(sub.Receive(ctx))(t)
		if n := must(client.Publish(ctx, "news", "first").Result())(t); n != 1 {
			t.Errorf("the message reached %d subscribers, want 1", n)
		}
		if got := must(sub.ReceiveMessage(ctx))(t); got.Channel != "news" || got.Payload != "first" {
			t.Errorf("received %v", got)
		}
		if err := sub.PSubscribe(ctx, "n*"); err != nil {
			t.Fatal(err)
		}
		must(sub.Receive(ctx))(t)
		if n := must(client.Publish(ctx, "news", "second").Result())(t); n != 2 {
			t.Errorf("the message reached %d subscriptions, want 2", n)
		}
		for _, pattern := range []string{"", "n*"} {
			if got := must(sub.ReceiveMessage(ctx))(t); got.Pattern != pattern || got.Payload != "second" {
				t.Errorf("received %v, want pattern %q", got, pattern)
			}
		}
	})
}

func TestGoRedisUsesStringsHashesAndKeys(t *testing.T) {
	onEachClient(t, func(t *testing.T, client *goredis.Client) {
		ctx := t.Context()
		must(client.MSet(ctx, "a", "1", "b", "2").Result())(t)
		must(client.HSet(ctx, "h", "f", "1", "g", "2.5").Result())(t)
		must(client.LPush(ctx, "l", "x", "y", "z").Result())(t)
		if got := must(client.MGet(ctx, "a", "l", "b", "nothing").Result())(t); !slices.Equal(got, []any{"1", nil, "2", nil}) {
			t.Errorf("MGET brings %v", got)
		}
		if got := must(client.HIncrByFloat(ctx, "h", "g", 0.25).Result())(t); got != 2.75 {
			t.Errorf("HINCRBYFLOAT brings %v", got)
		}
		var names []string
		for all := client.Scan(ctx, 0, "*", 2).Iterator(); all.Next(ctx); {
			names = append(names, all.Val())
		}
		slices.Sort(names)
		if names = slices.Compact(names); !slices.Equal(names, []string{"a", "b", "h", "l"}) {
			t.Errorf("SCAN brings %q", names)
		}
		if key, values := must2(client.LMPop(ctx, "left", 2, "nothing", "l").Result())(t); key != "l" || !slices.Equal(values, []string{"z", "y"}) {
			t.Errorf("LMPOP brings %s, %q", key, values)
		}
		if got := must(client.SetNX(ctx, "a", "2", 0).Result())(t); got {
			t.Error("SETNX of a key that exists brings true")
		}
		must(client.Expire(ctx, "a", limit).Result())(t)
		if ttl := must(client.TTL(ctx, "a").Result())(t); ttl <= 0 || ttl > limit {
			t.Errorf("TTL is %v, want at most %v", ttl, limit)
		}
		if name := must(client.ClientGetName(ctx).Result())(t); name != "outside" {
			t.Errorf("the client's name is %q", name)
		}
	})
}

// must2 is must for two values.
func must2[V, W any](v V, w W, err error) func(t testing.TB) (V, W) {
	return func(t testing.TB) (V, W) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v, w
	}
}
