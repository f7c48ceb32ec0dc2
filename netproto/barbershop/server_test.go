package barbershop_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto"
	"github.com/holdfast-queue/holdfast/netproto/access"
	"github.com/holdfast-queue/holdfast/netproto/barbershop"
	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/storage"
)

// limit bounds every wait: far longer than any should take.
const limit = 30 * time.Second

// board is a server on a store of its own, with a clock that only the test moves.
type board struct {
	t      testing.TB
	dir    string
	queue  string
	users  access.Plain
	disk   *disk
	loop   *netproto.Loop
	server *netproto.Server
	served chan error
	now    atomic.Int64 // seconds since the server started
	failed bool         // the broker ends with an error, as the test expects
	log    logText
}

func newBoard(t testing.TB) *board {
	t.Helper()
	return newBoardOf(t, access.Plain{})
}

// newBoardOf makes a board for users.
func newBoardOf(t testing.TB, users access.Plain) *board {
	t.Helper()
	b := &board{t: t, dir: t.TempDir(), queue: barbershop.DefaultQueue, users: users}
	b.start()
	t.Cleanup(b.stop)
	return b
}

func (b *board) start() {
	b.t.Helper()
	store, err := storage.Open(b.dir, storage.Options{Sync: storage.SyncNever()})
	if err != nil {
		b.t.Fatal(err)
	}
	state, err := recovery.Restore(store, recovery.Options{Now: time.Now().UnixMilli()})
	if err != nil {
		b.t.Fatal(err)
	}
	b.disk = &disk{Store: store}
	m := broker.New(b.disk, state, broker.Options{})
	b.loop, err = netproto.StartLoop(m, b.disk, netproto.LoopConfig{})
	if err != nil {
		b.t.Fatal(err)
	}
	started := time.Unix(1_700_000_000, 0)
	b.now.Store(0)
	l, err := netproto.Listen("127.0.0.1:0")
	if err != nil {
		b.t.Fatal(err)
	}
	b.server = netproto.NewServer(l, netproto.Config{
		Loop:   b.loop,
		Logger: slog.New(slog.NewTextHandler(&b.log, nil)),
		Protocol: &barbershop.Protocol{
			Queue: b.queue, Version: "1.2.3", Users: b.users, Since: started,
			Now: func() time.Time { return started.Add(time.Duration(b.now.Load()) * time.Second) },
		},
	})
	b.served = make(chan error, 1)
	go func() { b.served <- b.server.Serve() }() // ends with stop
}

// stop drains and closes everything; a second call does nothing.
func (b *board) stop() {
	b.t.Helper()
	if b.server == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	err := errors.Join(b.server.Shutdown(ctx), <-b.served)
	if e := b.loop.Close(); !b.failed {
		err = errors.Join(err, e)
	}
	err = errors.Join(err, b.disk.Close())
	if b.server = nil; err != nil {
		b.t.Fatal(err)
	}
}

func (b *board) restart() {
	b.t.Helper()
	b.stop()
	b.start()
}

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

// logged says whether the server's log has the words.
func (b *board) logged(words string) bool {
	b.log.mu.Lock()
	defer b.log.mu.Unlock()
	return strings.Contains(b.log.text.String(), words)
}

// push brings a packet to the board through another protocol.
func (b *board) push(key string, priority uint32, ttl time.Duration, payload string) {
	b.t.Helper()
	err := b.loop.Do(func(tx *broker.Tx) error {
		r := broker.PushRequest{Queue: []byte(b.queue), Priority: priority, TTL: ttl, Key: []byte(key), Payload: []byte(payload)}
		return tx.Atomic(func() error { return pushError(tx.Push(r)) })
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

// client is one connection.
type client struct {
	t    testing.TB
	conn *net.TCPConn
}

func (b *board) dial() *client {
	b.t.Helper()
	conn, err := net.Dial("tcp", b.server.Addr().String())
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(limit))
	return &client{b.t, conn.(*net.TCPConn)}
}

func (c *client) send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c.conn, text); err != nil {
		c.t.Fatalf("send: %v", err)
	}
}

// want reads as many bytes as text has, and compares.
func (c *client) want(text string) {
	c.t.Helper()
	got := make([]byte, len(text))
	n, err := io.ReadFull(c.conn, got)
	if string(got[:n]) != text {
		c.t.Fatalf("got\n%q (%v), want\n%q", got[:n], err, text)
	}
}

// ask sends a line and expects replies. It adds the line ends.
func (c *client) ask(line string, replies ...string) {
	c.t.Helper()
	c.send(line + "\r\n")
	for _, r := range replies {
		c.want(r + "\r\n")
	}
}

// wantEnd closes the sending half and expects that nothing more comes.
func (c *client) wantEnd() {
	c.t.Helper()
	if err := c.conn.CloseWrite(); err != nil {
		c.t.Fatal(err)
	}
	if rest, err := io.ReadAll(c.conn); len(rest) > 0 || err != nil {
		c.t.Fatalf("%q (%v) came before the end, want nothing", rest, err)
	}
}

// pushError is the error of a Push whose id does not matter.
func pushError(_ broker.ID, err error) error { return err }
