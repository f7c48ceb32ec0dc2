package resp

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto"
	"github.com/holdfast-queue/holdfast/netproto/inmemory"
	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/storage"
)

// door is a server on a store of its own, with a clock that only the test moves. Its clients make
// the turns of its loop as they read.
type door struct {
	t        testing.TB
	dir      string
	config   Config
	cache    int64 // of the broker
	protocol *Protocol
	disk     *disk
	network  *inmemory.Network
	now      int64 // Unix milliseconds
	tick     int64 // how much each look at the clock adds to it
	passes   bool  // time passes while a client waits
}

// newDoor has the test run beside others.
func newDoor(t testing.TB, c Config) *door {
	t.Helper()
	beside(t)
	return openDoor(&door{t: t, config: c})
}

// newOther makes a door to compare with redis-server. It reads most payloads from its disk.
func newOther(t testing.TB) *door {
	t.Helper()
	beside(t)
	return openDoor(&door{t: t, config: Config{Version: "1.2.3"}, cache: 1 << 16, passes: true})
}

// parallel has the tests that run beside others.
var parallel sync.Map

// beside has a test run beside others. A benchmark has the machine for itself.
func beside(t testing.TB) {
	if t, ok := t.(*testing.T); ok {
		if _, already := parallel.LoadOrStore(t, true); !already {
			t.Parallel()
		}
	}
}

func openDoor(d *door) *door {
	d.t.Helper()
	d.dir, d.now = d.t.TempDir(), start
	d.start()
	d.t.Cleanup(d.stop)
	return d
}

func (d *door) start() {
	d.t.Helper()
	store, err := storage.Open(d.dir, storage.Options{Sync: storage.SyncNever(), Window: 4 << 20})
	if err != nil {
		d.t.Fatal(err)
	}
	state, err := recovery.Restore(store, recovery.Options{Now: d.now})
	if err != nil {
		d.t.Fatal(err)
	}
	d.disk = &disk{Store: store}
	m := broker.New(d.disk, state, broker.Options{MaxPayload: d.config.MaxPayload, Cache: cmp.Or(d.cache, 1<<20)})
	loop := netproto.NewStepped(m, d.disk, netproto.LoopConfig{Clock: func() int64 { d.now += d.tick; return d.now }})
	d.protocol = New(d.config)
	d.network = d.serve(loop, d.protocol)
}

// serve has the loop serve another protocol, too.
func (d *door) serve(loop netproto.Stepped, p *Protocol) *inmemory.Network {
	server := netproto.NewServer(nil, netproto.Config{Loop: loop.Loop, Protocol: p, WriteTimeout: 100 * 24 * time.Hour}) // the clock jumps
	return &inmemory.Network{Server: server, Loop: loop, Wait: func() bool { return d.wait(p) }}
}

// wait lets a login end, or time pass.
func (d *door) wait(p *Protocol) bool {
	for _, s := range p.sessions {
		if s.cancelLogin != nil {
			<-d.network.Loop.Woken()
			return true
		}
	}
	idle := d.network.Loop.Idle().Milliseconds()
	if !d.passes || idle > 60_000 {
		return false
	}
	d.now += idle
	return true
}

// settle makes turns until all that was sent is served.
func (d *door) settle() {
	d.t.Helper()
	if err := d.network.Settle(); err != nil {
		d.t.Fatal(err)
	}
}

// do runs fn in a turn.
func (d *door) do(fn func(tx *broker.Tx) error) {
	d.t.Helper()
	if err := d.network.Await(func() error { return d.network.Loop.Do(fn) }); err != nil {
		d.t.Fatal(err)
	}
}

// held is what the sessions keep.
func (d *door) held() (n int) {
	d.settle()
	for _, s := range d.protocol.sessions {
		n += s.peer.Held()
	}
	return n
}

// stop closes everything; a second call does nothing.
func (d *door) stop() {
	d.t.Helper()
	if d.network == nil {
		return
	}
	if d.disk.commit != nil {
		d.t.Error("there was no commit")
	}
	err := errors.Join(d.network.Loop.End(), d.disk.Close())
	if d.network = nil; err != nil {
		d.t.Fatal(err)
	}
}

func (d *door) restart() {
	d.t.Helper()
	d.stop()
	d.start()
}

// conn is a client that sends and expects bytes.
type conn struct {
	t testing.TB
	io.WriteCloser
	in   *bufio.Reader
	wire *inmemory.Client // nil of redis-server
	door *door            // of the wire
}

func (d *door) dial() *conn {
	d.t.Helper()
	return d.dialTo(d.network)
}

func (d *door) dialTo(n *inmemory.Network) *conn {
	d.t.Helper()
	c, err := n.Dial()
	if err != nil {
		d.t.Fatal(err)
	}
	return &conn{d.t, c, bufio.NewReader(c), c, d}
}

func (c *conn) Read(b []byte) (int, error) { return c.in.Read(b) }

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
	if got, err := io.ReadAll(c); len(got) > 0 || err != nil {
		c.t.Fatalf("got %q (%v), want the end", got, err)
	}
}

// wantNothing expects that no byte comes, whatever turn follows.
func (c *conn) wantNothing() {
	c.t.Helper()
	c.door.settle()
	c.hasNothing()
}

// hasNothing expects that no byte has come until now.
func (c *conn) hasNothing() {
	c.t.Helper()
	if got := c.wire.Arrived(); c.in.Buffered()+len(got) > 0 {
		c.t.Fatalf("a reply left before what it shows was on disk: %q", got)
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
	line, err := c.in.ReadString('\n')
	if err != nil {
		c.t.Fatalf("after %q: %v", line, err)
	}
	return strings.TrimSuffix(line, "\r\n")
}

func (c *conn) readFull(b []byte) {
	c.t.Helper()
	if _, err := io.ReadFull(c, b); err != nil {
		c.t.Fatal(err)
	}
}

// do sends a command and returns its reply.
func (c *conn) do(words ...string) reply {
	c.t.Helper()
	c.send(request(words...))
	return c.read()
}

// read returns the next reply.
func (c *conn) read() reply {
	c.t.Helper()
	r, err := readReply(c.in)
	if err != nil {
		c.t.Fatalf("read: %v", err)
	}
	return r
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
