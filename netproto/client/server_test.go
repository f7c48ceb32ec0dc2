package client_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-queue/holdfast/cmd/daemon"
	"github.com/holdfast-queue/holdfast/netproto/client"
	"github.com/holdfast-queue/holdfast/storage"
)

// limit bounds every wait: far longer than any should take.
const limit = 30 * time.Second

// startServer starts a server in this process on an empty folder.
func startServer(t testing.TB, sync storage.SyncMode) (addr string) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	listening, ended := make(chan string, 1), make(chan error, 1)
	config := daemon.Config{Data: t.TempDir(), Redis: "127.0.0.1:0", Cache: 16 << 20, Sync: sync, Drain: time.Millisecond}
	config.Listening = func(_ string, addr net.Addr) { listening <- addr.String() }
	go func() { ended <- daemon.Run(ctx, config) }() // ends when stop is called
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the server ends with %v", err)
		}
	})
	select {
	case addr := <-listening:
		return addr
	case err := <-ended:
		ended <- err
		t.Fatalf("the server does not start: %v", err)
	}
	return ""
}

// connect makes a client.
func connect(t testing.TB, addr string) *client.Client {
	t.Helper()
	c := client.New(&redis.Options{Addr: addr})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// newClient makes a client of a server of its own.
func newClient(t testing.TB) *client.Client {
	t.Helper()
	return connect(t, startServer(t, storage.SyncNever()))
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

// ok fails the test at an error.
func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
