package resp_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto"
	"github.com/holdfast-queue/holdfast/netproto/resp"
	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// limit bounds every wait: far longer than any should take.
const limit = time.Minute

// door is a server on a store of its own.
type door struct {
	t      testing.TB
	dir    string
	store  *storage.Store
	loop   *netproto.Loop
	server *netproto.Server
	served chan error

	unreadable bool // the next start reads no packet
}

func newDoor(t testing.TB) *door {
	t.Helper()
	d := &door{t: t, dir: t.TempDir()}
	d.start()
	t.Cleanup(d.stop)
	return d
}

func (d *door) start() {
	d.t.Helper()
	var err error
	if d.store, err = storage.Open(d.dir, storage.Options{Sync: storage.SyncNever()}); err != nil {
		d.t.Fatal(err)
	}
	state, err := recovery.Restore(d.store, recovery.Options{Now: time.Now().UnixMilli()})
	if err != nil {
		d.t.Fatal(err)
	}
	store := broker.Store(d.store)
	if d.unreadable {
		store = rotten{d.store}
	}
	m := broker.New(store, state, broker.Options{Cache: 1 << 16})
	d.loop, err = netproto.StartLoop(m, d.store, netproto.LoopConfig{Goroutines: os.Getenv("HOLDFAST_GOROUTINES") != ""})
	if err != nil {
		d.t.Fatal(err)
	}
	protocol := resp.New(resp.Config{Version: "1.2.3", Since: time.Now()})
	l, err := netproto.Listen("127.0.0.1:0")
	if err != nil {
		d.t.Fatal(err)
	}
	d.server = netproto.NewServer(l, netproto.Config{Loop: d.loop, Protocol: protocol, Logger: slog.New(slog.DiscardHandler)})
	d.served = make(chan error, 1)
	go func() { d.served <- d.server.Serve() }() // ends with stop
}

// rotten is a store that has lost its packets.
type rotten struct{ *storage.Store }

// Read implements broker.Store.
func (rotten) Read(ids []content.PacketID, fn func(int, []byte, error)) {
	for i := range ids {
		fn(i, nil, storage.ErrDamaged)
	}
}

// stop drains and closes everything; a second call does nothing.
func (d *door) stop() {
	d.t.Helper()
	if d.server == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	err := errors.Join(d.server.Shutdown(ctx), <-d.served, d.loop.Close(), d.store.Close())
	if d.server = nil; err != nil {
		d.t.Fatal(err)
	}
}

func (d *door) restart() {
	d.t.Helper()
	d.stop()
	d.start()
}

func (d *door) addr() string { return d.server.Addr().String() }

// original is redis-server. It keeps nothing on disk.
type original struct {
	t       testing.TB
	address string
}

func newOriginal(t testing.TB) *original {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("redis-server is not installed: apt install redis-server")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	if err := l.Close(); err != nil { // the port stays free for a moment
		t.Fatal(err)
	}
	cmd := exec.Command(path, "--bind", "127.0.0.1", "--port", port, "--dir", t.TempDir(), "--save", "")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	log := bufio.NewScanner(out)
	for log.Scan() {
		if strings.Contains(log.Text(), "Ready to accept connections") {
			go func() { _, _ = io.Copy(io.Discard, out) }() // ends with the process
			return &original{t, address}
		}
	}
	t.Fatal("redis-server did not start")
	return nil
}

func (o *original) restart()     {}
func (o *original) addr() string { return o.address }

// client is one connection.
type client struct {
	t    testing.TB
	conn net.Conn
	in   *bufio.Reader
}

func dial(t testing.TB, addr string) *client {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(limit)); err != nil {
		t.Fatal(err)
	}
	return &client{t: t, conn: conn, in: bufio.NewReader(conn)}
}

// send sends a command.
func (c *client) send(args ...string) {
	c.t.Helper()
	text := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, a := range args {
		text = fmt.Appendf(text, "$%d\r\n%s\r\n", len(a), a)
	}
	if _, err := c.conn.Write(text); err != nil {
		c.t.Fatalf("send %.100q: %v", args, err)
	}
}

// do sends a command and returns its reply.
func (c *client) do(args ...string) reply {
	c.t.Helper()
	c.send(args...)
	return c.read()
}

// read returns the next reply.
func (c *client) read() reply {
	c.t.Helper()
	r, err := readReply(c.in)
	if err != nil {
		c.t.Fatalf("read: %v", err)
	}
	return r
}

// reply is one reply: its kind, which is the first byte of it on the wire, and its text or its
// elements.
type reply struct {
	kind     byte
	null     bool
	text     string
	elements []reply
}

func readReply(in *bufio.Reader) (r reply, err error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return r, err
	}
	line, ok := strings.CutSuffix(line, "\r\n")
	if !ok || line == "" {
		return r, fmt.Errorf("a reply begins with the line %q", line)
	}
	r.kind, r.text = line[0], line[1:]
	n, err := strconv.Atoi(r.text)
	switch r.kind {
	case '+', '-', ',', '_', '#', '(', ':':
		return r, nil
	case '$', '=', '*', '~', '>', '%':
	default:
		return r, fmt.Errorf("a reply begins with the line %q", line)
	}
	switch {
	case err != nil || n < -1:
		return r, fmt.Errorf("a reply begins with the line %q", line)
	case n == -1:
		r.null = true
		return r, nil
	case r.kind == '$' || r.kind == '=':
		text := make([]byte, n+2)
		if _, err = io.ReadFull(in, text); err == nil && string(text[n:]) != "\r\n" {
			err = fmt.Errorf("a bulk of %d bytes is longer", n)
		}
		r.text = string(text[:n])
		return r, err
	case r.kind == '%':
		n *= 2
	}
	r.elements = make([]reply, n)
	for i := range r.elements {
		if r.elements[i], err = readReply(in); err != nil {
			return r, err
		}
	}
	return r, nil
}

// sort orders the elements of all arrays.
func (r reply) sort() {
	for _, e := range r.elements {
		e.sort()
	}
	slices.SortFunc(r.elements, func(a, b reply) int { return strings.Compare(a.String(), b.String()) })
}

// String writes a reply on one line, no two replies alike: a bulk in quotes, an array in brackets,
// any other as on the wire.
func (r reply) String() string {
	switch r.kind {
	case '$':
		if r.null {
			return "$-1"
		}
		return quote(r.text)
	case '*', '~', '>', '%':
		if r.null {
			return "*-1"
		}
		list := make([]string, len(r.elements))
		for i, e := range r.elements {
			list[i] = e.String()
		}
		return strings.TrimPrefix(string(r.kind), "*") + "[" + strings.Join(list, " ") + "]"
	}
	return string(r.kind) + r.text
}

// quote writes a text in quotes, runs of a byte in short.
func quote(text string) string {
	var out strings.Builder
	for i := 0; i < len(text); {
		n := 1
		for i+n < len(text) && text[i+n] == text[i] {
			n++
		}
		run := n >= 40
		if !run {
			n = 1
		}
		q := strconv.Quote(text[i : i+1])
		if q = q[1 : len(q)-1]; run {
			q = fmt.Sprintf("{%d:%s}", n, q)
		}
		out.WriteString(q)
		i += n
	}
	return `"` + out.String() + `"`
}
