package wire

import (
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/daemon"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// fullStore is a store whose disk is full while the test says so.
type fullStore struct {
	daemon.Store
	full  *atomic.Bool
	seen  *atomic.Bool  // a batch has found no room
	tried chan struct{} // gets a value for each batch that found no room
}

func (s fullStore) Apply(b *content.Batch) error {
	if s.full.Load() {
		s.seen.Store(true)
		select {
		case s.tried <- struct{}{}:
		default:
		}
		return storage.ErrFull
	}
	return s.Store.Apply(b)
}

func (s fullStore) Space() storage.Space {
	space := s.Store.Space()
	if s.full.Load() && s.seen.Load() { // the room is looked at ten times a second
		space.Level = storage.Stop
	}
	return space
}

func TestAFullDiskClosesConnectionsThatAskForSomethingAndLosesNothing(t *testing.T) {
	var full, seen atomic.Bool
	tried := make(chan struct{})
	server := serveConfig(t, daemon.Config{
		Data:      t.TempDir(),
		WrapStore: func(s daemon.Store) daemon.Store { return fullStore{s, &full, &seen, tried} },
	})
	s, waiting := server.dial(t), server.dial(t)
	s.send(push("q", packet{"1", "before"}, 1, 0))
	s.barrier()
	full.Store(true)
	waiting.send(push("q", packet{"2", "meanwhile"}, 2, 0), pop("empty"))
	for range 2 { // the second try comes when it is known that the first found no room
		select {
		case <-tried:
		case <-time.After(limit):
			t.Fatal("no batch was tried")
		}
	}
	for range 3 {
		refused := server.dial(t)
		refused.send(push("q", packet{"3", "refused"}, 3, 0), pop("q"))
		refused.wantEnd()
	}
	full.Store(false)
	if _, err := io.ReadFull(waiting.conn, make([]byte, 2)); err != nil && !errors.Is(err, io.EOF) {
		t.Fatalf("the connection that waited got %v, expected its reply or its end", err)
	}
	again := server.dial(t)
	again.send(pop("q"))
	again.wantPayloads("before")
}
