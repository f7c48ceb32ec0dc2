package client_test

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-queue/holdfast/cmd/daemon"
	"github.com/holdfast-queue/holdfast/netproto/access"
	"github.com/holdfast-queue/holdfast/netproto/client"
	"github.com/holdfast-queue/holdfast/storage"
)

// limit bounds every wait: far longer than any should take, and shorter than a turn of waiting.
const limit = 20 * time.Second

// serve starts a server in this process. It returns its address, and what ends it.
func serve(config daemon.Config) (addr string, stop func() error, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	listening, ended := make(chan string, 1), make(chan error, 1)
	config.Redis, config.Cache, config.Drain = "127.0.0.1:0", 16<<20, time.Millisecond
	config.Listening = func(_ string, addr net.Addr) { listening <- addr.String() }
	go func() { ended <- daemon.Run(ctx, config) }() // ends with stop
	select {
	case addr := <-listening:
		return addr, func() error { cancel(); return <-ended }, nil
	case err := <-ended:
		cancel()
		return "", nil, err
	}
}

// startServer starts a server on an empty folder, until the end of the test.
func startServer(t testing.TB, mode storage.SyncMode, users ...access.User) (addr string) {
	t.Helper()
	addr, stop, err := serve(daemon.Config{Data: t.TempDir(), Sync: mode, Users: users})
	ok(t, err)
	t.Cleanup(func() { ok(t, stop()) })
	return addr
}

// address is that of the server of the examples.
var address = sync.OnceValue(func() string {
	dir, err := os.MkdirTemp("", "holdfast-example-")
	if err != nil {
		panic(err)
	}
	addr, stop, err := serve(daemon.Config{Data: dir, Sync: storage.SyncNever()})
	if err != nil {
		panic(err)
	}
	endExamples = func() error { return errors.Join(stop(), os.RemoveAll(dir)) }
	return addr
})

// endExamples ends the server of the examples.
var endExamples = func() error { return nil }

// connect makes a client.
func connect(t testing.TB, addr string) *client.Client {
	t.Helper()
	c := client.New(&redis.Options{Addr: addr})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// connectAs makes a client of a user whose password is its name.
func connectAs(t testing.TB, addr, user string) *client.Client {
	t.Helper()
	c := client.New(&redis.Options{Addr: addr, Username: user, Password: user})
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
