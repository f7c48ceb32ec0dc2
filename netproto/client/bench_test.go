package client_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-queue/holdfast/netproto/client"
	"github.com/holdfast-queue/holdfast/storage"
)

const workers = 64

// each calls f n times, in as many goroutines as there are workers.
func each(n int, f func()) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range workers {
		all.Go(func() { // ends with the last number
			for next.Add(1) <= int64(n) {
				f()
			}
		})
	}
	all.Wait()
}

// The same packets, pushed, claimed and acknowledged: by bare commands of 64 goroutines, and by 64
// producers and a Consume of 64 workers. Each batch is synced.
func BenchmarkConsumeBesideBareCommands(b *testing.B) {
	payload := make([]byte, 128)
	b.Run("bare", func(b *testing.B) {
		rdb := redis.NewClient(&redis.Options{Addr: startVictim(b, b.TempDir(), "127.0.0.1:0").addr, PoolSize: workers})
		defer rdb.Close()
		ctx := b.Context()
		cycle := func() {
			must(rdb.Do(ctx, "QPUSH", "q", payload).Result())(b)
			p := must(rdb.Do(ctx, "QCLAIM", "q").Slice())(b)[0].(map[any]any)
			must(rdb.Do(ctx, "QACK", "q", p["id"], p["token"]).Result())(b)
		}
		each(workers, cycle)
		b.ResetTimer()
		each(b.N, cycle)
	})
	b.Run("consume", func(b *testing.B) {
		c, ctx := connect(b, startVictim(b, b.TempDir(), "127.0.0.1:0").addr), b.Context()
		handled := make(chan struct{}, workers)
		ended := consume(ctx, c, "q", func(context.Context, *client.Packet) error {
			handled <- struct{}{}
			return nil
		}, client.Concurrency(workers))
		push := func() { must(c.Push(ctx, "q", payload))(b) }
		each(workers, push)
		for range workers {
			receive(b, handled)
		}
		b.ResetTimer()
		go each(b.N, push) // ends before the last packet is handled
		for range b.N {
			<-handled
		}
		drain(b, c)
		ok(b, receive(b, ended))
	})
}

// What the client adds to a claim and an ack of a packet that is there.
func BenchmarkDrain(b *testing.B) {
	fill := func(b *testing.B) *client.Client {
		c := connect(b, startServer(b, storage.SyncNever()))
		for n := b.N; n > 0; n -= 1000 {
			must(c.PushBatch(b.Context(), "q", make([][]byte, min(n, 1000))))(b)
		}
		b.ResetTimer()
		return c
	}
	b.Run("claim", func(b *testing.B) {
		c := fill(b)
		each(b.N, func() { ok(b, must(c.Claim(b.Context(), "q"))(b)[0].Ack(b.Context())) })
	})
	b.Run("consume", func(b *testing.B) {
		c := fill(b)
		var left atomic.Int64
		left.Store(int64(b.N))
		done := make(chan struct{})
		consume(b.Context(), c, "q", func(context.Context, *client.Packet) error {
			if left.Add(-1) == 0 {
				close(done)
			}
			return nil
		}, client.Concurrency(workers))
		<-done
		drain(b, c)
	})
}
