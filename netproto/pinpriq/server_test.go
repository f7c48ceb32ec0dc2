package pinpriq_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto"
	"github.com/holdfast-queue/holdfast/netproto/pinpriq"
	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/storage"
)

// limit bounds every wait: far longer than any should take.
const limit = 30 * time.Second

// logText is a log as one text.
type logText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logText) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logText) has(words string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), words)
}

// serve runs a server on a store of its own until the test ends.
func serve(t *testing.T) (addr string, log *logText) {
	t.Helper()
	store, err := storage.Open(t.TempDir(), storage.Options{Sync: storage.SyncNever()})
	if err != nil {
		t.Fatal(err)
	}
	state, err := recovery.Restore(store, recovery.Options{Now: time.Now().UnixMilli()})
	if err != nil {
		t.Fatal(err)
	}
	b := broker.New(store, state, broker.Options{})
	log = &logText{}
	l, err := netproto.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := netproto.NewServer(l, netproto.Config{
		Protocol: pinpriq.Protocol{}, Broker: b, Logger: slog.New(slog.NewTextHandler(log, nil)),
	})
	served := make(chan error, 1)
	go func() { served <- server.Serve() }() // ends with the test
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		if err := errors.Join(server.Shutdown(ctx), <-served, b.Close(), store.Close()); err != nil {
			t.Error(err)
		}
	})
	return server.Addr().String(), log
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(limit))
	return conn
}

// frames encodes requests.
func frames(t *testing.T, requests ...pinpriq.Request) (all []byte) {
	t.Helper()
	for i := range requests {
		var err error
		if all, err = requests[i].Append(all); err != nil {
			t.Fatal(err)
		}
	}
	return all
}
