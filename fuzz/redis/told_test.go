package redis

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-queue/holdfast/cmd/daemon"

	goredis "github.com/redis/go-redis/v9"
)

// lockedBuffer is a log that a test reads while it is written.
type lockedBuffer struct {
	mu  sync.Mutex
	all bytes.Buffer
}

// Write implements io.Writer.
func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.String()
}

func TestGoRedisIsToldOfAnOldPacketAndTailsAQueue(t *testing.T) {
	t.Parallel()
	var log lockedBuffer
	for _, goroutines := range []bool{false, true} {
		t.Run(fmt.Sprint("goroutines ", goroutines), func(t *testing.T) {
			addr := startHoldfast(t, daemon.Config{Goroutines: goroutines, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			for _, protocol := range []int{2, 3} {
				client := goredis.NewClient(&goredis.Options{Addr: addr, Protocol: protocol, MaxRetries: -1, ReadTimeout: limit})
				t.Cleanup(func() { _ = client.Close() })
				isTold(t, client, fmt.Sprint("q", protocol))
			}
		})
	}
	for _, line := range []string{"is older than its alert-age", "is younger than its alert-age again"} {
		if n := strings.Count(log.String(), line); n != 4 {
			t.Errorf("%d times %q in the log, want 4", n, line)
		}
	}
}

// isTold wants a client to be told of an old packet of a queue that does not exist yet, and of what
// happens to it.
func isTold(t *testing.T, client *goredis.Client, queue string) {
	t.Helper()
	ctx := t.Context()
	events, tail := client.Subscribe(ctx, "holdfast:events"), client.Subscribe(ctx, "holdfast:tail:"+queue)
	for _, s := range []*goredis.PubSub{events, tail} {
		defer s.Close()
		must(s.Receive(ctx))(t)
	}
	want := func(from *goredis.PubSub, kind string) {
		t.Helper()
		var e struct{ Event, Queue string }
		if err := json.Unmarshal([]byte(must(from.ReceiveMessage(ctx))(t).Payload), &e); err != nil || e.Event != kind || e.Queue != queue {
			t.Errorf("told %+v, %v, want %s", e, err, kind)
		}
	}
	must(client.Do(ctx, "QSET", queue, "alert-age", 100).Result())(t)
	must(client.Do(ctx, "QPUSH", queue, "x").Result())(t)
	want(tail, "pushed")
	want(events, "old")
	must(client.LPop(ctx, queue).Result())(t)
	want(tail, "popped")
	want(events, "young")
}
