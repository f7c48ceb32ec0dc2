package client_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-queue/holdfast/netproto/client"
)

type mail struct {
	To    string
	Tries int
}

func TestPayloadsAreTyped(t *testing.T) {
	c, ctx := newClient(t), t.Context()
	for name, codec := range map[string]client.Codec{"json": client.JSON, "msgpack": client.MsgPack} {
		must(c.PushValue(ctx, name, codec, mail{"ann", 3}))(t)
		got := make(chan mail, 1)
		consume(ctx, c, name, client.Handle(codec, func(_ context.Context, p *client.Packet, m mail) error {
			want(t, "queue", p.Queue, name)
			got <- m
			return nil
		}))
		want(t, name, receive(t, got), mail{"ann", 3})
	}
	must(c.PushValue(ctx, "raw", client.Raw, "as it is"))(t)
	got := make(chan string, 1)
	consume(ctx, c, "raw", client.Handle(client.Raw, func(_ context.Context, _ *client.Packet, s string) error { got <- s; return nil }))
	want(t, "raw", receive(t, got), "as it is")
	drain(t, c)
	want(t, "left", len(must(c.Queues(ctx, ""))(t)), 0)
	if _, err := c.PushValue(ctx, "raw", client.Raw, 5); err == nil {
		t.Error("a number is pushed raw")
	}
}

func TestAPayloadThatCannotBeReadIsDead(t *testing.T) {
	c, ctx := newClient(t), t.Context()
	id := must(c.Push(ctx, "q", []byte("{")))(t)
	failed := make(chan error, 1)
	report := func(next client.Handler) client.Handler {
		return func(ctx context.Context, p *client.Packet) error {
			err := next(ctx, p)
			failed <- err
			return err
		}
	}
	consume(ctx, c, "q", client.Handle(client.JSON, func(context.Context, *client.Packet, mail) error { return nil }).With(report))
	if receive(t, failed) == nil {
		t.Error("the handler does not fail")
	}
	drain(t, c)
	p := must(c.Show(ctx, "q", id))(t)
	if p.State != client.StateDead || !strings.HasPrefix(p.Reason, "reading the payload: unexpected end") {
		t.Errorf("the packet is %s, because %q", p.State, p.Reason)
	}
}

func TestMiddlewareWrapsFromTheOutside(t *testing.T) {
	var order []string
	note := func(name string) client.Middleware {
		return func(next client.Handler) client.Handler {
			return func(ctx context.Context, p *client.Packet) error {
				order = append(order, name)
				return next(ctx, p)
			}
		}
	}
	failure := errors.New("x")
	h := client.Handler(func(context.Context, *client.Packet) error { return failure }).With(note("outer"), note("inner"))
	if err := h(t.Context(), nil); err != failure || !slices.Equal(order, []string{"outer", "inner"}) {
		t.Errorf("it returns %v after %q", err, order)
	}
}
