package client_test

import (
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-queue/holdfast/netproto/client"
	"github.com/holdfast-queue/holdfast/storage"
)

func TestAPacketHasAllThatWasPushed(t *testing.T) {
	addr := startServer(t, storage.SyncNever())
	for _, protocol := range []int{2, 3} {
		c := client.New(&redis.Options{Addr: addr, Protocol: protocol, ClientName: "worker"})
		defer c.Close()
		ctx := t.Context()
		id := must(c.Push(ctx, "q", []byte("x"), client.Priority(7), client.Key("k"), client.TTL(time.Hour),
			client.Tag("a", "1"), client.Tag("b", "2"), client.Producer("shop")))(t)
		packets := must(c.Claim(ctx, "empty", client.Or("q"), client.Lease(time.Minute)))(t)
		if len(packets) != 1 {
			t.Fatalf("claimed %d packets, want 1", len(packets))
		}
		p := packets[0]
		if p.ID != id || p.Queue != "q" || string(p.Payload) != "x" || p.Priority != 7 || string(p.Key) != "k" || p.Attempt != 1 ||
			p.Producer != "shop" || p.Consumer != "worker" || p.State != client.StateClaimed || p.Token == 0 || p.Percent != -1 ||
			!maps.Equal(p.Tags, map[string]string{"a": "1", "b": "2"}) {
			t.Errorf("RESP%d: claimed %+v", protocol, p)
		}
		if d := p.Expires.Sub(p.Enqueued); d != time.Hour {
			t.Errorf("RESP%d: it expires after %v, want an hour", protocol, d)
		}
		ok(t, p.Progress(ctx, 40, "scaling"))
		ok(t, p.Extend(ctx, time.Hour))
		shown := must(c.Show(ctx, "q", id))(t)
		if shown.Percent != 40 || shown.PercentText != "scaling" || shown.Why == "" || shown.FirstClaim.IsZero() ||
			shown.LeaseEnd.Sub(p.LeaseEnd).Abs() > time.Millisecond { // two looks may differ by that

			t.Errorf("RESP%d: shown %+v", protocol, shown)
		}
		ok(t, p.Ack(ctx))
	}
}

func TestAPacketThatIsReturnedComesBack(t *testing.T) {
	c, ctx := newClient(t), t.Context()
	must(c.Push(ctx, "q", nil))(t)
	p := must(c.Claim(ctx, "q"))(t)[0]
	if state := must(p.Nack(ctx, client.RetryIn(0, errors.New("not now"))))(t); state != client.StateReady {
		t.Errorf("a packet that is returned is %s, want ready", state)
	}
	again := must(c.Claim(ctx, "q"))(t)[0]
	if again.Attempt != 2 || again.Reason != "not now" || again.ID != p.ID || again.Token <= p.Token {
		t.Errorf("it comes back as %+v", again)
	}
	if err := p.Ack(ctx); !errors.Is(err, client.ErrStale) {
		t.Errorf("an ack of the first claim gives %v, want ErrStale", err)
	}
	same := c.Claimed("q", again.ID, again.Token)
	if state := must(same.Nack(ctx, client.Dead(errors.New("never"))))(t); state != client.StateDead {
		t.Errorf("a packet that is dead is %s", state)
	}
}
