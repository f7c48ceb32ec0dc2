package client_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-queue/holdfast/netproto/client"
	"github.com/holdfast-queue/holdfast/storage"
)

func TestATakeFromNothingBringsNothing(t *testing.T) {
	addr := startServer(t, storage.SyncNever())
	for _, protocol := range []int{2, 3} {
		c := client.New(&redis.Options{Addr: addr, Protocol: protocol})
		defer c.Close()
		for _, options := range [][]client.Option{nil, {client.Block(time.Millisecond)}} {
			want(t, "popped", len(must(c.Pop(t.Context(), "q", options...))(t)), 0)
		}
	}
}

// blocked waits until a connection of the server waits in a command.
func blocked(t testing.TB, c *client.Client) {
	t.Helper()
	awaitBlocked(t, c, true)
}

// awaitBlocked waits until some connection of the server waits in a command, or none does.
func awaitBlocked(t testing.TB, c *client.Client, some bool) {
	t.Helper()
	for begin := time.Now(); time.Since(begin) < limit; {
		clients := must(c.Redis().Info(t.Context(), "clients").Result())(t)
		if strings.Contains(clients, "blocked_clients:0\r\n") != some {
			return
		}
	}
	t.Fatalf("somebody waits: never %v", some)
}

func TestAWaitEndsWithItsContextAndLosesNothing(t *testing.T) {
	c := newClient(t)
	for i := range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		type result struct {
			packets []*client.Packet
			err     error
		}
		popped := make(chan result, 1)
		go func() { // ends with ctx
			packets, err := c.Pop(ctx, "q", client.Block(0))
			popped <- result{packets, err}
		}()
		blocked(t, c)
		if i == 0 { // nothing else ends the wait
			cancel()
			want(t, "the end", receive(t, popped).err, context.Canceled)
			continue
		}
		go cancel()
		must(c.Push(t.Context(), "q", nil))(t)
		switch r := receive(t, popped); {
		case r.err == nil:
			want(t, "popped", len(r.packets), 1)
			want(t, "left", must(c.Len(t.Context(), "q"))(t), 0)
		case errors.Is(r.err, context.Canceled):
			want(t, "left", len(must(c.Pop(t.Context(), "q"))(t)), 1)
		default:
			t.Fatal(r.err)
		}
	}
}

func TestAWaitEndsWhenAPacketComes(t *testing.T) {
	c, ctx := newClient(t), t.Context()
	claimed := make(chan error, 1)
	go func() { // ends with the push
		packets, err := c.Claim(ctx, "a", client.Or("b", "c"), client.Newest(), client.Block(limit))
		if err == nil && (len(packets) != 1 || packets[0].Queue != "c") {
			err = fmt.Errorf("claimed %v", packets)
		}
		claimed <- err
	}()
	blocked(t, c)
	must(c.Push(ctx, "c", nil))(t)
	ok(t, receive(t, claimed))
}

func TestClaimsGoThroughAQueue(t *testing.T) {
	c, ctx := newClient(t), t.Context()
	ok(t, c.Set(ctx, "q", "max-attempts", "1"))
	must(c.PushBatch(ctx, "q", make([][]byte, 5)))(t)
	n := 0
	for p, err := range c.Claims(ctx, "q", client.Count(2)) {
		ok(t, err)
		ok(t, p.Ack(ctx))
		if n++; n == 3 { // one more is claimed by then
			break
		}
	}
	stats := must(c.Stats(ctx, "q"))(t)
	want(t, "left", fmt.Sprint(stats.Ready, stats.Claimed, stats.Acked), "2 0 3")
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for p, err := range c.Claims(ctx, "q") {
		if err != nil {
			want(t, "the end", err, context.Canceled)
			break
		}
		ok(t, p.Ack(ctx))
		cancel()
	}
	want(t, "left", must(c.Len(t.Context(), "q"))(t), 1)
}

func TestConnectionsOfAClientAreOneConsumer(t *testing.T) {
	addr := startServer(t, storage.SyncNever())
	c, other, ctx := connect(t, addr), connect(t, addr), t.Context()
	ok(t, c.Set(ctx, "q", "exclusive-consumer", "yes"))
	done := make(chan error, 3)
	for range cap(done) {
		go func() { // ends with its packet
			_, err := c.Claim(ctx, "q", client.Block(limit))
			done <- err
		}()
	}
	blocked(t, c)
	if _, err := other.Claim(ctx, "q"); !errors.Is(err, client.ErrInUse) {
		t.Errorf("a second client gets %v, want ErrInUse", err)
	}
	must(c.PushBatch(ctx, "q", make([][]byte, 3)))(t)
	for range cap(done) {
		ok(t, receive(t, done))
	}
}

func TestAClaimFillsABatch(t *testing.T) {
	c, ctx := newClient(t), t.Context()
	claimed := make(chan []*client.Packet, 1)
	claim := func(ctx context.Context, options ...client.Option) {
		packets, _ := c.Claim(ctx, "q", append(options, client.Count(2))...)
		claimed <- packets
	}
	go claim(ctx, client.Fill(limit), client.Block(0)) // ends with the second push
	blocked(t, c)
	must(c.Push(ctx, "q", []byte("a")))(t)
	want(t, "ready", must(c.Len(ctx, "q"))(t), 1)
	must(c.Push(ctx, "q", []byte("b")))(t)
	want(t, "the batch", len(receive(t, claimed)), 2)
	claim(ctx, client.Fill(limit)) // there is none
	want(t, "the batch", len(receive(t, claimed)), 0)
	must(c.Push(ctx, "q", []byte("c")))(t)
	waiting, cancel := context.WithCancel(ctx)
	go claim(waiting, client.Fill(limit)) // ends with its context
	blocked(t, c)
	cancel()
	want(t, "the batch", len(receive(t, claimed)), 0)
	claim(ctx, client.Fill(time.Millisecond))
	want(t, "the batch", len(receive(t, claimed)), 1)
}

// A share that rests for no time would be asked again without a pause.
func TestAHoldHasATime(t *testing.T) {
	c, ctx, asked := newClient(t), t.Context(), &requests{}
	c.Redis().AddHook(asked)
	for d, ms := range map[time.Duration]string{-time.Second: "1000", 0: "1000", time.Minute: "60000", 25 * time.Hour: "86400000"} {
		_, err := c.Claimed("q", "1", 1).Nack(ctx, client.Hold(d, errors.New("429")))
		if !errors.Is(err, client.ErrStale) || fmt.Sprint(asked.last) != "[QNACK q 1 1 REASON 429 HOLD "+ms+"]" {
			t.Errorf("Hold(%v) is %v, %v; want %s ms", d, asked.last, err, ms)
		}
	}
}

// requests has the last request of a client.
type requests struct{ last []any }

func (*requests) DialHook(next redis.DialHook) redis.DialHook { return next }
func (*requests) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
func (r *requests) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd) // sends a HELLO before, at first
		r.last = cmd.Args()
		return err
	}
}
