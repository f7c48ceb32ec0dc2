package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-queue/holdfast/netproto"
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
	s, store := begin(t, Config{
		Drain:     50 * time.Millisecond,
		WrapStore: func(s Store) Store { stuck.Store = s; return stuck },
		Listening: func(_ string, addr net.Addr) { listening <- addr },
	})
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

// begin begins a server, and opens the store that it is to serve.
func begin(t *testing.T, c Config) (*Server, *storage.Store) {
	t.Helper()
	c.Data, c.Pinpriq = t.TempDir(), "127.0.0.1:0"
	s, err := Begin(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	store, err := storage.Open(c.Data, s.StorageOptions())
	if err != nil {
		t.Fatal(err)
	}
	return s, store
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

// endlessStore has records without end, none of which is shown.
type endlessStore struct{ Store }

func (endlessStore) Walk(v storage.Visitor) error {
	for {
		if err := v.Step(); err != nil {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}

func TestARecoveryThatShowsNothingGetsOnAndEndsWhenItShould(t *testing.T) {
	var held atomic.Bool
	for name, c := range map[string]struct {
		end  func(cancel func())
		want error
	}{
		"it is told to":        {func(cancel func()) { cancel() }, nil},
		"the term is not held": {func(func()) { held.Store(false) }, netproto.ErrNotHeld},
	} {
		s, store := begin(t, Config{WrapStore: func(s Store) Store { return endlessStore{s} }})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		held.Store(true)
		go func() { ended <- s.Serve(ctx, store, Term{Held: held.Load}) }() // ends with ctx
		for s.health.Ready() == nil || !strings.HasPrefix(s.health.Ready().Error(), "recovering") {
			time.Sleep(time.Millisecond)
		}
		s.health.got.Store(0)
		for begun := time.Now(); !s.GotOn(time.Minute); time.Sleep(time.Millisecond) {
			if time.Since(begun) > patience {
				t.Fatal("it does not get on")
			}
		}
		c.end(cancel)
		if err := <-ended; !errors.Is(err, c.want) {
			t.Errorf("%s: it ends with %v", name, err)
		}
		cancel()
		if err := s.End(nil); err != nil {
			t.Error(err)
		}
	}
}
