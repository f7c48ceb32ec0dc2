package resp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto"
	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/storage"
)

// limit bounds every wait: far longer than any should take.
const limit = time.Minute

// door is a server on a store of its own, with a clock that only the test moves.
type door struct {
	t        testing.TB
	dir      string
	config   Config
	protocol *Protocol
	disk     *disk
	loop     *netproto.Loop
	server   *netproto.Server
	served   chan error
	now      atomic.Int64 // Unix milliseconds
	tick     atomic.Int64 // how much each look at the clock adds to it
}

func newDoor(t testing.TB, c Config) *door {
	t.Helper()
	d := &door{t: t, dir: t.TempDir(), config: c}
	d.now.Store(1_700_000_000_000)
	d.start()
	t.Cleanup(d.stop)
	return d
}

func (d *door) start() {
	d.t.Helper()
	store, err := storage.Open(d.dir, storage.Options{Sync: storage.SyncNever()})
	if err != nil {
		d.t.Fatal(err)
	}
	state, err := recovery.Restore(store, recovery.Options{Now: d.now.Load()})
	if err != nil {
		d.t.Fatal(err)
	}
	d.disk = &disk{Store: store}
	m := broker.New(d.disk, state, broker.Options{MaxPayload: d.config.MaxPayload})
	d.loop, err = netproto.StartLoop(m, d.disk, netproto.LoopConfig{
		Clock: func() int64 { return d.now.Add(d.tick.Load()) }, Goroutines: os.Getenv("HOLDFAST_GOROUTINES") != "",
	})
	if err != nil {
		d.t.Fatal(err)
	}
	d.protocol = New(d.config)
	l, err := netproto.Listen("127.0.0.1:0")
	if err != nil {
		d.t.Fatal(err)
	}
	d.server = netproto.NewServer(l, netproto.Config{
		Loop: d.loop, Logger: slog.New(slog.DiscardHandler), Protocol: d.protocol,
		// The clock jumps by more than the default. A goroutine that has sent a reply may tell the
		// loop after the jump, which would cut the connection.
		WriteTimeout: 100 * 24 * time.Hour,
	})
	d.served = make(chan error, 1)
	go func() { d.served <- d.server.Serve() }() // ends with stop
}

// held is what the sessions keep.
func (d *door) held() (n int) {
	_ = d.loop.Do(func(*broker.Tx) error {
		for _, s := range d.protocol.sessions {
			n += s.peer.Held()
		}
		return nil
	})
	return n
}

// stop drains and closes everything; a second call does nothing.
func (d *door) stop() {
	d.t.Helper()
	if d.server == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	err := errors.Join(d.server.Shutdown(ctx), <-d.served, d.loop.Close(), d.disk.Close())
	if d.server = nil; err != nil {
		d.t.Fatal(err)
	}
}

// conn is a client that sends and expects bytes.
type conn struct {
	t testing.TB
	net.Conn
}

func (d *door) dial() *conn {
	d.t.Helper()
	return dial(d.t, d.server.Addr())
}

func dial(t testing.TB, addr net.Addr) *conn {
	t.Helper()
	c, err := net.Dial("tcp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(limit))
	return &conn{t, c}
}

func (c *conn) send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		c.t.Fatal(err)
	}
}

// want expects exactly these bytes next.
func (c *conn) want(text string) {
	c.t.Helper()
	got := make([]byte, len(text))
	n, err := io.ReadFull(c, got)
	if err != nil || string(got) != text {
		c.t.Fatalf("got %q (%v)\nwant %q", got[:n], err, text)
	}
}

// wantEnd expects the end of the connection.
func (c *conn) wantEnd() {
	c.t.Helper()
	got, err := io.ReadAll(c)
	if len(got) > 0 || err != nil && !errors.Is(err, net.ErrClosed) && !strings.Contains(err.Error(), "reset") {
		c.t.Fatalf("got %q (%v), want the end", got, err)
	}
}

// ask sends a request, whose words are separated by spaces, and expects its reply.
func (c *conn) ask(words, reply string) {
	c.t.Helper()
	c.send(request(strings.Split(words, " ")...))
	c.want(reply)
}

// line sends a request and returns the first line of its reply.
func (c *conn) line(words ...string) string {
	c.t.Helper()
	c.send(request(words...))
	return c.readLine()
}

func (c *conn) readLine() string {
	c.t.Helper()
	var line []byte
	b := make([]byte, 1)
	for {
		if _, err := c.Read(b); err != nil {
			c.t.Fatalf("after %q: %v", line, err)
		}
		if line = append(line, b[0]); b[0] == '\n' {
			return strings.TrimSuffix(string(line), "\r\n")
		}
	}
}

func (c *conn) readFull(b []byte) {
	c.t.Helper()
	if _, err := io.ReadFull(c, b); err != nil {
		c.t.Fatal(err)
	}
}

// text sends a request and returns its reply, a bulk.
func (c *conn) text(words ...string) string {
	c.t.Helper()
	var n int
	if head := c.line(words...); head[0] != '$' && head[0] != '=' {
		c.t.Fatalf("%v: reply %q, want a bulk", words, head)
	} else if _, err := fmt.Sscan(head[1:], &n); err != nil || n < 0 {
		c.t.Fatalf("%v: reply %q", words, head)
	}
	body := make([]byte, n+2)
	c.readFull(body)
	return string(body[:n])
}

func request(words ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(words))
	for _, w := range words {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(w), w)
	}
	return b.String()
}
