package client_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/netproto/client"
)

func TestAUniquePushIsAnsweredWithTheFirstID(t *testing.T) {
	c, ctx := newClient(t), t.Context()
	id := must(c.Push(ctx, "q", []byte("a"), client.Unique("order 17")))(t)
	want(t, "the id", must(c.Push(ctx, "q", []byte("b"), client.Unique("order 17")))(t), id)
	want(t, "queued", must(c.Len(ctx, "q"))(t), 1)
	p := must(c.Claim(ctx, "q"))(t)[0]
	want(t, "unique", p.Unique, "order 17")
	ok(t, p.Ack(ctx))
	again := must(c.Push(ctx, "q", nil, client.Unique("order 17"), client.Window(time.Hour)))(t)
	ok(t, must(c.Claim(ctx, "q"))(t)[0].Ack(ctx))
	want(t, "the id", must(c.Push(ctx, "q", nil, client.Unique("order 17"), client.Window(time.Hour)))(t), again)
	want(t, "queued", must(c.Len(ctx, "q"))(t), 0)
}

func TestAPushDuringTheRunMakesOneMore(t *testing.T) {
	c, ctx := newClient(t), t.Context()
	id := must(c.Push(ctx, "q", []byte("a"), client.Unique("u"), client.UntilClaim()))(t)
	want(t, "the id", must(c.Push(ctx, "q", []byte("b"), client.Unique("u"), client.UntilClaim()))(t), id)
	must(c.Claim(ctx, "q"))(t)
	if again := must(c.Push(ctx, "q", []byte("c"), client.Unique("u"), client.UntilClaim()))(t); again == id {
		t.Error("a push during the run adds nothing")
	}
}

func TestALaterPushReplacesAPacketThatWaits(t *testing.T) {
	c, ctx := newClient(t), t.Context()
	id := must(c.Push(ctx, "q", []byte("a"), client.Unique("u"), client.Delay(time.Hour)))(t)
	want(t, "the id", must(c.Push(ctx, "q", []byte("b"), client.Unique("u"), client.Replace(), client.Delay(0)))(t), id)
	want(t, "the payload", string(must(c.Claim(ctx, "q"))(t)[0].Payload), "b")
	again, told, err := c.PushTold(ctx, "q", nil, client.Unique("u"), client.Replace())
	ok(t, err)
	want(t, "what is told", again+" "+told, id+" claimed")
	if _, _, err := c.PushTold(ctx, "q", nil); !errors.Is(err, client.ErrInvalid) {
		t.Errorf("without Unique: %v", err)
	}
}

func TestAPacketOfAMomentIsDelayedUntilThen(t *testing.T) {
	c, ctx := newClient(t), t.Context()
	at := time.Now().Add(time.Hour).Truncate(time.Millisecond)
	id := must(c.Push(ctx, "q", nil, client.At(at)))(t)
	p := must(c.Show(ctx, "q", id))(t)
	want(t, "the moment", p.NotBefore.Equal(at), true)
	want(t, "the priority", p.Priority, 128)
	must(c.Push(ctx, "q", []byte("past"), client.At(time.Time{})))(t)
	want(t, "what is ready", string(must(c.Claim(ctx, "q"))(t)[0].Payload), "past")
}

func TestABatchOfNothingPushesNothing(t *testing.T) {
	want(t, "ids", len(must(newClient(t).PushBatch(t.Context(), "q", nil))(t)), 0)
}

func TestAPushWaitsForRoom(t *testing.T) {
	c, ctx := newClient(t), t.Context()
	ok(t, c.Set(ctx, "q", "bound", "2"))
	must(c.PushBatch(ctx, "q", make([][]byte, 2)))(t)
	pushed := make(chan error, 1)
	push := func(ctx context.Context, options ...client.Option) {
		_, err := c.Push(ctx, "q", []byte("late"), options...)
		pushed <- err
	}
	go push(ctx, client.Block(limit)) // ends with the pop
	blocked(t, c)
	must(c.Pop(ctx, "q"))(t)
	ok(t, receive(t, pushed))
	waiting, cancel := context.WithCancel(ctx)
	go push(waiting, client.Block(0)) // ends with its context
	blocked(t, c)
	cancel()
	want(t, "the end", receive(t, pushed), context.Canceled)
	push(ctx, client.Block(time.Millisecond))
	if err := receive(t, pushed); !errors.Is(err, client.ErrFull) {
		t.Errorf("a push that waited in vain gives %v, want ErrFull", err)
	}
	if _, err := c.PushBatch(ctx, "q", make([][]byte, 3), client.Block(0)); !errors.Is(err, client.ErrTooLarge) {
		t.Errorf("a push that can never fit gives %v, want ErrTooLarge", err)
	}
	want(t, "queued", must(c.Len(ctx, "q"))(t), 2)
}

func TestAQueueThatDropsRefusesTheWorst(t *testing.T) {
	c, ctx := newClient(t), t.Context()
	ok(t, c.Set(ctx, "q", "bound", "1", "full", "drop"))
	must(c.Push(ctx, "q", []byte("middle"), client.Priority(5)))(t)
	for _, err := range []error{
		second(c.Push(ctx, "q", nil, client.Priority(6))),
		second(c.PushBatch(ctx, "q", make([][]byte, 1), client.Priority(6))),
	} {
		if !errors.Is(err, client.ErrFull) {
			t.Errorf("a push of what is worse gives %v, want ErrFull", err)
		}
	}
	must(c.Push(ctx, "q", []byte("best"), client.Priority(4)))(t)
	want(t, "kept", string(must(c.Pop(ctx, "q"))(t)[0].Payload), "best")
}

func TestAPacketHasALeaseOfItsOwn(t *testing.T) {
	c, ctx := newClient(t), t.Context()
	must(c.Push(ctx, "q", nil, client.Lease(time.Hour)))(t)
	p := must(c.Claim(ctx, "q"))(t)[0]
	want(t, "the lease", p.Lease, time.Hour)
	if left := time.Until(p.LeaseEnd); left < 50*time.Minute || left > time.Hour {
		t.Error("the claim lasts", left)
	}
}
