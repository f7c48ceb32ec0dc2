package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-queue/holdfast/netproto/access"
	"github.com/holdfast-queue/holdfast/netproto/client"
	"github.com/holdfast-queue/holdfast/storage"
)

// consume runs Consume in the background. The test must end it.
func consume(ctx context.Context, c *client.Client, queue string, h client.Handler, options ...client.Option) <-chan error {
	ended := make(chan error, 1)
	go func() { ended <- c.Consume(ctx, queue, h, options...) }() // ends with ctx or Shutdown
	return ended
}

// receive waits for a value.
func receive[T any](t testing.TB, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(limit):
		t.Fatal("nothing came in time")
	}
	panic("unreachable")
}

// drain ends all consumers of a client and waits for their handlers.
func drain(t testing.TB, c *client.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	ok(t, c.Shutdown(ctx))
}

func explode() { panic("boom") }

// hostile is an error that nobody may look into.
type hostile struct{}

func (hostile) Error() string { return "hostile" }
func (hostile) Unwrap() error { panic("hostile") }

// What the server refuses of an answer is left out, so that work is not done again.
func TestAnAnswerThatIsRefusedIsSentAgainPlainly(t *testing.T) {
	addr, ctx, failure := startServer(t, storage.SyncNever()), t.Context(), errors.New("busy")
	for _, k := range []struct {
		queue   string
		cost    int64
		err     error
		state   client.State
		attempt int
		refused bool
	}{
		{"dear", 1e7, nil, "", 0, true},
		{"dear failure", 1e7, failure, client.StateDelayed, 1, true},
		{"late", 0, client.RetryIn(11*365*24*time.Hour, failure), client.StateDelayed, 1, true},
		{"held", 0, client.Hold(48*time.Hour, failure), client.StateReady, 0, false},
	} {
		c := connect(t, addr)
		var lines bytes.Buffer
		c.Logger = slog.New(slog.NewTextHandler(&lines, nil))
		ok(t, c.Set(ctx, k.queue, "backoff-min", "600000"))
		id := must(c.Push(ctx, k.queue, nil))(t)
		ok(t, receive(t, consume(ctx, c, k.queue, func(_ context.Context, p *client.Packet) error {
			c.StopClaiming()
			p.Cost = k.cost
			return k.err
		})))
		p, err := c.Show(ctx, k.queue, id)
		if err != nil {
			p = new(client.Packet)
		}
		if p.State != k.state || p.Attempt != k.attempt || k.err != nil && p.Reason != "busy" {
			t.Errorf("%s: it is %q at attempt %d, because %q; want %q, %d", k.queue, p.State, p.Attempt, p.Reason, k.state, k.attempt)
		}
		want(t, k.queue+": a word of a refusal", strings.Contains(lines.String(), "level=WARN msg=\"the answer was refused"), k.refused)
	}
}

// The first packet pushes the second one and comes back at once, which a look beside its handler
// would miss. What is delayed is not waited for.
func TestABurstEndsWhenThereIsNothingToClaim(t *testing.T) {
	c, ctx := newClient(t), t.Context()
	must(c.Push(ctx, "q", []byte("later"), client.Delay(time.Hour)))(t)
	must(c.Push(ctx, "q", []byte("first")))(t)
	must(c.Push(ctx, "other", []byte("third")))(t)
	var mu sync.Mutex
	var handled []string
	handler := func(ctx context.Context, p *client.Packet) error {
		mu.Lock()
		defer mu.Unlock()
		if handled = append(handled, string(p.Payload)); len(handled) > 1 {
			return nil
		}
		_, err := c.Push(ctx, "q", []byte("second"))
		return errors.Join(err, client.RetryIn(0, errors.New("again")))
	}
	ok(t, receive(t, consume(ctx, c, "q", handler, client.Burst(), client.Concurrency(3), client.Or("other"))))
	slices.Sort(handled)
	want(t, "handled", strings.Join(handled, " "), "first first second third")
	want(t, "packets that are left", must(c.Len(ctx, "q"))(t), 1)
	must(c.PushBatch(ctx, "q", make([][]byte, 5)))(t)
	ok(t, c.ConsumeBatch(ctx, "q", 3, time.Millisecond, func(context.Context, []*client.Packet) error { return nil }, client.Burst()))
	want(t, "packets that are left", must(c.Len(ctx, "q"))(t), 1)
	ok(t, c.Consume(ctx, "nothing", nil, client.Burst()))
	if _, err := c.Claim(ctx, "q", client.Burst()); !errors.Is(err, client.ErrInvalid) {
		t.Errorf("a claim with Burst gives %v, want ErrInvalid", err)
	}
}

func TestAClientLogsWhereTheProgramDoes(t *testing.T) {
	var lines bytes.Buffer
	before := slog.Default()
	defer slog.SetDefault(before)
	slog.SetDefault(slog.New(slog.NewTextHandler(&lines, nil)))
	c, ctx := newClient(t), t.Context()
	must(c.Push(ctx, "q", nil))(t)
	ended := consume(ctx, c, "q", func(context.Context, *client.Packet) error {
		c.StopClaiming()
		return errors.New("no luck")
	})
	ok(t, receive(t, ended))
	if !strings.Contains(lines.String(), `msg="the handler failed" queue=q id=1 attempt=1 error="no luck"`) {
		t.Errorf("it says %q", &lines)
	}
}

// Consume does the same for a worker with the least rights as where there are no users. The second
// client of each test may do everything.
func TestConsume(t *testing.T) {
	everything := access.User{Name: "boss", Password: "boss", Grants: access.Everything(), Operate: true}
	worker := access.User{Name: "worker", Password: "worker", Grants: []access.Grant{{Glob: "*", Rights: access.Push | access.Take | access.Look}}}
	for name, test := range map[string]func(t *testing.T, c, boss *client.Client){
		"WhatAHandlerReturnsDecides":                   whatAHandlerReturnsDecides,
		"LeasesAreRenewedWhileHandlersWork":            leasesAreRenewedWhileHandlersWork,
		"AHandlerIsToldThatItsLeaseIsLost":             aHandlerIsToldThatItsLeaseIsLost,
		"AHandlerIsToldThatItsPacketWasCancelled":      aHandlerIsToldThatItsPacketWasCancelled,
		"ShutdownWaitsForHandlers":                     shutdownWaitsForHandlers,
		"ShutdownReturnsWhatIsNotFinishedInTime":       shutdownReturnsWhatIsNotFinishedInTime,
		"TheEndOfTheContextEndsConsume":                theEndOfTheContextEndsConsume,
		"ConsumeEndsWhenItsClientIsClosed":             consumeEndsWhenItsClientIsClosed,
		"AHandlerMaySettleItsPacket":                   aHandlerMaySettleItsPacket,
		"ManyWorkersHandleEachPacketOnce":              manyWorkersHandleEachPacketOnce,
		"AConsumeThatWasRefusedClaimsNoMore":           aConsumeThatWasRefusedClaimsNoMore,
		"ConsumeRefusesWhatItCannotDo":                 consumeRefusesWhatItCannotDo,
		"AQueueThatIsClosedEndsConsumeWhenItIsDrained": aQueueThatIsClosedEndsConsumeWhenItIsDrained,
		"AConsumeThatIsShutDownTakesNothingMore":       aConsumeThatIsShutDownTakesNothingMore,
	} {
		t.Run(name, func(t *testing.T) {
			addr := startServer(t, storage.SyncNever())
			test(t, connect(t, addr), connect(t, addr))
		})
		t.Run(name+" as a worker", func(t *testing.T) {
			addr := startServer(t, storage.SyncNever(), everything, worker)
			test(t, connectAs(t, addr, worker.Name), connectAs(t, addr, everything.Name))
		})
	}
}

func whatAHandlerReturnsDecides(t *testing.T, c, boss *client.Client) {
	ctx := t.Context()
	failure := errors.New("no such address")
	cases := []struct {
		payload string
		handle  func() error
		state   client.State
		reason  string
	}{
		{"good", func() error { return nil }, "", ""},
		{"bad", func() error { return failure }, client.StateDelayed, "no such address"},
		{"later", func() error { return client.RetryIn(time.Hour, failure) }, client.StateDelayed, "no such address"},
		{"soon", func() error { return fmt.Errorf("mail: %w", client.RetryIn(0, failure)) }, client.StateReady, "mail: no such address"},
		{"not yet", func() error { return fmt.Errorf("mail: %w", client.Snooze(time.Hour)) }, client.StateDelayed, "mail: snoozed for 1h0m0s"},
		{"never", func() error { return client.Dead(failure) }, client.StateDead, "no such address"},
		{"dead of nothing", func() error { return client.Dead(nil) }, "", ""},
		{"later for nothing", func() error { return client.RetryIn(time.Hour, nil) }, "", ""},
		{"nil pointer", func() error { return (*os.PathError)(nil) }, client.StateDelayed, "panic: runtime error: invalid memory"},
		{"panic", func() error { explode(); return nil }, client.StateDelayed, "panic: boom"},
		{"Unwrap", func() error { return hostile{} }, client.StateDelayed, "panic: hostile"},
		{"long", func() error { return errors.New("x" + strings.Repeat("ä", 5000)) }, client.StateDelayed, "x" + strings.Repeat("ä", 2047)},
	}
	ok(t, boss.Set(ctx, "q", "backoff-min", "600000", "max-attempts", "0"))
	ids := make(map[string]string)
	var handled sync.WaitGroup
	for _, k := range cases {
		ids[k.payload] = must(c.Push(ctx, "q", []byte(k.payload)))(t)
		handled.Add(1)
	}
	again := make(chan struct{}) // the packet that is to be tried soon has to wait for the end of the test
	ended := consume(ctx, c, "q", func(_ context.Context, p *client.Packet) error {
		if p.Attempt > 1 {
			<-again
			return client.RetryIn(0, errors.New(p.Reason))
		}
		defer handled.Done()
		i := slices.IndexFunc(cases, func(k struct {
			payload string
			handle  func() error
			state   client.State
			reason  string
		}) bool {
			return k.payload == string(p.Payload)
		})
		return cases[i].handle()
	}, client.Concurrency(3))
	handled.Wait()
	close(again)
	drain(t, c)
	ok(t, receive(t, ended))
	for _, k := range cases {
		p, err := c.Show(ctx, "q", ids[k.payload])
		switch {
		case k.state == "":
			if !errors.Is(err, client.ErrNoPacket) {
				t.Errorf("%s: it is %+v, %v, want it gone", k.payload, p, err)
			}
		case err != nil:
			t.Errorf("%s: %v", k.payload, err)
		case p.State != k.state || !strings.HasPrefix(p.Reason, k.reason):
			t.Errorf("%s: it is %s, because %q; want %s, %q", k.payload, p.State, p.Reason, k.state, k.reason)
		case p.Attempt != map[bool]int{true: 0, false: 1}[k.payload == "not yet"] && k.payload != "soon":
			t.Errorf("%s: it has %d attempts", k.payload, p.Attempt)
		case k.payload == "panic" && !strings.Contains(p.Reason, "explode"):
			t.Errorf("the reason %q has no stack", p.Reason)
		case k.payload == "later" && p.NotBefore.Sub(p.LastClaim) < 55*time.Minute:
			t.Errorf("it is tried again %v after its claim, want an hour", p.NotBefore.Sub(p.LastClaim))
		}
	}
}

func leasesAreRenewedWhileHandlersWork(t *testing.T, c, boss *client.Client) {
	t.Parallel()
	ctx := t.Context()
	id := must(c.Push(ctx, "q", nil))(t)
	done := make(chan error, 1)
	consume(ctx, c, "q", func(ctx context.Context, p *client.Packet) error {
		for {
			now, err := c.Show(ctx, "q", id)
			if err != nil || now.LeaseEnd.Sub(p.LeaseEnd) > time.Second {
				done <- err
				return err
			}
		}
	}, client.Lease(5*time.Second))
	ok(t, receive(t, done))
	drain(t, c)
	want(t, "left", len(must(c.Queues(ctx, ""))(t)), 0)
}

func aHandlerIsToldThatItsLeaseIsLost(t *testing.T, c, boss *client.Client) {
	t.Parallel()
	ctx := t.Context()
	must(c.Push(ctx, "q", nil))(t)
	begun, causes := make(chan struct{}), make(chan error, 1)
	consume(ctx, c, "q", func(ctx context.Context, p *client.Packet) error {
		if p.Attempt > 1 {
			close(causes)
			return nil
		}
		close(begun)
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return errors.New("this must not count as a second failure")
	}, client.Lease(5*time.Second))
	receive(t, begun)
	if n := must(boss.Harvest(ctx, "q"))(t); n != 1 {
		t.Fatalf("harvested %d claims, want 1", n)
	}
	if err := receive(t, causes); !errors.Is(err, client.ErrStale) {
		t.Errorf("the cause is %v, want ErrStale", err)
	}
	receive(t, causes) // closed: the packet was delivered again
	drain(t, c)
	if n := must(c.Len(ctx, "q"))(t); n != 0 {
		t.Errorf("%d packets are left, want none", n)
	}
}

func aHandlerIsToldThatItsPacketWasCancelled(t *testing.T, c, boss *client.Client) {
	t.Parallel()
	ctx := t.Context()
	ok(t, boss.Set(ctx, "q", "retain", "600000", "max-attempts", "1"))
	id := must(c.Push(ctx, "q", nil))(t)
	begun, causes := make(chan struct{}), make(chan error, 1)
	consume(ctx, c, "q", func(ctx context.Context, _ *client.Packet) error {
		close(begun)
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return errors.New("this must not make it dead")
	}, client.Lease(6*time.Second))
	receive(t, begun)
	want(t, "what became of the packets", fmt.Sprintf("%q", must(boss.Cancel(ctx, "q", id, "123456"))(t)), `["told" ""]`)
	if p := must(c.Show(ctx, "q", id))(t); !p.Cancelled {
		t.Errorf("%+v is not cancelled", p)
	}
	if err := receive(t, causes); !errors.Is(err, client.ErrCancelled) {
		t.Errorf("the cause is %v, want ErrCancelled", err)
	}
	drain(t, c)
	if p, err := c.Show(ctx, "q", id); !errors.Is(err, client.ErrNoPacket) {
		t.Errorf("after its handler a cancelled packet is %+v, %v", p, err)
	}
}

func shutdownWaitsForHandlers(t *testing.T, c, boss *client.Client) {
	ctx := t.Context()
	must(c.PushBatch(ctx, "q", [][]byte{[]byte("a"), []byte("b")}))(t)
	begun, finish := make(chan struct{}, 2), make(chan struct{})
	ended := consume(ctx, c, "q", func(ctx context.Context, p *client.Packet) error {
		begun <- struct{}{}
		<-finish
		return ctx.Err()
	})
	receive(t, begun)
	idle := consume(ctx, c, "q.idle", func(context.Context, *client.Packet) error { return nil })
	down := make(chan error, 1)
	go func() { down <- c.Shutdown(context.Background()) }() // ends with the handler
	ok(t, receive(t, idle))                                  // Shutdown has begun
	select {
	case err := <-ended:
		t.Fatalf("Consume ended with %v while a handler works", err)
	case err := <-down:
		t.Fatalf("Shutdown ended with %v while a handler works", err)
	case finish <- struct{}{}:
	}
	ok(t, receive(t, down))
	ok(t, receive(t, ended))
	if stats := must(c.Stats(ctx, "q"))(t); stats.Ready != 1 || stats.Claimed != 0 || stats.Acked != 1 {
		t.Errorf("the queue is %+v, want one packet ready and one acknowledged", stats)
	}
	ok(t, c.Consume(ctx, "q", nil)) // claims nothing any more
}

func shutdownReturnsWhatIsNotFinishedInTime(t *testing.T, c, boss *client.Client) {
	ctx := t.Context()
	ok(t, boss.Set(ctx, "q", "max-attempts", "1"))
	id := must(c.Push(ctx, "q", nil))(t)
	begun, finish := make(chan struct{}), make(chan struct{})
	ended := consume(ctx, c, "q", func(ctx context.Context, p *client.Packet) error {
		close(begun)
		<-ctx.Done()
		if err := context.Cause(ctx); !errors.Is(err, client.ErrShutdown) {
			t.Errorf("the cause is %v, want ErrShutdown", err)
		}
		<-finish
		return nil
	})
	receive(t, begun)
	over, cancel := context.WithCancel(ctx)
	cancel()
	if err := c.Shutdown(over); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "q: packets that were not finished: 1: ") {
		t.Errorf("Shutdown returns %v", err)
	}
	p := must(c.Show(ctx, "q", id))(t)
	if p.State != client.StateReady || p.Reason != client.ErrShutdown.Error() || p.Attempt != 0 {
		t.Errorf("the packet is %s at attempt %d, because %q", p.State, p.Attempt, p.Reason)
	}
	close(finish)
	ok(t, receive(t, ended))
	if p := must(c.Show(ctx, "q", id))(t); p.State != client.StateReady {
		t.Errorf("after the handler's end the packet is %s, want ready", p.State)
	}
}

func theEndOfTheContextEndsConsume(t *testing.T, c, boss *client.Client) {
	ok(t, boss.Set(t.Context(), "q", "max-attempts", "1"))
	id := must(c.Push(t.Context(), "q", nil))(t)
	ctx, cancel := context.WithCancel(t.Context())
	begun := make(chan struct{})
	ended := consume(ctx, c, "q", func(ctx context.Context, p *client.Packet) error {
		close(begun)
		<-ctx.Done()
		return ctx.Err()
	})
	receive(t, begun)
	cancel()
	if err := receive(t, ended); !errors.Is(err, context.Canceled) {
		t.Errorf("Consume returns %v", err)
	}
	if p := must(c.Show(t.Context(), "q", id))(t); p.State != client.StateReady { // without a backoff
		t.Errorf("the packet is %s, want ready", p.State)
	}
}

func consumeEndsWhenItsClientIsClosed(t *testing.T, c, boss *client.Client) {
	ended := consume(t.Context(), c, "q", nil)
	blocked(t, boss)
	ok(t, c.Close())
	if err := receive(t, ended); !errors.Is(err, redis.ErrClosed) {
		t.Errorf("Consume returns %v", err)
	}
}

func aHandlerMaySettleItsPacket(t *testing.T, c, boss *client.Client) {
	ctx := t.Context()
	must(c.Push(ctx, "q", nil))(t)
	done := make(chan error, 1)
	consume(ctx, c, "q", func(ctx context.Context, p *client.Packet) error {
		_, err := p.Nack(ctx, client.Dead(errors.New("as I say")))
		done <- err
		return nil
	})
	ok(t, receive(t, done))
	drain(t, c)
	if stats := must(c.Stats(ctx, "q"))(t); stats.Dead != 1 || stats.Acked != 0 {
		t.Errorf("the queue is %+v, want one packet dead", stats)
	}
}

func manyWorkersHandleEachPacketOnce(t *testing.T, c, boss *client.Client) {
	ctx := t.Context()
	const packets, workers = 3000, 16
	for range packets / 100 {
		must(c.PushBatch(ctx, "q", make([][]byte, 100)))(t)
	}
	var handled, working atomic.Int64
	begun, all, open := make(chan struct{}, packets), make(chan struct{}), make(chan struct{})
	ended := consume(ctx, c, "q", func(context.Context, *client.Packet) error {
		if n := working.Add(1); n > workers {
			t.Errorf("%d handlers work, want %d at most", n, workers)
		}
		defer working.Add(-1)
		begun <- struct{}{}
		<-open
		runtime.Gosched() // so that others that were begun are at work
		if handled.Add(1) == packets {
			close(all)
		}
		return nil
	}, client.Concurrency(workers))
	for range workers {
		receive(t, begun)
	}
	want(t, "claimed", must(c.Stats(ctx, "q"))(t).Claimed, workers)
	close(open)
	receive(t, all)
	drain(t, c)
	ok(t, receive(t, ended))
	want(t, "handled", handled.Load(), packets)
	want(t, "queues that are left", len(must(c.Queues(ctx, ""))(t)), 0)
}

func aConsumeThatWasRefusedClaimsNoMore(t *testing.T, c, boss *client.Client) {
	ctx := t.Context()
	must(c.Push(ctx, "q", nil))(t)
	begun, finish := make(chan struct{}, 2), make(chan struct{})
	ended := consume(ctx, c, "q", func(context.Context, *client.Packet) error {
		begun <- struct{}{}
		<-finish
		return nil
	}, client.Concurrency(2))
	receive(t, begun)
	blocked(t, c)
	for line := range strings.Lines(must(c.Redis().ClientList(ctx).Result())(t)) {
		var id int64
		if _, err := fmt.Sscanf(line, "id=%d", &id); err == nil {
			c.Redis().ClientUnblockWithError(ctx, id)
		}
	}
	must(c.Push(ctx, "q", nil))(t)
	close(finish)
	if err := receive(t, ended); err == nil || !strings.Contains(err.Error(), "UNBLOCKED") {
		t.Errorf("Consume returns %v", err)
	}
	want(t, "packets that are ready", must(c.Stats(ctx, "q"))(t).Ready, 1)
}

func consumeRefusesWhatItCannotDo(t *testing.T, c, boss *client.Client) {
	ctx := t.Context()
	for _, options := range [][]client.Option{
		{client.Block(time.Second)}, {client.Concurrency(0)}, {client.Group()}, {client.Count(3)}, {client.TTL(1)},
	} {
		if err := c.Consume(ctx, "q", nil, options...); !errors.Is(err, client.ErrInvalid) {
			t.Errorf("Consume returns %v, want ErrInvalid", err)
		}
	}
	ok(t, boss.Redis().Set(ctx, "s", "x", 0).Err())
	if err := c.Consume(ctx, "s", nil); !errors.Is(err, client.ErrWrongType) {
		t.Errorf("Consume of a string returns %v, want ErrWrongType", err)
	}
}

func aQueueThatIsClosedEndsConsumeWhenItIsDrained(t *testing.T, c, boss *client.Client) {
	ctx := t.Context()
	must(c.PushBatch(ctx, "q", make([][]byte, 5)))(t)
	must(c.Push(ctx, "q", nil, client.Delay(300*time.Millisecond)))(t)
	want(t, "closed", must(boss.CloseQueue(ctx, "q"))(t), true)
	want(t, "closed again", must(boss.CloseQueue(ctx, "q"))(t), false)
	if _, err := c.Push(ctx, "q", nil); !errors.Is(err, client.ErrClosed) {
		t.Errorf("a push gives %v, want ErrClosed", err)
	}
	var handled atomic.Int64
	for _, ended := range []<-chan error{
		consume(ctx, c, "q", func(context.Context, *client.Packet) error { handled.Add(1); return nil }),
		consume(ctx, c, "q", func(context.Context, *client.Packet) error { handled.Add(1); return nil }, client.Concurrency(3)),
	} {
		ok(t, receive(t, ended))
	}
	want(t, "handled", handled.Load(), 6)
	for p, err := range c.Claims(ctx, "q") {
		t.Errorf("claimed %v, %v", p, err)
	}
	if _, err := c.Pop(ctx, "q", client.Block(0)); !errors.Is(err, client.ErrClosed) {
		t.Errorf("a pop gives %v, want ErrClosed", err)
	}
}

func aConsumeThatIsShutDownTakesNothingMore(t *testing.T, c, boss *client.Client) {
	ctx := t.Context()
	ended := consume(ctx, c, "q", nil, client.Concurrency(10))
	blocked(t, boss)
	drain(t, c)
	ok(t, receive(t, ended))
	id := must(boss.Push(ctx, "q", nil))(t)
	packets := must(boss.Claim(ctx, "q"))(t)
	if len(packets) != 1 || packets[0].ID != id || packets[0].Attempt != 1 {
		t.Errorf("the next worker gets %v, want packet %s at its first attempt", packets, id)
	}
}
