package client_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-queue/holdfast/cmd/daemon"
	"github.com/holdfast-queue/holdfast/netproto/client"
)

func TestEveryRefusalIsOfAKind(t *testing.T) {
	c, ctx := newClient(t), t.Context()
	ok(t, c.Redis().Set(ctx, "string", "x", 0).Err())
	ok(t, c.Set(ctx, "full", "bound", "1"))
	must(c.Push(ctx, "full", nil))(t)
	ok(t, c.Set(ctx, "paused", "pause-in", "yes"))
	push := func(queue, payload string, options ...client.Option) error {
		return second(c.Push(ctx, queue, []byte(payload), options...))
	}
	for _, k := range []struct {
		what string
		err  error
		kind error
	}{
		{"an ack of no claim", c.Claimed("q", "1", 1).Ack(ctx), client.ErrStale},
		{"a nack of no claim", second(c.Claimed("q", "1", 1).Nack(ctx, nil)), client.ErrStale},
		{"figures of no queue", second(c.Stats(ctx, "q")), client.ErrNoQueue},
		{"a push to a full queue", push("full", ""), client.ErrFull},
		{"a push to a paused queue", push("paused", ""), client.ErrPaused},
		{"a push to a string", push("string", ""), client.ErrWrongType},
		{"a large payload", push("q", strings.Repeat("x", 1<<20+1)), client.ErrTooLarge},
		{"an option of another call", push("q", "", client.Older(1)), client.ErrInvalid},
		{"a take's option in a push", push("q", "", client.Newest()), client.ErrInvalid},
		{"a push's option in a take", second(c.Pop(ctx, "q", client.Priority(1))), client.ErrInvalid},
		{"an option of Consume", second(c.Pop(ctx, "q", client.Concurrency(1))), client.ErrInvalid},
		{"a setting that is not known", c.Set(ctx, "q", "colour", "red"), client.ErrInvalid},
		{"a setting of nothing", c.Set(ctx, "q"), client.ErrInvalid},
	} {
		if !errors.Is(k.err, k.kind) {
			t.Errorf("%s gives %v, want %v", k.what, k.err, k.kind)
		}
	}
	var reply redis.Error
	if err := push("full", ""); !errors.As(err, &reply) || !strings.HasPrefix(err.Error(), "FULL ") {
		t.Errorf("%v is not the server's error", err)
	}
}

func TestAClientNeedsThePassword(t *testing.T) {
	addr, stop, err := serve(daemon.Config{Data: t.TempDir(), RedisPassword: "secret"})
	ok(t, err)
	defer func() { ok(t, stop()) }()
	for _, password := range []string{"", "wrong", "secret"} {
		c := client.New(&redis.Options{Addr: addr, Password: password})
		defer c.Close()
		_, err := c.Len(t.Context(), "q")
		if good := password == "secret"; good != (err == nil) || good == errors.Is(err, client.ErrDenied) {
			t.Errorf("password %q gives %v", password, err)
		}
		if password != "secret" {
			if err := c.Consume(t.Context(), "q", nil); !errors.Is(err, client.ErrDenied) {
				t.Errorf("Consume with password %q gives %v", password, err)
			}
		}
	}
}
