package client_test

import (
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
