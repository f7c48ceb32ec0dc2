package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/netproto/pinpriq"
	"github.com/holdfast-queue/holdfast/storage"
	"github.com/holdfast-queue/holdfast/storage/content"
)

// stuckStore keeps the first batch waiting until release, and then says that the disk is full.
type stuckStore struct {
	Store
	entered chan struct{} // closed by the first Apply
	release chan struct{}
	first   bool
}

func (s *stuckStore) Apply(*content.Batch) error {
	if !s.first {
		s.first = true
		close(s.entered)
		<-s.release
	}
	return fmt.Errorf("no room: %w", storage.ErrFull)
}

// Limits are those of a batch that is soon full.
func (s *stuckStore) Limits() content.Limits {
	l := s.Store.Limits()
	l.MaxOps = 4096
	return l
}

func TestTerminationEndsAServerWhoseDiskIsFull(t *testing.T) {
	stuck := &stuckStore{entered: make(chan struct{}), release: make(chan struct{})}
	listening := make(chan net.Addr, 1)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		ended <- Run(ctx, Config{
			Data:      t.TempDir(),
			Pinpriq:   "127.0.0.1:0",
			Drain:     500 * time.Millisecond,
			WrapStore: func(s Store) Store { stuck.Store = s; return stuck },
			Listening: func(_ string, addr net.Addr) { listening <- addr },
		})
	}()
	addr := (<-listening).String()

	first, second := dialClient(t, addr), dialClient(t, addr)
	if err := errors.Join(first.Push("q", []byte("x"), pinpriq.PushOptions{Priority: 1}), first.Flush()); err != nil {
		t.Fatal(err)
	}
	<-stuck.entered
	// More than fits a batch, so that the connection's reader waits for the next.
	for i := range stuck.Limits().MaxOps {
		if err := second.Push("q", []byte("x"), pinpriq.PushOptions{Priority: 1, Key: fmt.Append(nil, i)}); err != nil {
			t.Fatal(err)
		}
	}
	_ = second.Flush()
	cancel()
	close(stuck.release)
	select {
	case err := <-ended:
		if !errors.Is(err, storage.ErrFull) {
			t.Fatalf("Run gave %v, want the reason why batches were not written", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the server is still running")
	}
}

func TestABatchThatWaitsForOtherMachinesEndsWithTheDrain(t *testing.T) {
	stuck := &stuckStore{entered: make(chan struct{}), release: make(chan struct{})}
	listening := make(chan net.Addr, 1)
	s, err := Begin(t.Context(), Config{
		Data: t.TempDir(), Pinpriq: "127.0.0.1:0", Drain: 50 * time.Millisecond,
		WrapStore: func(s Store) Store { stuck.Store = s; return stuck },
		Listening: func(_ string, addr net.Addr) { listening <- addr },
	})
	if err != nil {
		t.Fatal(err)
	}
	store, err := storage.Open(s.c.Data, s.StorageOptions())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { // ends when over is called
		over := sync.OnceFunc(func() { close(stuck.release) })
		ended <- s.End(s.Serve(ctx, store, Term{Over: over}))
	}()
	client := dialClient(t, (<-listening).String())
	if err := errors.Join(client.Push("q", []byte("x"), pinpriq.PushOptions{Priority: 1}), client.Flush()); err != nil {
		t.Fatal(err)
	}
	<-stuck.entered
	cancel()
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Error("the server is still running")
		close(stuck.release)
	}
}

func dialClient(t *testing.T, addr string) *pinpriq.Client {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	c := pinpriq.NewClient(conn)
	t.Cleanup(func() { _ = c.Close() })
	return c
}
