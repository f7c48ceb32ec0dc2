package client_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/cmd/daemon"
	"github.com/holdfast-queue/holdfast/netproto/client"
)

// The folder that the test binary serves in place of testing, when it is the server, and where.
const (
	serveDir  = "HOLDFAST_TEST_SERVE"
	serveAddr = "HOLDFAST_TEST_ADDR"
)

func TestMain(m *testing.M) {
	dir := os.Getenv(serveDir)
	if dir == "" {
		code := m.Run()
		if err := endExamples(); err != nil {
			fmt.Fprintln(os.Stderr, "the server of the examples:", err)
			code = 1
		}
		os.Exit(code)
	}
	fmt.Fprintln(os.Stderr, daemon.Run(context.Background(), daemon.Config{
		Data: dir, Redis: os.Getenv(serveAddr), Cache: 16 << 20, MaxPayload: broker.MaxPayload,
		Listening: func(_ string, addr net.Addr) { fmt.Println(addr) },
	}))
	os.Exit(1)
}

// victim is a server in a process of its own, which can be killed.
type victim struct {
	cmd  *exec.Cmd
	addr string
}

func startVictim(t testing.TB, dir, addr string) *victim {
	t.Helper()
	v := &victim{cmd: exec.Command(os.Args[0])}
	v.cmd.Env = append(os.Environ(), serveDir+"="+dir, serveAddr+"="+addr)
	v.cmd.Stderr = os.Stderr
	out, err := v.cmd.StdoutPipe()
	ok(t, err)
	ok(t, v.cmd.Start())
	t.Cleanup(v.kill)
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatal("the server does not start")
	}
	v.addr = lines.Text()
	return v
}

// kill ends the process as kill -9 does. A second call does nothing.
func (v *victim) kill() {
	_ = v.cmd.Process.Kill()
	_ = v.cmd.Wait()
}

// Leases are so long that none ends. So an acknowledgement that was not repeated would leave its
// packet claimed, and a claim whose answer was lost must be harvested.
func TestConsumeOutlivesAServerThatIsKilledAndHandlesEachPacketOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := startVictim(t, dir, "127.0.0.1:0")
	c, ctx := connect(t, server.addr), t.Context()
	ok(t, c.Set(ctx, "q", "max-attempts", "0")) // makes the queue last
	const packets, kills = 400, 3
	for i := range packets {
		must(c.Push(ctx, "q", []byte(strconv.Itoa(i))))(t)
	}
	var mu sync.Mutex
	handled := make(map[string]int)
	step := make(chan struct{}, 2*packets)
	ended := consume(ctx, c, "q", func(ctx context.Context, p *client.Packet) error {
		mu.Lock()
		defer mu.Unlock()
		handled[string(p.Payload)]++
		step <- struct{}{}
		return nil
	}, client.Concurrency(8), client.Lease(time.Hour))
	for range kills {
		for range packets / (kills + 2) {
			receive(t, step)
		}
		server.kill()
		server = startVictim(t, dir, server.addr)
	}
	watcher := connect(t, server.addr)
	for begin := time.Now(); ; {
		stats := must(watcher.Stats(ctx, "q"))(t)
		mu.Lock()
		rest := packets - len(handled)
		mu.Unlock()
		if stats.Claimed == int64(rest) {
			break
		} else if time.Since(begin) > limit {
			t.Fatalf("%d packets are claimed, and %d are not handled", stats.Claimed, rest)
		}
	}
	drain(t, c)
	ok(t, receive(t, ended))
	must(watcher.Harvest(ctx, "q"))(t)
	for _, p := range must(watcher.Claim(ctx, "q", client.Count(packets)))(t) {
		handled[string(p.Payload)]++
	}
	for i := range packets {
		want(t, "times that a packet was handled", handled[strconv.Itoa(i)], 1)
	}
}

func TestAHandlerIsToldThatTheServerIsAwayForTooLong(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := startVictim(t, dir, "127.0.0.1:0")
	c, ctx := connect(t, server.addr), t.Context()
	must(c.Push(ctx, "q", nil))(t)
	begun, told, again := make(chan struct{}), make(chan struct{}), make(chan struct{})
	consume(ctx, c, "q", func(ctx context.Context, p *client.Packet) error {
		if p.Attempt > 1 {
			close(again)
			return nil
		}
		close(begun)
		<-ctx.Done()
		close(told)
		return nil
	}, client.Lease(time.Second))
	receive(t, begun)
	server.kill()
	receive(t, told)
	startVictim(t, dir, server.addr)
	receive(t, again)
	drain(t, c)
	want(t, "left", len(must(c.Queues(ctx, ""))(t)), 0)
}

// A stub answers the connection's greeting and then hangs up at the first request.
func TestAPushWhoseAnswerIsLostIsNotRepeated(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	defer l.Close()
	var pushes int
	var served sync.WaitGroup
	served.Go(func() { // ends when l is closed
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			lines := bufio.NewScanner(conn)
			for lines.Scan() {
				switch lines.Text() {
				case "hello":
					fmt.Fprint(conn, "-ERR unknown command\r\n")
				case "client":
					fmt.Fprint(conn, "+OK\r\n")
				case "QPUSH", "QACK":
					pushes++
					_ = conn.Close()
				}
			}
		}
	})
	c := client.New(&redis.Options{Addr: l.Addr().String(), Protocol: 2, DisableIdentity: true, MaxRetries: 2})
	defer c.Close()
	if _, err := c.Push(t.Context(), "q", nil); !errors.Is(err, client.ErrUnknown) {
		t.Errorf("the push gives %v, want ErrUnknown", err)
	}
	if err := c.Claimed("q", "1", 2).Ack(t.Context()); err == nil || errors.Is(err, client.ErrUnknown) {
		t.Errorf("the ack gives %v", err)
	}
	_ = l.Close()
	served.Wait()
	want(t, "requests: a push, an ack, and the ack twice again", pushes, 4)
	if _, err := c.Push(t.Context(), "q", nil); err == nil || errors.Is(err, client.ErrUnknown) {
		t.Errorf("a push to nobody gives %v", err)
	}
}

// A server that is stopped answers nothing. The packets begin at different times between two looks
// at the leases.
func TestAHandlerIsToldBeforeItsLeaseEndsThoughTheServerDoesNotAnswer(t *testing.T) {
	t.Parallel()
	server := startVictim(t, t.TempDir(), "127.0.0.1:0")
	c, ctx := connect(t, server.addr), t.Context()
	const packets, lease = 5, 12 * time.Second
	begun, left := make(chan struct{}), make(chan time.Duration, packets)
	consume(ctx, c, "q", func(ctx context.Context, p *client.Packet) error {
		if p.Attempt == 1 {
			begun <- struct{}{}
			<-ctx.Done()
			left <- time.Until(p.LeaseEnd)
		}
		return nil
	}, client.Lease(lease), client.Concurrency(packets))
	for i := range packets {
		must(c.Push(ctx, "q", nil, client.Delay(time.Duration(i)*lease/30)))(t)
	}
	for range packets {
		receive(t, begun)
	}
	ok(t, server.cmd.Process.Signal(syscall.SIGSTOP))
	for range packets {
		if d := receive(t, left); d < 0 {
			t.Errorf("a handler was told %v after the end of its lease", -d)
		}
	}
	ok(t, server.cmd.Process.Signal(syscall.SIGCONT))
	drain(t, c)
}
