package cell_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-queue/holdfast/storage/cell"
)

func TestTheLogIsNotCutBehindWhatACopyHas(t *testing.T) {
	client, log := alone(t)
	term := claim(t, log, 0)
	add(t, term, 1, 10)
	set(t, client, "floor/a", "8")
	copier := newLog(client, "b")
	for _, step := range []struct {
		does func() error
		want string
	}{
		{func() error { return copier.Hold(t.Context(), 5) }, "5"},
		{func() error { return copier.Hold(t.Context(), 6) }, "6"},
		{func() error { return copier.PutNode(t.Context(), nil) }, "6"},
		{func() error { return log.EndHold(t.Context(), "b") }, "8"},
	} {
		if err := errors.Join(step.does(), term.Cut(t.Context())); err != nil || get(t, client, "cut") != step.want {
			t.Fatalf("cut is %s, want %s: %v", get(t, client, "cut"), step.want, err)
		}
	}
	if err := copier.Hold(t.Context(), 7); !errors.Is(err, cell.ErrCut) || get(t, client, "copy/b") != "" {
		t.Errorf("a copy that the log does not lead on from holds it: %v", err)
	}
	if s, err := log.Status(t.Context()); s.Cut != 8 || s.Head != 10 || err != nil {
		t.Errorf("the log goes from %d to %d, %v", s.Cut, s.Head, err)
	}
}

func TestAHoldEndsWithTheLeaseOfItsNode(t *testing.T) {
	client, log := alone(t)
	for range 2 {
		if err := log.Hold(t.Context(), 0); err != nil || get(t, client, "copy/a") != "0" {
			t.Fatalf("no hold: %v", err)
		}
		revokeAll(t, client)
		if get(t, client, "copy/a") != "" {
			t.Error("the hold is there for ever")
		}
	}
}

func TestALogThatIsCutMeanwhileIsNotHeld(t *testing.T) {
	m := members(t, "a")[0]
	isCut := false
	log := newLog(withKV(t, m, func(r *clientv3.TxnResponse, err error) (*clientv3.TxnResponse, error) {
		if !isCut {
			set(t, m.client, "cut", "6")
			isCut = true
		}
		return r, err
	}), "a")
	if err := log.Hold(t.Context(), 5); !errors.Is(err, cell.ErrCut) || get(t, m.client, "copy/a") != "" {
		t.Errorf("error %v, want ErrCut", err)
	}
}

func TestANodeTellsOfItselfWhileItWaitsForAHold(t *testing.T) {
	m := members(t, "a")[0]
	tried := make(chan struct{})
	once := sync.OnceFunc(func() { close(tried) })
	log := newLog(withKV(t, m, func(*clientv3.TxnResponse, error) (*clientv3.TxnResponse, error) {
		once()
		return nil, errDropped // as without a majority
	}), "a")
	ctx, end := context.WithCancel(t.Context())
	held, told := make(chan error, 1), make(chan error, 1)
	go func() { held <- log.Hold(ctx, 0) }()
	<-tried
	go func() { told <- log.PutNode(t.Context(), []byte("x")) }()
	select {
	case err := <-told:
		if err != nil || get(t, m.client, "node/a") != "x" {
			t.Errorf("it has told %q, %v", get(t, m.client, "node/a"), err)
		}
	case <-time.After(20 * time.Second):
		t.Error("it does not tell of itself")
	}
	end()
	<-held
}
