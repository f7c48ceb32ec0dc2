package cell

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// beat is how often a claim is kept, and how much sooner than its lease it is no longer held.
const beat = 300 * time.Millisecond

// Term is a claim. It ends for good: nothing of it is resumed. End must be called, whatever ended
// it, since its lease may live on in etcd.
type Term struct {
	log   *Log
	lease clientv3.LeaseID
	fence int64 // the revision at which owner was put
	// ctx ends with the claim. Its cause wraps ErrFenced.
	ctx context.Context
	end context.CancelCauseFunc

	granted time.Time    // when the lease was asked for
	lapse   atomic.Int64 // when it is over unless it is kept, in nanoseconds after granted; it only grows

	// Of the goroutine that appends.
	last uint64 // the last batch of the log
	head int64  // the mod revision of the key
}

// Claim makes this node the owner if there is none. reach is the last batch of its tables;
// addresses are for whoever asks for the owner. It returns the claim and the last batch of the log:
// the node must follow up to it before it appends. ErrOwned: there is an owner. ErrCut: the tables
// do not reach the log's beginning. ErrDamaged: they go beyond its end.
func (l *Log) Claim(ctx context.Context, reach uint64, addresses string) (*Term, uint64, error) {
	t := &Term{log: l}
	t.ctx, t.end = context.WithCancelCause(context.Background())
	err := l.try(ctx, func(ctx context.Context) error {
		t.granted = time.Now()
		r, err := l.Client.Grant(ctx, int64((l.Lease+time.Second-1)/time.Second))
		if err == nil {
			t.lease = r.ID
		}
		return err
	})
	if err != nil {
		return nil, 0, fmt.Errorf("no lease for a claim: %w", err)
	}
	t.lapse.Store(int64(l.Lease))
	owner := put(keyOwner, Owner{Node: l.Node, Addresses: addresses}, clientv3.WithLease(t.lease))
	if err := l.try(ctx, func(ctx context.Context) error { return t.claim(ctx, reach, owner) }); err != nil {
		go func() { _ = t.End(l.Client.Ctx()) }() // it ends with the client
		return nil, 0, fmt.Errorf("no claim: %w", err)
	}
	go t.keep() // it ends with the claim
	return t, t.last, nil
}

// claim puts the owner, and returns when it was read again. What an Append left that was never
// decided goes, so that no batch is made of parts of two.
func (t *Term) claim(ctx context.Context, reach uint64, owner clientv3.Op) error {
	for {
		s, err := t.log.read(ctx, nil, clientv3.OpGet(keyOwner))
		if err != nil {
			return err
		}
		if kvs := s.answers[0].GetResponseRange().Kvs; len(kvs) > 0 && kvs[0].Lease == int64(t.lease) {
			t.fence, t.last, t.head = kvs[0].ModRevision, s.end.Batch, s.head
			return nil
		} else if len(kvs) > 0 {
			return fmt.Errorf("%w: %s", ErrOwned, kvs[0].Value)
		}
		if reach < s.begin {
			return fmt.Errorf("%w: they have batch %d, and it begins behind %d", ErrCut, reach, s.begin)
		}
		if reach > s.end.Batch {
			return fmt.Errorf("%w: it ends at batch %d, and the tables have %d", ErrDamaged, s.end.Batch, reach)
		}
		_, err = t.log.Client.Txn(ctx).If(unchanged(keyOwner, 0), unchanged(keyCut, s.cut), unchanged(keyHead, s.head)).
			Then(owner, clientv3.OpDelete(keyPart(s.end.Batch+1, 0), clientv3.WithRange(endLog))).Commit()
		if err != nil {
			return err
		}
	}
}

// Held says whether no other node can have claimed. It is cheap: it asks nobody, and counts from
// the sending of the last keepalive behind which a read showed the claim.
func (t *Term) Held() bool { return t.Margin() > 0 }

// Margin is how long Held still says so, unless the claim is kept.
func (t *Term) Margin() time.Duration {
	if t.ctx.Err() != nil {
		return 0
	}
	return time.Duration(t.lapse.Load()) - beat - time.Since(t.granted)
}

// keep keeps the claim until it ends, and ends it when its lease is over.
func (t *Term) keep() {
	stop := context.AfterFunc(t.log.Client.Ctx(), func() { _ = t.fail(errors.New("the client was closed")) })
	defer stop()
	ticks := time.NewTicker(beat)
	defer ticks.Stop()
	for t.ctx.Err() == nil {
		if time.Since(t.granted) >= time.Duration(t.lapse.Load()) {
			_ = t.fail(errors.New("its lease is over"))
		} else if t.log.Progress() {
			go t.renew(time.Now()) // it ends with the claim, or when it no longer helps
		}
		select {
		case <-ticks.C:
		case <-t.ctx.Done():
		}
	}
}

// renew sends a keepalive, and reads the owner behind it: a leader that is cut off grants
// keepalives for some ticks.
func (t *Term) renew(sent time.Time) {
	ctx, cancel := context.WithTimeout(t.ctx, t.log.Lease)
	defer cancel()
	if _, err := t.log.Client.KeepAliveOnce(ctx, t.lease); errors.Is(err, rpctypes.ErrLeaseNotFound) {
		_ = t.fail(errors.New("its lease is gone"))
	} else if err != nil {
		return
	}
	r, err := t.log.Client.Get(ctx, keyOwner)
	if err != nil {
		return
	}
	if len(r.Kvs) == 0 || r.Kvs[0].ModRevision != t.fence {
		_ = t.fail(errors.New("another one stands"))
	}
	lapse := int64(sent.Sub(t.granted) + t.log.Lease)
	for old := t.lapse.Load(); old < lapse && !t.lapse.CompareAndSwap(old, lapse); old = t.lapse.Load() {
	}
}

// Done is closed when the claim has ended.
func (t *Term) Done() <-chan struct{} { return t.ctx.Done() }

// fail ends the claim, and returns why it ended.
func (t *Term) fail(why error) error {
	t.end(fmt.Errorf("%w: %w", ErrFenced, why))
	return t.Err()
}

// Err tells why the claim has ended; nil while it stands.
func (t *Term) Err() error { return context.Cause(t.ctx) }

// End ends the claim and gives its lease back, so that another can be made at once. It returns nil
// when etcd has no such lease: until then, each change of its leader would prolong it.
func (t *Term) End(ctx context.Context) error {
	_ = t.fail(errors.New("it was given back"))
	for {
		once, cancel := context.WithTimeout(ctx, t.log.Lease)
		_, err := t.log.Client.Revoke(once, t.lease)
		cancel()
		if err == nil || errors.Is(err, rpctypes.ErrLeaseNotFound) {
			return nil
		}
		if !sleep(ctx, pause) {
			return fmt.Errorf("the lease of the claim was not given back: %w", err)
		}
	}
}
