package cell

import (
	"context"
	"errors"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Owner is who owns the queues. The zero value is nobody.
type Owner struct {
	Node      string `json:"node"`
	Addresses string `json:"addresses"` // as given to Claim
	// Fence is the revision at which the claim was put. Each later claim has a higher one.
	Fence int64 `json:"-"`
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

// OwnerChanged waits until another claim stands than the one given, or none, and returns whose it
// is.
func (l *Log) OwnerChanged(ctx context.Context, from Owner) (o Owner, err error) {
	err = l.watch(ctx, keyOwner, func(ctx context.Context) (bool, error) {
		o, err = l.Owner(ctx)
		return err == nil && o.Fence != from.Fence, err
	})
	return o, err
}

// nodeLease is how long others see what a node said of itself.
const nodeLease = 10 * time.Second

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
		if r, err = l.Client.Grant(ctx, int64(nodeLease/time.Second)); err == nil {
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
