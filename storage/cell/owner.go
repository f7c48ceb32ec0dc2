package cell

import (
	"context"
	"errors"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	nodeLease     = 10 // seconds for which others see what a node said of itself
	handOverLease = 10 // seconds for which others let a node claim first; the owner drains meanwhile
)

// Owner is who owns the queues. The zero value is nobody.
type Owner struct {
	Node      string `json:"node"`
	Addresses string `json:"addresses"` // as given to Claim
	Fence     int64  `json:"-"`         // the revision at which the claim was put: each later claim has a higher one
}

// Owner tells who owns, as the node's own member knows it. One that is cut off may name a node that
// no longer does.
func (l *Log) Owner(ctx context.Context) (o Owner, err error) {
	r, err := l.Client.Get(ctx, keyOwner, local...)
	if err != nil {
		return o, err
	}
	o.Fence, err = value(r.Kvs, &o)
	return o, err
}

// OwnerChanged waits until another claim stands, or none, and returns whose it is.
func (l *Log) OwnerChanged(ctx context.Context, from Owner) (o Owner, err error) {
	err = l.watch(ctx, keyOwner, func(ctx context.Context) (bool, error) {
		o, err = l.Owner(ctx)
		return err == nil && o.Fence != from.Fence, err
	})
	return o, err
}

// PutNode tells the others of this node, until it is told again or for 10 s.
func (l *Log) PutNode(ctx context.Context, about []byte) error {
	l.lease.Lock()
	defer l.lease.Unlock()
	err := l.keepLease(ctx)
	if err == nil {
		_, err = l.Client.Put(ctx, prefixNode+l.Node, string(about), clientv3.WithLease(l.lease.id))
	}
	return err
}

// keepLease keeps the node's lease, or takes another one. Who holds its lock calls it.
func (l *Log) keepLease(ctx context.Context) error {
	_, err := l.Client.KeepAliveOnce(ctx, l.lease.id)
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		var r *clientv3.LeaseGrantResponse
		if r, err = l.Client.Grant(ctx, nodeLease); err == nil {
			l.lease.id = r.ID
		}
	}
	return err
}

// Nodes returns what each node said of itself, by name, as the node's own member knows it.
func (l *Log) Nodes(ctx context.Context) (map[string][]byte, error) {
	r, err := l.Client.Get(ctx, prefixNode, clientv3.WithPrefix(), clientv3.WithSerializable())
	if err != nil {
		return nil, err
	}
	about := make(map[string][]byte)
	for _, kv := range r.Kvs {
		about[strings.TrimPrefix(string(kv.Key), prefixNode)] = kv.Value
	}
	return about, nil
}

// HandOver asks the owner, whose claim has this fence, to end it, and the others to let a node
// claim first.
func (l *Log) HandOver(ctx context.Context, fence int64, node string) error {
	lease, err := l.Client.Grant(ctx, handOverLease)
	if err != nil {
		return err
	}
	return commit(l.Client.Txn(ctx).If(unchanged(keyOwner, fence)).Then(put(keyHandOver, node, clientv3.WithLease(lease.ID))))
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

// HandedOver waits until the claim is to be handed over, and says to which node. Only the end of
// ctx is an error. What was asked for before the claim is done with.
func (t *Term) HandedOver(ctx context.Context) (to string, err error) {
	err = t.log.watch(ctx, keyHandOver, func(ctx context.Context) (bool, error) {
		node, revision, err := t.log.HandedTo(ctx)
		to = node
		return err == nil && revision > t.fence && node != t.log.Node, nil // what cannot be read is read again
	})
	return to, err
}

// Status is what the cell is at one moment.
type Status struct {
	Owner     Owner
	Head, Cut uint64            // the last batch of the log, and the one up to which it was cut
	Headless  bool              // the key is gone that tells the last batch, which a cell begins with
	Floors    map[string]uint64 // by node: the batch up to which its tables have everything
	Members   []Peer
	// Majority says that a majority has answered. If not, all this is what the node's own member has,
	// and may be old.
	Majority bool
}

// Status asks a majority, for a second, and then the node's own member.
func (l *Log) Status(ctx context.Context) (Status, error) {
	once, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	s, err := l.status(once, nil)
	if s.Majority = err == nil; err != nil {
		s, err = l.status(ctx, local)
	}
	return s, err
}

func (l *Log) status(ctx context.Context, opts []clientv3.OpOption) (s Status, err error) {
	now, err := l.read(ctx, opts, clientv3.OpGet(keyOwner, opts...), clientv3.OpGet(prefixFloor, append(opts, clientv3.WithPrefix())...))
	if err != nil {
		return s, err
	}
	s.Head, s.Cut, s.Headless, s.Floors = now.end.Batch, now.begin, now.head == 0, make(map[string]uint64)
	if s.Owner.Fence, err = value(now.answers[0].GetResponseRange().Kvs, &s.Owner); err != nil {
		return s, err
	}
	for _, kv := range now.answers[1].GetResponseRange().Kvs {
		var batch uint64
		if _, err := value([]*mvccpb.KeyValue{kv}, &batch); err != nil {
			return s, err
		}
		s.Floors[strings.TrimPrefix(string(kv.Key), prefixFloor)] = batch
	}
	members, err := l.Client.MemberList(ctx, opts...)
	if err == nil {
		s.Members = peers(members)
	}
	return s, err
}
