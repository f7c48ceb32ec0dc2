package peer

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto"
	"github.com/holdfast-queue/holdfast/netproto/access"
	"github.com/holdfast-queue/holdfast/netproto/pinpriq"
	"github.com/holdfast-queue/holdfast/netproto/resp"
	"github.com/holdfast-queue/holdfast/recovery"
	"github.com/holdfast-queue/holdfast/storage"
)

// patience bounds every wait: far longer than any should take.
const patience = 30 * time.Second

// diary is a log that a test reads.
type diary struct {
	mu   sync.Mutex
	text strings.Builder
}

func (d *diary) Write(b []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.Write(b)
}

func (d *diary) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.String()
}

func (d *diary) logger() *slog.Logger { return slog.New(slog.NewTextHandler(d, nil)) }

// owner is a server of queues.
type owner struct {
	doors map[string]Door
	addrs map[string]string // where it serves clients itself
	store *storage.Store
	log   *diary
}

func (o *owner) door(name string) (Door, error) {
	if d := o.doors[name]; d != nil {
		return d, nil
	}
	return nil, errors.New("no such door")
}

// own serves the queues until the test ends. Its doors speak TLS if c says so.
func own(t testing.TB, c *tls.Config) *owner {
	t.Helper()
	o := &owner{make(map[string]Door), make(map[string]string), nil, &diary{}}
	users, err := access.NewUsers([]access.User{
		{Name: "ann", Certificates: []string{"cert-ann"}, Grants: access.Everything()},
		{Name: "bob", Password: "the password", Grants: access.Everything()},
		{Name: access.Default, Password: "default", Grants: access.Everything()},
	})
	must(t, err)
	control := access.NewControl(users)
	const maxPayload = 16 << 20
	o.store, err = storage.Open(t.TempDir(), storage.Options{Sync: storage.SyncNever(), MaxPayload: maxPayload})
	must(t, err)
	state, err := recovery.Restore(o.store, recovery.Options{Now: time.Now().UnixMilli()})
	must(t, err)
	machine := broker.New(o.store, state, broker.Options{MaxPayload: maxPayload})
	loop, err := netproto.StartLoop(machine, o.store, netproto.LoopConfig{Goroutines: os.Getenv("HOLDFAST_GOROUTINES") != ""})
	must(t, err)
	t.Cleanup(func() { must(t, errors.Join(loop.Close(), o.store.Close())) })
	for _, p := range []netproto.Protocol{
		resp.New(resp.Config{Users: control, Since: time.Now(), Logger: o.log.logger(), MaxPayload: maxPayload}),
		pinpriq.Protocol{Users: access.Plain{Control: control, User: "bob"}},
	} {
		l := listen(t)
		s := netproto.NewServer(l, netproto.Config{Protocol: p, Loop: loop, TLS: c, Logger: o.log.logger()})
		o.serve(t, p.Name(), l, s)
	}
	return o
}

func (o *owner) serve(t testing.TB, name string, l *net.TCPListener, s interface {
	Pass(net.Conn, netip.AddrPort)
	Serve() error
	Close()
}) {
	served := make(chan error, 1)
	go func() { served <- s.Serve() }() // ends with Close
	t.Cleanup(func() {
		s.Close()
		must(t, <-served)
	})
	o.doors[name], o.addrs[name] = s.Pass, l.Addr().String()
}

// forward passes a door on until the test ends, and returns where it accepts.
func forward(t testing.TB, f Forwarder) string {
	t.Helper()
	if f.Logger == nil {
		f.Logger = slog.New(slog.DiscardHandler)
	}
	l, done := listen(t), make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	go func() { // ends with ctx
		defer close(done)
		f.Forward(ctx, l)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return l.Addr().String()
}

// dial makes a connection of a client, from the address host.
func dial(t testing.TB, address, host string) *net.TCPConn {
	t.Helper()
	d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(host), 0))}
	conn, err := d.Dial("tcp", address)
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	must(t, conn.SetDeadline(time.Now().Add(patience)))
	return conn.(*net.TCPConn)
}

// passages calls do with where the doors of a server are reached: by itself, and through a node.
func passages(t *testing.T, doors *tls.Config, do func(t *testing.T, o *owner, address func(door string) string)) {
	t.Run("directly", func(t *testing.T) {
		o := own(t, doors)
		do(t, o, func(door string) string { return o.addrs[door] })
	})
	for name, encrypted := range map[string]bool{"through a node": false, "through a node by TLS": true} {
		t.Run(name, func(t *testing.T) {
			var far, near func() *tls.Config
			if encrypted {
				cell := newAuthority(t)
				far, near = cell.server(t, tls.RequireAndVerifyClientCert).Clone, cell.client(t, "b").Clone
			}
			o, to := own(t, doors), NewOwner()
			to.Set(serveNode(t, Config{TLS: far, Door: o.door}))
			do(t, o, func(door string) string {
				return forward(t, Forwarder{Client: NewClient(near), Owner: to, Door: door})
			})
		})
	}
}

// client is one of Redis.
func client(t *testing.T, address string, o redis.Options) *redis.Client {
	o.Addr, o.MaxRetries, o.ReadTimeout, o.PoolSize = address, -1, patience, 2
	c := redis.NewClient(&o)
	t.Cleanup(func() { c.Close() })
	return c
}

func TestAClientIsServedThroughANodeAsDirectly(t *testing.T) {
	clients := newAuthority(t)
	for name, encrypted := range map[string]bool{"plain": false, "TLS": true} {
		t.Run(name, func(t *testing.T) {
			var doors, certified *tls.Config
			options := redis.Options{Username: "bob", Password: "the password"}
			if encrypted {
				doors, certified = clients.server(t, tls.VerifyClientCertIfGiven), clients.client(t, "cert-ann")
				options = redis.Options{TLSConfig: certified}
			}
			passages(t, doors, func(t *testing.T, _ *owner, address func(string) string) {
				c := client(t, address("redis"), options)
				who := map[bool]string{false: "bob", true: "ann"}[encrypted]
				if got, err := c.Do(t.Context(), "ACL", "WHOAMI").Text(); got != who || err != nil {
					t.Errorf("the user is %q, %v", got, err)
				}
				long := strings.Repeat("0123456789abcdef", 1<<20)
				must(t, c.Do(t.Context(), "QPUSH", "long", long).Err())
				got, err := c.Do(t.Context(), "LINDEX", "long", 0).Text()
				if err != nil || got != long {
					t.Errorf("%d bytes come back, %v", len(got), err)
				}
				claimed := make(chan error, 1)
				go func() { claimed <- c.Do(t.Context(), "QCLAIM", "q", "BLOCK", patience.Milliseconds()).Err() }() // ends with the push
				must(t, c.Do(t.Context(), "QPUSH", "q", "x", "BLOCK", 1).Err())
				must(t, <-claimed)
			})
		})
	}
}

func TestAClientThatEndsItsSideGetsAllReplies(t *testing.T) {
	passages(t, nil, func(t *testing.T, _ *owner, address func(string) string) {
		conn := dial(t, address("pinpriq"), "127.0.0.1")
		// Push to queue q, and pop of it.
		_, err := conn.Write([]byte("\x70\x00\x01\x00\x00\x01\x00\x00\x00\x01xq\x50\x00\x01q"))
		must(t, errors.Join(err, conn.CloseWrite()))
		if got, err := io.ReadAll(conn); string(got) != "\x00\x01\x00\x00\x00\x01x" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
	})
}

func TestAClientHasItsOwnAddressAndItsPenalties(t *testing.T) {
	passages(t, nil, func(t *testing.T, o *owner, address func(string) string) {
		door := address("redis")
		guesser, other := dial(t, door, "127.0.0.2"), dial(t, door, "127.0.0.3")
		say := func(conn *net.TCPConn, request, want string) {
			t.Helper()
			_, err := io.WriteString(conn, request)
			must(t, err)
			got := make([]byte, len(want))
			if _, err := io.ReadFull(conn, got); string(got) != want || err != nil {
				t.Fatalf("%q gets %q, %v", request, got, err)
			}
		}
		for range 4 { // the next one waits for 0.8 s
			say(guesser, "AUTH bob wrong\r\n", "-WRONGPASS")
			_, _ = guesser.Read(make([]byte, 1<<10))
		}
		if got, want := o.log.String(), "remote="+guesser.LocalAddr().String(); strings.Count(got, want) != 4 {
			t.Errorf("want %s in the log: %s", want, got)
		}
		done := make(chan string, 2)
		go func() { // ends with its penalty
			say(guesser, "AUTH bob wrong\r\n", "-WRONGPASS")
			done <- "guesser"
		}()
		say(other, "AUTH bob wrong\r\n", "-WRONGPASS")
		done <- "other"
		if <-done != "other" {
			t.Error("another address bears the penalty")
		}
		<-done
	})
}

// deaf is a door that keeps what it gets.
type deaf chan net.Conn

// Pass is a Door.
func (d deaf) Pass(conn net.Conn, _ netip.AddrPort) { d <- conn }

// deafNode is a node with such a door, and its address.
func deafNode(t *testing.T) (string, deaf) {
	d := make(deaf, 1)
	return serveNode(t, Config{Door: func(string) (Door, error) { return d.Pass, nil }}), d
}

func wantEnd(t *testing.T, conn net.Conn) {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	_, err := conn.Read(make([]byte, 1))
	if wait := net.Error(nil); err == nil || errors.As(err, &wait) && wait.Timeout() {
		t.Errorf("the connection has not ended: %v", err)
	}
}

func TestAClientThatComesBeforeAnOwnerIsServedByIt(t *testing.T) {
	to, refused := NewOwner(), make(chan struct{}, 1)
	door := forward(t, Forwarder{Client: NewClient(nil), Owner: to, Door: "redis"})
	conn := dial(t, door, "127.0.0.1")
	d := make(deaf, 1)
	to.Set(serveNode(t, Config{Door: func(string) (Door, error) {
		select {
		case refused <- struct{}{}: // the first one
			return nil, errors.New("not yet")
		default:
			return d.Pass, nil
		}
	}}))
	_, err := io.WriteString(conn, "hello")
	must(t, err)
	got := make([]byte, 5)
	if _, err := io.ReadFull(<-d, got); string(got) != "hello" || err != nil {
		t.Errorf("the owner gets %q, %v", got, err)
	}
}

func TestAClientIsClosedWhenNobodyOwnsForLong(t *testing.T) {
	log := &diary{}
	wantEnd(t, dial(t, forward(t, Forwarder{Client: NewClient(nil), Owner: NewOwner(), Door: "redis", Logger: log.logger()}), "127.0.0.1"))
	if got := log.String(); !strings.Contains(got, "no node owns the queues") {
		t.Errorf("the log: %s", got)
	}
}

func TestANewOwnerEndsWhatWasPassedToTheOldOne(t *testing.T) {
	first, one := deafNode(t)
	second, other := deafNode(t)
	to := NewOwner()
	to.Set(first)
	door := forward(t, Forwarder{Client: NewClient(nil), Owner: to, Door: "redis"})
	before := dial(t, door, "127.0.0.1")
	old := <-one
	to.Set(first) // which changes nothing
	_, err := io.WriteString(old, "x")
	must(t, err)
	if _, err := before.Read(make([]byte, 1)); err != nil {
		t.Fatalf("the same owner ends it: %v", err)
	}
	to.Set(second)
	wantEnd(t, before)
	wantEnd(t, old)
	dial(t, door, "127.0.0.1")
	<-other
}

func TestAnAttemptToReachTheOldOwnerIsGivenUp(t *testing.T) {
	silent, to := listen(t), NewOwner() // accepts, and says nothing
	to.Set(silent.Addr().String())
	dial(t, forward(t, Forwarder{Client: NewClient(nil), Owner: to, Door: "redis"}), "127.0.0.1")
	attempt, err := silent.Accept()
	must(t, err)
	defer attempt.Close()
	second, d := deafNode(t)
	to.Set(second)
	select {
	case <-d:
	case <-time.After(patience):
		t.Error("the new owner is not asked")
	}
}

func TestTooManyClientsAreClosed(t *testing.T) {
	to := NewOwner()
	address, d := deafNode(t)
	to.Set(address)
	door := forward(t, Forwarder{Client: NewClient(nil), Owner: to, Door: "redis", MaxConns: 1})
	first := dial(t, door, "127.0.0.1")
	conn := <-d
	wantEnd(t, dial(t, door, "127.0.0.1"))
	first.Close()
	wantEnd(t, conn)
	conn.Close()
	for { // until the place is free
		dial(t, door, "127.0.0.1")
		select {
		case <-d:
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// The owner's side ends first: a client that does not end its own loses its place all the same.
func TestAClientThatStaysBehindTheOwnersEndIsClosed(t *testing.T) {
	to := NewOwner()
	address, d := deafNode(t)
	to.Set(address)
	conn := dial(t, forward(t, Forwarder{Client: NewClient(nil), Owner: to, Door: "redis"}), "127.0.0.1")
	far := (<-d).(*net.TCPConn)
	must(t, far.CloseWrite())
	wantEnd(t, conn)
	_, err := io.WriteString(conn, "late")
	must(t, err)
	if got, err := io.ReadAll(far); string(got) != "late" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestForwardLeavesNothingBehind(t *testing.T) {
	for name, owned := range map[string]bool{"passed on": true, "waiting": false} {
		t.Run(name, func(t *testing.T) {
			before, to := runtime.NumGoroutine(), NewOwner()
			address, d := deafNode(t)
			if owned {
				to.Set(address)
			}
			ctx, cancel := context.WithCancel(t.Context())
			l, done := listen(t), make(chan struct{})
			go func() { // ends with ctx
				defer close(done)
				Forwarder{Client: NewClient(nil), Owner: to, Door: "redis", Logger: slog.New(slog.DiscardHandler)}.Forward(ctx, l)
			}()
			for range 2 * maxReaching {
				conn := dial(t, l.Addr().String(), "127.0.0.1")
				defer wantEnd(t, conn)
				if owned {
					far := <-d
					defer far.Close()
					defer wantEnd(t, far)
				}
			}
			cancel()
			<-done
			const served = 2 // the node's server
			for deadline := time.Now().Add(patience); runtime.NumGoroutine() > before+served; time.Sleep(time.Millisecond) {
				if time.Now().After(deadline) {
					all := make([]byte, 1<<20)
					t.Fatalf("%d goroutines more: %s", runtime.NumGoroutine()-before, all[:runtime.Stack(all, true)])
				}
			}
		})
	}
}

func TestAClientThatStillWaitsForAnOwnerAtTheEndIsHandedOver(t *testing.T) {
	silent, to, own := listen(t), NewOwner(), make(chan net.Addr, 1)
	to.Set(silent.Addr().String())
	ctx, cancel := context.WithCancel(t.Context())
	l, done := listen(t), make(chan struct{})
	go func() { // ends with ctx
		defer close(done)
		Forwarder{Client: NewClient(nil), Owner: to, Door: "redis", Logger: slog.New(slog.DiscardHandler), Own: func(client *net.TCPConn) {
			own <- client.RemoteAddr()
			_ = client.Close()
		}}.Forward(ctx, l)
	}()
	conn := dial(t, l.Addr().String(), "127.0.0.1")
	asked, err := silent.Accept() // so it waits
	if err != nil {
		t.Fatal(err)
	}
	defer asked.Close()
	cancel()
	<-done
	select {
	case remote := <-own:
		if remote.String() != conn.LocalAddr().String() {
			t.Errorf("it is the client at %v, want %v", remote, conn.LocalAddr())
		}
	case <-time.After(patience):
		t.Error("the client is not handed over")
	}
}
