package pinpriq_test

import (
	"bytes"
	"context"
	"errors"
	"io"
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
	server, err := netproto.Listen("127.0.0.1:0", netproto.Config{
		Logger: slog.New(slog.NewTextHandler(log, nil)), Protocol: &pinpriq.Protocol{Broker: b},
	})
	if err != nil {
		t.Fatal(err)
	}
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

// postName is the name of the queue that a pop beginning "POST /" is of.
func postName(rest string) []byte {
	name := make([]byte, int('O')<<8|int('S'))
	copy(name, "T /"+rest)
	return name
}

func TestABrowserCannotDriveTheServer(t *testing.T) {
	addr, log := serve(t)
	post := frames(t,
		pinpriq.Request{Op: pinpriq.OpPop, Queue: postName(" HTTP/1.1\r\nHost: localhost\r\n\r\n")},
		pinpriq.Request{Op: pinpriq.OpPush, Queue: []byte("q"), Priority: 1},
	)
	if !bytes.HasPrefix(post, []byte("POST / HTTP/1.1\r\n")) {
		t.Fatalf("the request begins with %q", post[:20])
	}
	whole, apart := dial(t, addr), dial(t, addr)
	if _, err := whole.Write(post); err != nil {
		t.Fatal(err)
	}
	for i := range 6 { // what is behind them might find the connection closed
		if _, err := apart.Write(post[i : i+1]); err != nil {
			t.Fatal(err)
		}
	}
	for _, conn := range []net.Conn{whole, apart} {
		if got, err := io.ReadAll(conn); len(got) > 0 || err != nil {
			t.Errorf("got %q (%v), want the end and nothing before", got, err)
		}
	}
	if !log.has("it begins like a request of HTTP") {
		t.Error("the log does not say why the connections were closed")
	}
	client := pinpriq.NewClient(dial(t, addr))
	if got, err := client.Pop(t.Context(), "q"); len(got) > 0 || err != nil {
		t.Errorf("then queue q has %v (%v), want that nothing was pushed", got, err)
	}
}

func TestAQueueWhoseNameLooksLikeHTTPCanBeUsedLater(t *testing.T) {
	addr, _ := serve(t)
	name := postName("")
	for what, first := range map[string][]pinpriq.Request{
		"in the same segment": {{Op: pinpriq.OpUnsubscribe, Queue: name}, {Op: pinpriq.OpPop, Queue: name}},
		"after a reply":       {{Op: pinpriq.OpPop}},
	} {
		t.Run(what, func(t *testing.T) {
			conn := dial(t, addr)
			for _, send := range [][]byte{frames(t, first...), frames(t, pinpriq.Request{Op: pinpriq.OpPop, Queue: name})} {
				if _, err := conn.Write(send); err != nil {
					t.Fatal(err)
				}
				reply := make([]byte, 2)
				if _, err := io.ReadFull(conn, reply); err != nil || string(reply) != "\x00\x00" {
					t.Fatalf("a pop was answered % x (%v), want that there is nothing", reply, err)
				}
			}
		})
	}
}
