package client_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/netproto/client"
)

// batches runs ConsumeBatch in the background, and returns the payloads of its batches.
func batches(t *testing.T, c *client.Client, size int, fill time.Duration, h client.BatchHandler, options ...client.Option) <-chan string {
	got := make(chan string, 100)
	t.Cleanup(func() { drain(t, c) })
	go func() { // ends with drain
		_ = c.ConsumeBatch(context.Background(), "q", size, fill, func(ctx context.Context, all []*client.Packet) error {
			var payloads []string
			for _, p := range all {
				payloads = append(payloads, string(p.Payload))
			}
			got <- strings.Join(payloads, " ")
			return h(ctx, all)
		}, options...)
	}()
	return got
}

func TestABatchIsHandledTogether(t *testing.T) {
	c, ctx := newClient(t), t.Context()
	got := batches(t, c, 3, limit, func(_ context.Context, all []*client.Packet) error {
		if string(all[0].Payload) == "bad" {
			return client.Dead(errors.New("boom"))
		}
		for _, p := range all {
			if string(p.Payload) == "refused" {
				_, err := p.Nack(ctx, client.Dead(errors.New("this one")))
				return err
			}
		}
		return nil
	})
	push := func(payloads ...string) {
		for _, p := range payloads {
			must(c.Push(ctx, "q", []byte(p)))(t)
		}
		want(t, "the batch", receive(t, got), strings.Join(payloads, " "))
	}
	push("a", "b", "c")
	push("d", "refused", "e")
	push("bad", "worse", "worst")
	drain(t, c)
	var dead []string
	for p, err := range c.List(ctx, "q") {
		ok(t, err)
		dead = append(dead, fmt.Sprintf("%s: %s", p.Payload, p.Reason))
	}
	slices.Sort(dead)
	want(t, "what is left", fmt.Sprint(dead), "[bad: boom refused: this one worse: boom worst: boom]")
}

func TestABatchThatIsNotFullComesWhenItsTimeIsOver(t *testing.T) {
	c, ctx := newClient(t), t.Context()
	got := batches(t, c, 1000, 10*time.Millisecond, func(context.Context, []*client.Packet) error { return nil })
	must(c.Push(ctx, "q", []byte("a")))(t)
	want(t, "the batch", receive(t, got), "a")
	must(c.Push(ctx, "q", []byte("b")))(t)
	want(t, "the batch", receive(t, got), "b")
}

func TestSoManyBatchesAreHandledAtATime(t *testing.T) {
	c, ctx := newClient(t), t.Context()
	renewed, release := make(chan error, 10), make(chan struct{})
	got := batches(t, c, 2, 5*time.Millisecond, func(_ context.Context, all []*client.Packet) error {
		p := all[len(all)-1]
		now, err := c.Show(ctx, "q", p.ID)
		for err == nil && now.LeaseEnd.Sub(p.LeaseEnd) < time.Second {
			now, err = c.Show(ctx, "q", p.ID)
		}
		renewed <- err
		<-release
		return nil
	}, client.Concurrency(2), client.Lease(5*time.Second))
	for range 7 {
		must(c.Push(ctx, "q", []byte("x")))(t)
	}
	receive(t, got)
	receive(t, got)
	ok(t, receive(t, renewed))
	ok(t, receive(t, renewed))
	want(t, "batches beyond the concurrency", len(got), 0)
	close(release)
	for n := 0; n < 3; n += len(strings.Fields(receive(t, got))) {
	}
	drain(t, c)
	for p, err := range c.List(ctx, "q") {
		t.Error("not handled", p.ID, p.Reason, err)
	}
}

func TestABatchNeedsASizeAndATime(t *testing.T) {
	c := newClient(t)
	for _, n := range []int{0, 1001} {
		if err := c.ConsumeBatch(t.Context(), "q", n, time.Second, nil); !errors.Is(err, client.ErrInvalid) {
			t.Error(n, err)
		}
	}
	if err := c.ConsumeBatch(t.Context(), "q", 1, 0, nil); !errors.Is(err, client.ErrInvalid) {
		t.Error(err)
	}
	if err := c.Consume(t.Context(), "q", nil, client.Fill(time.Second)); !errors.Is(err, client.ErrInvalid) {
		t.Error(err)
	}
}
