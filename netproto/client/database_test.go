package client_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-queue/holdfast/netproto/client"
	"github.com/holdfast-queue/holdfast/storage"
)

func TestAClientWorksInTheDatabaseOfItsOptions(t *testing.T) {
	addr := startServer(t, storage.SyncNever())
	for _, protocol := range []int{2, 3} {
		zero := client.New(&redis.Options{Addr: addr, Protocol: protocol})
		seven := client.New(&redis.Options{Addr: addr, Protocol: protocol, DB: 7})
		ctx, stop := context.WithCancel(t.Context())
		must(seven.Push(ctx, "q", []byte("of 7")))(t)
		must(zero.Push(ctx, "q", []byte("of 0")))(t)
		want(t, "queues", fmt.Sprint(must(seven.Queues(ctx, "*"))(t), must(zero.Queues(ctx, "*"))(t)), "[q] [q]")
		handled := make(chan string)
		ended := consume(ctx, seven, "q", func(_ context.Context, p *client.Packet) error { // over the second pool
			handled <- string(p.Payload)
			return nil
		})
		want(t, "handled", receive(t, handled), "of 7")
		must(seven.Push(ctx, "q", []byte("more")))(t)
		want(t, "handled", receive(t, handled), "more")
		want(t, "length", must(zero.Len(ctx, "q"))(t), 1)
		stop()
		_ = receive(t, ended)
		must(zero.Purge(t.Context(), "q"))(t)
		ok(t, zero.Close())
		ok(t, seven.Close())
	}
	outside := client.New(&redis.Options{Addr: addr, DB: 16})
	defer outside.Close()
	if _, err := outside.Len(t.Context(), "q"); err == nil || err.Error() != "ERR DB index is out of range" {
		t.Errorf("database 16 gives %v", err)
	}
}
