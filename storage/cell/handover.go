package cell

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// handOverLease is how long others let a node claim first to which the queues are handed over, in
// seconds. The owner drains meanwhile.
const handOverLease = 10

// HandOver asks the owner, whose claim has this fence, to end it, and the others to let a node
// claim first.
func (l *Log) HandOver(ctx context.Context, fence int64, node string) error {
	lease, err := l.Client.Grant(ctx, handOverLease)
	if err != nil {
		return err
	}
	r, err := l.Client.Txn(ctx).If(unchanged(keyOwner, fence)).Then(put(keyHandOver, node, clientv3.WithLease(lease.ID))).Commit()
	if err == nil && !r.Succeeded {
		err = fmt.Errorf("the queues are not handed over: %w", errMoved)
	}
	return err
}

// HandedTo is the node that claims first, "" for any, and the revision at which that was asked for.
// It reads what the node's own member has: who sees there that a claim has ended also sees to whom
// it was handed over.
func (l *Log) HandedTo(ctx context.Context) (node string, revision int64, err error) {
	r, err := l.Client.Get(ctx, keyHandOver, local...)
	if err == nil {
		revision, err = value(r.Kvs, &node)
	}
	return node, revision, err
}

// HandedOver waits until the claim is to be handed over, and says to which node. What was asked for
// before the claim is done with.
func (t *Term) HandedOver(ctx context.Context) (to string, err error) {
	err = t.log.watch(ctx, keyHandOver, func(ctx context.Context) (bool, error) {
		node, revision, err := t.log.HandedTo(ctx)
		to = node
		return revision > t.fence && node != t.log.Node, err
	})
	return to, err
}
