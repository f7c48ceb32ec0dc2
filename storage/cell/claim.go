package cell

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
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
		if s.head == 0 && s.cut != 0 { // a cell begins with both, and a claim deletes what is behind head
			return fmt.Errorf("%w: key %s is missing, and the tables have batch %d", ErrDamaged, keyHead, reach)
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

// Done is closed when the claim ends.
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
	return retry(ctx, pause, always, func() error {
		once, cancel := context.WithTimeout(ctx, t.log.Lease)
		defer cancel()
		if _, err := t.log.Client.Revoke(once, t.lease); !errors.Is(err, rpctypes.ErrLeaseNotFound) {
			return err
		}
		return nil
	})
}

// A part is
//
//	1 byte   1 if it is the last one of its content, else 0
//	8 bytes  xxhash64 of the content, big endian
//	         a piece of the content
//
// It has at most 256 KiB: etcd keeps the last entries of raft in memory, whatever their size.
const (
	partHead = 9
	maxPart  = 256 << 10
	aside    = 8 // parts that are put at once
)

// split returns the parts of a content, at least one.
func split(content [][]byte) (parts []string, sum uint64) {
	rest := bytes.Join(content, nil)
	sum = xxhash.Sum64(rest)
	for last := false; !last; {
		n := min(len(rest), maxPart-partHead)
		part := binary.BigEndian.AppendUint64(make([]byte, 1, partHead+n), sum)
		if last = n == len(rest); last {
			part[0] = 1
		}
		parts, rest = append(parts, string(append(part, rest[:n]...))), rest[n:]
	}
	return parts, sum
}

// Append adds the next batch to the log: its content, in pieces, which it does not keep. nil: a
// majority has it on disk. Any error wraps ErrFenced and ends the claim; whether the log has the
// batch is then not known. It waits until etcd has decided, or the claim ends. One goroutine
// appends.
func (t *Term) Append(batch uint64, content [][]byte) error {
	if err := t.Err(); err != nil {
		return err
	}
	if batch != t.last+1 {
		return t.fail(fmt.Errorf("batch %d was to be appended, expected %d", batch, t.last+1))
	}
	parts, sum := split(content)
	end := len(parts) - 1
	next := head{Batch: batch, Fence: t.fence, Sum: sum}
	err := t.putParts(batch, parts[:end])
	if err == nil {
		err = t.log.try(t.ctx, func(ctx context.Context) error {
			return t.commit(ctx, next, clientv3.OpPut(keyPart(batch, end), parts[end]), put(keyHead, next))
		})
	}
	if err != nil {
		return t.fail(fmt.Errorf("batch %d: %w", batch, err))
	}
	return nil
}

// fenced begins a transaction that does nothing unless the claim stands, whose key nobody wrote
// over, and the log ends where it is known to end. So a try does nothing that was given up and
// comes late.
func (t *Term) fenced(ctx context.Context) clientv3.Txn {
	return t.log.Client.Txn(ctx).If(unchanged(keyOwner, t.fence), unchanged(keyHead, t.head))
}

func (t *Term) putParts(batch uint64, parts []string) error {
	var puts errgroup.Group
	puts.SetLimit(aside)
	for i, part := range parts {
		puts.Go(func() error {
			return t.log.try(t.ctx, func(ctx context.Context) error {
				return commit(t.fenced(ctx).Then(clientv3.OpPut(keyPart(batch, i), part)))
			})
		})
	}
	return puts.Wait()
}

// commit puts the last part of a batch, and head. Only head tells whether an earlier try did so
// whose answer was lost: another claim of this node may have appended a batch of the same number.
func (t *Term) commit(ctx context.Context, next head, puts ...clientv3.Op) error {
	r, err := t.fenced(ctx).Then(puts...).Else(clientv3.OpGet(keyHead)).Commit()
	if err != nil {
		return err
	}
	revision := r.Header.Revision
	if !r.Succeeded {
		var found head
		if revision, err = value(r.Responses[0].GetResponseRange().Kvs, &found); err != nil {
			return err
		}
		if found != next {
			return fmt.Errorf("%w: the log ends at batch %d, of claim %d", errMoved, found.Batch, found.Fence)
		}
	}
	t.last, t.head = next.Batch, revision
	return nil
}
