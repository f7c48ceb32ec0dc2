package netproto

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/storage"
)

// ear is the protocol desk that hears of events.
type ear struct {
	desk
	heard atomic.Pointer[[]string] // their kinds
}

func (e *ear) Hear(_ int64, events []broker.Event) bool {
	all := append([]string(nil), *e.heard.Load()...)
	for _, e := range events {
		all = append(all, string(e.Kind))
	}
	e.heard.Store(&all)
	return false
}

// hears serves an ear at two addresses, which hears what happens in the queue q, and of the disk.
func hears(t *testing.T, want error) (*ear, *talk, *hooked) {
	t.Helper()
	_, store := serveDesk(t, want)
	e := &ear{}
	e.heard.Store(new([]string))
	serve(t, Config{Protocol: e, Loop: store.loop})
	k := talkTo(t, serve(t, Config{Protocol: e, Loop: store.loop}))
	if err := store.loop.Do(func(tx *broker.Tx) error { tx.Tail(0, "q", true); return nil }); err != nil {
		t.Fatal(err)
	}
	return e, k, store
}

func TestAProtocolHearsOnceWhatIsOnDisk(t *testing.T) {
	e, k, store := hears(t, nil)
	store.hook(t, func() error {
		if heard := *e.heard.Load(); len(heard) > 0 {
			t.Errorf("heard %v before the commit", heard)
		}
		return nil
	})
	k.send("push")
	k.want("pushed")
	if heard := *e.heard.Load(); len(heard) != 1 || heard[0] != "pushed" {
		t.Errorf("heard %v, want pushed", heard)
	}
	store.hook(t, nil)
}

func TestNobodyHearsOfACommitThatFails(t *testing.T) {
	broken := errors.New("device is gone")
	e, k, store := hears(t, broken)
	store.hook(t, func() error { return broken })
	k.send("push")
	<-store.loop.Failed()
	_ = store.loop.Close()
	if heard := *e.heard.Load(); len(heard) > 0 {
		t.Errorf("heard %v of what is not on disk", heard)
	}
}

func TestOfABatchThatWaitsForRoomOthersHearWhenItIsOnDisk(t *testing.T) {
	e, k, store := hears(t, nil)
	var full atomic.Bool
	full.Store(true)
	store.hook(t, func() error {
		if full.Load() {
			return fmt.Errorf("no room: %w", storage.ErrFull)
		}
		return nil
	})
	k.send("push")
	waitFor(t, func() bool { return len(*e.heard.Load()) > 0 })
	if heard := *e.heard.Load(); len(heard) != 1 || heard[0] != "disk" {
		t.Errorf("heard %v, want of the disk", heard)
	}
	full.Store(false)
	k.want("pushed")
	if heard := *e.heard.Load(); len(heard) != 2 || heard[1] != "pushed" {
		t.Errorf("heard %v, want of the push, too", heard)
	}
	store.hook(t, nil)
}
