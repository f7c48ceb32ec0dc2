package cell_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-queue/holdfast/storage/cell"
)

func TestOneOfManyClaimsStands(t *testing.T) {
	client, _ := alone(t)
	const n = 16
	var claims atomic.Int32
	done := make(chan error, n)
	for range n {
		go func() {
			_, _, err := newLog(client, "a").Claim(t.Context(), 0, "")
			if err == nil {
				claims.Add(1)
			}
			done <- err
		}()
	}
	for range n {
		if err := <-done; err != nil && !errors.Is(err, cell.ErrOwned) {
			t.Error(err)
		}
	}
	if claims.Load() != 1 {
		t.Errorf("%d claims stand, want 1", claims.Load())
	}
}

// A cut between what a claim read and what it puts is seen by the claim.
func TestAClaimKnowsTheCut(t *testing.T) {
	m := members(t, "a")[0]
	for _, before := range []string{"", "3"} {
		if before != "" {
			set(t, m.client, "cut", before)
		}
		set(t, m.client, "head", `{"batch":9}`)
		reads := 0
		log := newLog(withKV(t, m, func(r *clientv3.TxnResponse, err error) (*clientv3.TxnResponse, error) {
			if reads++; reads == 1 {
				set(t, m.client, "cut", "9")
			}
			return r, err
		}), "b")
		if _, _, err := log.Claim(t.Context(), 5, ""); !errors.Is(err, cell.ErrCut) {
			t.Errorf("cut %q before: %v, want ErrCut", before, err)
		}
		del(t, m.client, "cut")
	}
}

// cutOff is the KV of a member that only knows what it knew before.
type cutOff struct {
	clientv3.KV
	is *atomic.Bool
}

func (c cutOff) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	if c.is.Load() && !clientv3.OpGet(key, opts...).IsSerializable() {
		return nil, rpctypes.ErrTimeout
	}
	return c.KV.Get(ctx, key, opts...)
}

func TestAClaimIsNotHeldByItsKeepaliveAlone(t *testing.T) {
	client, _ := alone(t)
	isCutOff := new(atomic.Bool)
	client.KV = cutOff{client.KV, isCutOff}
	term := claim(t, cell.NewLog(cell.Config{Client: client, Node: "a", Lease: time.Second}), 0)
	isCutOff.Store(true)
	select {
	case <-term.Done():
		ended(t, term, term.Err())
	case <-time.After(20 * time.Second):
		t.Error("the claim stands, and no read has shown it")
	}
}
