package cluster

import (
	"context"
	"errors"
	"testing"

	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// full is a store without room.
type full struct{ tries chan struct{} }

func (f full) Take(uint64, []byte) error {
	f.tries <- struct{}{}
	return storage.ErrFull
}

func (full) Control() content.Control { return content.Control{} }

func TestANodeWithoutRoomTriesABatchAgainAndEndsWhenItIsToldTo(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	store, ended := full{make(chan struct{})}, make(chan error)
	go func() { ended <- (&node{}).take(ctx, store)(1, nil) }()
	<-store.tries
	<-store.tries
	cancel()
	for {
		select {
		case <-store.tries: // one more, behind the wait that was under way
		case err := <-ended:
			if !errors.Is(err, storage.ErrFull) {
				t.Errorf("it ended with %v", err)
			}
			return
		}
	}
}
