package soak

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// sizes are lists of large packets that live beside the small ones: each element lives as long as
// its list is deep.
var sizes = []struct {
	name        string
	depth, size int
}{
	{"soak.64k", 200, 64 << 10},
	{"soak.1m", 40, 1 << 20},
}

// largePause is the time between two elements of a list: 10 MiB a second in all.
const largePause = 100 * time.Millisecond

// large is how many packets of these there are at any time, and their bytes.
func large() (packets, bytes int64) {
	for _, s := range sizes {
		packets += int64(s.depth)
		bytes += int64(s.depth * s.size)
	}
	return packets, bytes
}

// startLarge fills the lists, and has elements come and go until stop.
func startLarge(t *testing.T, s *server) (stop func()) {
	t.Helper()
	db := redis.NewClient(&redis.Options{Addr: s.redis, ReadTimeout: time.Minute, MaxRetries: -1, Protocol: 2})
	for _, l := range sizes {
		for range l.depth {
			if err := db.LPush(t.Context(), l.name, bytes.Repeat([]byte("x"), l.size)).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { // ends with ctx
		defer close(ended)
		tick := time.NewTicker(largePause)
		defer tick.Stop()
		for ctx.Err() == nil {
			for _, l := range sizes {
				got, err := exchange(db, l.name, l.size)
				if err != nil || got != l.size {
					t.Errorf("an element of %s has %d bytes, want %d; %v", l.name, got, l.size, err)
					return
				}
			}
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
	}()
	return func() {
		cancel()
		<-ended
		_ = db.Close()
	}
}

// exchange pushes an element and pops the oldest one, in one transaction.
func exchange(db *redis.Client, list string, size int) (popped int, err error) {
	var pop *redis.StringCmd
	_, err = db.TxPipelined(context.Background(), func(p redis.Pipeliner) error {
		p.LPush(context.Background(), list, bytes.Repeat([]byte("x"), size))
		pop = p.RPop(context.Background(), list)
		return nil
	})
	return len(pop.Val()), err
}
