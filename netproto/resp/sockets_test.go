package resp

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto"
	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/storage"
)

// startLoop starts a loop for those clients that need a socket: programs and libraries.
func startLoop(t *testing.T) *netproto.Loop {
	t.Helper()
	store, err := storage.Open(t.TempDir(), storage.Options{Sync: storage.SyncNever()})
	if err != nil {
		t.Fatal(err)
	}
	state, err := recovery.Restore(store, recovery.Options{})
	if err != nil {
		t.Fatal(err)
	}
	loop, err := netproto.StartLoop(broker.New(store, state, broker.Options{}), store, netproto.LoopConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(loop.Close(), store.Close()); err != nil {
			t.Error(err)
		}
	})
	return loop
}

// listen has a loop serve a protocol on a socket, and returns the address.
func listen(t *testing.T, loop *netproto.Loop, p *Protocol) string {
	t.Helper()
	l, err := netproto.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := netproto.NewServer(l, netproto.Config{Loop: loop, Protocol: p})
	served := make(chan error, 1)
	go func() { served <- server.Serve() }() // ends with the test
	t.Cleanup(func() { server.Close(); <-served })
	return l.Addr().String()
}

func TestAClientFollowsTheOwner(t *testing.T) {
	loop := startLoop(t)
	first, second := listen(t, loop, New(Config{})), listen(t, startLoop(t), New(Config{}))
	var owner atomic.Value // string
	owner.Store(first)
	sentinel := NewSentinel(Config{Version: "1"}, Cell{Name: "main", Owner: func() string { return owner.Load().(string) }})
	c := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "main", SentinelAddrs: []string{listen(t, loop, sentinel)}})
	other := redis.NewClient(&redis.Options{Addr: second})
	defer c.Close()
	defer other.Close()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if err := c.LPush(ctx, "q", "to the first").Err(); err != nil {
		t.Fatal(err)
	}
	for n := int64(0); n == 0; { // until it listens, which it does behind the first command
		if err := loop.Do(func(*broker.Tx) error {
			n = int64(len(sentinel.pubsub.channels.listeners([]byte("+switch-master"))))
			return nil
		}); err != nil || ctx.Err() != nil {
			t.Fatal(errors.Join(err, ctx.Err()))
		}
	}
	owner.Store(second) // and the first one lives
	if err := loop.Do(func(*broker.Tx) error { sentinel.Switched(); return nil }); err != nil {
		t.Fatal(err)
	}
	for n := int64(0); n == 0; {
		if err := c.LPush(ctx, "q", "to the second").Err(); err != nil {
			t.Fatal(err)
		}
		if n = other.LLen(ctx, "q").Val(); ctx.Err() != nil {
			t.Fatal("the client does not follow")
		}
	}
}
