package cell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Release tells that this node's tables have all up to a batch, synced and adopted. It never
// blocks: the newest is written when etcd takes it.
func (l *Log) Release(upto uint64) {
	l.floor.Store(upto)
	go func() { // it ends when the newest is written, or with the client
		for ctx := l.Client.Ctx(); ; {
			err := l.try(ctx, l.putFloor)
			if err == nil || !sleep(ctx, trimEvery) {
				return
			}
			l.warn("floor", err)
		}
	}()
}

// Forget takes back what Release told, and waits until etcd has it. A node that gives up its tables
// does so before.
func (l *Log) Forget(ctx context.Context) error {
	l.floor.Store(0)
	return l.try(ctx, l.putFloor)
}

// putFloor writes the newest floor. By its compare a try does nothing that was given up and comes
// late, behind a newer one.
func (l *Log) putFloor(ctx context.Context) error {
	key := prefixFloor + l.Node
	for {
		r, err := l.Client.Get(ctx, key)
		if err != nil {
			return err
		}
		revision := int64(0)
		for _, kv := range r.Kvs {
			revision = kv.ModRevision
		}
		t, err := l.Client.Txn(ctx).If(unchanged(key, revision)).Then(put(key, l.floor.Load())).Commit()
		if err != nil || t.Succeeded {
			return err
		}
	}
}

const (
	trimEvery = 2 * time.Second
	// cutStep is how many batches go at once. etcd does nothing else meanwhile: 10,000 take 50 ms.
	cutStep = 1000
	// maxKept is how many batches are kept for nodes that are away: each takes some 200 bytes of
	// etcd's memory, however small it is.
	maxKept = 100_000
)

// Trim cuts the log now and each 2 s, until the claim ends. When etcd's database was full before,
// nothing else makes room.
func (t *Term) Trim() {
	for more := true; more; more = sleep(t.ctx, trimEvery) {
		if err := t.Cut(t.ctx); err != nil && !errors.Is(err, errMoved) && t.ctx.Err() == nil {
			t.log.warn("cut", err)
		}
	}
}

// Cut cuts the log up to the batch that the tables of all nodes have, or of a majority where the
// log is long, and has etcd forget what was. It forgets also when nothing can be cut, which needs
// room.
func (t *Term) Cut(ctx context.Context) (err error) {
	for more := true; more && err == nil; {
		err = t.log.try(ctx, func(ctx context.Context) (err error) {
			more, err = t.cut(ctx)
			return err
		})
	}
	return errors.Join(err, t.log.try(ctx, func(ctx context.Context) error {
		r, err := t.log.Client.Get(ctx, keyCut)
		if err == nil {
			_, err = t.log.Client.Compact(ctx, r.Header.Revision)
		}
		if errors.Is(err, rpctypes.ErrCompacted) {
			return nil
		}
		return err
	}))
}

// cut cuts one step, and says whether there are more. Members are read behind the floors. One that
// gets a vote meanwhile, or goes, changes what the transaction compares: cut, by HoldCut, or its
// floor.
func (t *Term) cut(ctx context.Context) (more bool, err error) {
	s, err := t.log.read(ctx, nil, clientv3.OpGet(prefixFloor, clientv3.WithPrefix()), clientv3.OpGet(prefixCopy, clientv3.WithPrefix()))
	if err != nil {
		return false, err
	}
	members, err := t.log.Client.MemberList(ctx)
	if err != nil {
		return false, err
	}
	// A range tells of keys that came or changed, a key of its own of one that is gone.
	fence := []clientv3.Cmp{
		unchanged(keyOwner, t.fence), unchanged(keyCut, s.cut),
		clientv3.Compare(clientv3.ModRevision(prefixFloor), "<", s.revision+1).WithPrefix(),
		clientv3.Compare(clientv3.ModRevision(prefixCopy), "<", s.revision+1).WithPrefix(),
	}
	upto, floors := s.end.Batch, make(map[string]uint64)
	for _, kv := range slices.Concat(s.answers[0].GetResponseRange().Kvs, s.answers[1].GetResponseRange().Kvs) {
		var batch uint64
		key := string(kv.Key)
		revision, err := value([]*mvccpb.KeyValue{kv}, &batch)
		if err != nil {
			return false, err
		}
		fence, floors[key] = append(fence, unchanged(key, revision)), batch
		if strings.HasPrefix(key, prefixCopy) {
			upto = min(upto, batch)
		}
	}
	var voters []uint64
	for _, m := range members.Members {
		if !m.IsLearner {
			voters = append(voters, floors[prefixFloor+m.Name])
		}
	}
	slices.Sort(voters)
	used, err := t.log.Client.Status(ctx, "") // of this node
	if err != nil {
		return false, err
	}
	needed := 0 // the lowest
	if used.DbSizeInUse > t.log.Keep || s.end.Batch-s.begin > maxKept {
		needed = (len(voters) - 1) / 2
	}
	upto = min(upto, voters[needed])
	step := min(upto, s.begin+cutStep)
	if step > s.begin {
		err = commit(t.log.Client.Txn(ctx).If(fence...).
			Then(clientv3.OpDelete(prefixLog, clientv3.WithRange(keyPart(step+1, 0))), put(keyCut, step)))
	}
	return step < upto, err
}

var errHeld = errors.New("another node is being removed or gets a vote")

// HoldCut has the log not be cut any further until free is called, or for two seconds behind the
// deadline that ctx must have: a node is removed or gets its vote meanwhile. It waits for another
// one of which that is so. It returns the batch up to which the log was cut.
func (l *Log) HoldCut(ctx context.Context, node string) (cut uint64, free func(), err error) {
	const removing = prefixCopy + "-"
	deadline, ok := ctx.Deadline()
	if !ok {
		return 0, nil, errors.New("a hold needs a deadline")
	}
	lease, err := l.Client.Grant(ctx, int64(time.Until(deadline)/time.Second)+3) // of a node that is killed
	if err != nil {
		return 0, nil, err
	}
	free = func() { // or it runs out
		ctx, cancel := context.WithTimeout(l.Client.Ctx(), l.Lease)
		defer cancel()
		_, _ = l.Client.Revoke(ctx, lease.ID)
	}
	none := clientv3.Compare(clientv3.CreateRevision(removing), "=", 0).WithPrefix()
	var held error // of an earlier try, too
	waits := func(err error) bool { return errors.Is(err, errHeld) || isUncertain(err) }
	err = retry(ctx, look, waits, func() error {
		ctx, cancel := context.WithTimeout(ctx, l.Lease)
		defer cancel()
		for {
			s, err := l.read(ctx, nil, clientv3.OpGet(removing, clientv3.WithPrefix()))
			if err != nil {
				return err
			}
			if kvs := s.answers[0].GetResponseRange().Kvs; len(kvs) > 0 && kvs[0].Lease == int64(lease.ID) {
				cut = s.begin
				return nil
			} else if len(kvs) > 0 {
				held = fmt.Errorf("%w, or did a short time ago: node %s", errHeld, kvs[0].Key[len(removing):])
				return held
			}
			hold := put(removing+node, s.begin, clientv3.WithLease(lease.ID))
			seen := put(keyCut, s.begin) // by a cut that is under way, also when the hold has ended
			if _, err := l.Client.Txn(ctx).If(unchanged(keyCut, s.cut), none).Then(hold, seen).Commit(); err != nil {
				return err
			}
		}
	})
	if err != nil {
		free()
		err = cmp.Or(held, err)
	}
	return cut, free, err
}

// Hold keeps the log from being cut behind a batch, for a copy that has it: until EndHold, or for
// 10 s behind the last PutNode. Another Hold takes its place. ErrCut: the log begins later.
func (l *Log) Hold(ctx context.Context, batch uint64) error {
	return l.try(ctx, func(ctx context.Context) error {
		l.lease.Lock() // for one try: PutNode waits for it
		defer l.lease.Unlock()
		if err := l.keepLease(ctx); err != nil {
			return err
		}
		for {
			s, err := l.read(ctx, nil)
			if err != nil {
				return err
			}
			if batch < s.begin {
				return fmt.Errorf("%w: the copy has batch %d, and it begins behind %d", ErrCut, batch, s.begin)
			}
			r, err := l.Client.Txn(ctx).If(unchanged(keyCut, s.cut)).
				Then(put(prefixCopy+l.Node, batch, clientv3.WithLease(l.lease.id))).Commit()
			if err != nil || r.Succeeded {
				return err
			}
		}
	})
}

// EndHold ends what Hold began, on any node.
func (l *Log) EndHold(ctx context.Context, node string) error {
	_, err := l.Client.Delete(ctx, prefixCopy+node)
	return err
}
